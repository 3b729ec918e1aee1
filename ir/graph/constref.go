package graph

import (
	"strconv"
	"strings"

	"github.com/rosmar-compiler/rosmar/arena"
)

// ConstRef is the name by which a package refers to constant n of the model: its node name for the first constant of that
// name, and "k#name" for the k-th (computations of one module may use a name each), or for a name that looks like that
// itself. Names are those of the canonical graph, which is the same whenever it is made from the same model.
func (g *Graph) ConstRef(n Node) string {
	name, k := g.Nodes.At(n).Name, 1
	if name == 0 {
		return n.String()
	}
	for i := Node(1); i < n; i++ {
		if r := g.Nodes.At(i); r.Name == name && r.Op == OpConstant {
			k++
		}
	}
	s := g.Names.String(name)
	if _, _, numbered := splitRef(s); k > 1 || numbered {
		return strconv.Itoa(k) + "#" + s
	}
	return s
}

// splitRef takes "k#name" apart.
func splitRef(ref string) (k int, name string, ok bool) {
	num, name, ok := strings.Cut(ref, "#")
	if !ok {
		return 0, "", false
	}
	k, err := strconv.Atoi(num)
	return k, name, err == nil && k > 0 && strconv.Itoa(k) == num
}

// FindConst is the constant that ConstRef names, false when the graph has none.
func (g *Graph) FindConst(ref string) (Node, bool) {
	k, name := 1, ref
	if j, rest, ok := splitRef(ref); ok {
		k, name = j, rest
	}
	id, known := g.Names.Lookup(name)
	for n, r := range g.Nodes.All() {
		switch {
		case r.Op != OpConstant:
		case r.Name == 0:
			if n.String() == ref {
				return n, true
			}
		case known && r.Name == id && id != arena.Name(0):
			if k--; k == 0 {
				return n, true
			}
		}
	}
	return 0, false
}
