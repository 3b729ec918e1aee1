package graph

import "strconv"

// ConstRef is the name by which a package refers to constant n of the model: its node name, and "#k" behind it when it is
// the k-th constant of that name (computations of one module may use a name each). Names are those of the canonical graph,
// which is the same whenever it is made from the same model.
func (g *Graph) ConstRef(n Node) string {
	name, k := g.NodeName(n), 1
	for i := Node(1); i < n; i++ {
		if g.Nodes.At(i).Op == OpConstant && g.NodeName(i) == name {
			k++
		}
	}
	if k > 1 {
		return name + "#" + strconv.Itoa(k)
	}
	return name
}

// FindConst is the constant that ConstRef names, false when the graph has none.
func (g *Graph) FindConst(ref string) (Node, bool) {
	seen := map[string]int{}
	for n, r := range g.Nodes.All() {
		if r.Op != OpConstant {
			continue
		}
		name := g.NodeName(n)
		seen[name]++
		if name == ref && seen[name] == 1 || seen[name] > 1 && name+"#"+strconv.Itoa(seen[name]) == ref {
			return n, true
		}
	}
	return 0, false
}
