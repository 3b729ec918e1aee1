package neff

import (
	"github.com/go-json-experiment/json"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Versions of the schemas that we write and read.
const (
	ManifestVersion = "0.5"
	kelfName        = "kelf-0.json"
	graphName       = "sg_coreV1_0"
	coreDir         = "sg00/"
)

// Tensor is one graph input or output. Its variable in def.json has the same name and size.
type Tensor struct {
	Dtype string  `json:"dtype"`
	Name  string  `json:"name"`
	Shape []int64 `json:"shape"`
	Size  int64   `json:"size"`
}

// Alias says that an output may take the memory of an input; the output is written in full all the same.
type Alias struct {
	Input  string `json:"input_name"`
	Output string `json:"output_name"`
}

// TensorMap is tensor_map.json.
type TensorMap struct {
	Aliases []Alias  `json:"alias_map"`
	Inputs  []Tensor `json:"inputs"`
	Outputs []Tensor `json:"outputs"`
}

type infoJSON struct {
	Build   string `json:"build"`
	Cores   int    `json:"num_cores"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

type graphJSON struct {
	Kelf     string   `json:"kelf,omitempty"`
	Nodes    []string `json:"nodes,omitempty"`
	Op       string   `json:"op"`
	Size     int64    `json:"size,omitzero"`
	Subgraph string   `json:"subgraph,omitempty"`
}

type manifestJSON struct {
	Graphs  map[string]graphJSON `json:"graphs"`
	Arch    string               `json:"target_arch"`
	Version string               `json:"version"`
}

type kelfEngine struct {
	Count int64  `json:"count"`
	Instr string `json:"instr"`
}

type kelfJSON struct {
	Arch    string                `json:"arch"`
	Engines map[string]kelfEngine `json:"engines"`
	LNC     int                   `json:"lnc"`
}

func (p *Package) marshalInfo() ([]byte, error) {
	return json.Marshal(infoJSON{Build: p.Header.Build, Cores: 1, Name: p.Header.Name, Version: ManifestVersion}, sortedKeys)
}

func (p *Package) marshalManifest(g *target.Generation) ([]byte, error) {
	return json.Marshal(manifestJSON{Arch: g.Arch, Version: ManifestVersion, Graphs: map[string]graphJSON{
		"main":    {Op: "graph", Nodes: []string{graphName}},
		graphName: {Op: "__kelf", Subgraph: "0", Kelf: kelfName, Size: p.bundles() * bundleSize},
	}}, sortedKeys)
}

func (p *Package) marshalKelf(g *target.Generation) ([]byte, error) {
	k := kelfJSON{Arch: g.Arch, LNC: 1, Engines: map[string]kelfEngine{}}
	for i, e := range target.Sequencers {
		k.Engines[e.Info().Token] = kelfEngine{p.Engines[i].bundles(), e.Info().Name + ".bin"}
	}
	return json.Marshal(k, sortedKeys)
}

// parseManifest finds the architecture, on which neff.json and kelf-0.json must agree.
func parseManifest(neff, kelf []byte) (level int, k kelfJSON, err error) {
	var m manifestJSON
	if err := json.Unmarshal(neff, &m, strictJSON); err != nil {
		return 0, k, badJSON("neff.json", err)
	}
	if err := json.Unmarshal(kelf, &k, strictJSON); err != nil {
		return 0, k, badJSON(kelfName, err)
	}
	if m.Version != ManifestVersion {
		return 0, k, target.Errorf(target.Unsupported, "neff: neff.json has version %q; %s is known", m.Version, ManifestVersion)
	}
	if m.Arch != k.Arch {
		return 0, k, target.Errorf(target.User, "neff: neff.json is for %q, %s for %q", m.Arch, kelfName, k.Arch)
	}
	if k.LNC != 1 || m.Graphs[graphName].Kelf != kelfName || len(m.Graphs) != 2 {
		return 0, k, target.Errorf(target.Unsupported, "neff: only packages of one core in one graph are read")
	}
	g, err := target.Lookup(k.Arch)
	if err != nil {
		return 0, k, target.Errorf(target.Unsupported, "neff: %w", err)
	}
	if g.Arch != k.Arch || !g.CodeGen {
		return 0, k, target.Errorf(target.Unsupported, "neff: architecture %q has no instruction set here", k.Arch)
	}
	return g.Level, k, nil
}

// check ties the tensor map to the variables.
func (t *TensorMap) check(d *Def) error {
	rows, err := names("variable", len(d.Vars), func(i int) string { return d.Vars[i].Name })
	if err != nil {
		return err
	}
	seen := map[string]VarType{}
	for side, list := range [2][]Tensor{t.Inputs, t.Outputs} {
		want := VarInput + VarType(side)
		for i := range list {
			x := &list[i]
			row := rows[x.Name]
			if row == 0 || d.Vars[row].Type != want {
				return target.Errorf(target.User, "neff: tensor %q has no %s variable", x.Name, want)
			}
			if d.Vars[row].Size != x.Size {
				return target.Errorf(target.User, "neff: tensor %q has %d bytes, its variable %d", x.Name, x.Size, d.Vars[row].Size)
			}
			if seen[x.Name] != 0 {
				return target.Errorf(target.User, "neff: tensor %q is listed twice", x.Name)
			}
			seen[x.Name] = want
			for _, n := range x.Shape {
				if n < 0 {
					return target.Errorf(target.User, "neff: tensor %q has a negative dimension %d", x.Name, n)
				}
			}
		}
	}
	used := map[string]bool{}
	for _, a := range t.Aliases {
		if seen[a.Input] != VarInput || seen[a.Output] != VarOutput {
			return target.Errorf(target.User, "neff: alias of %q to %q names no input or no output", a.Input, a.Output)
		}
		if used[a.Input] {
			return target.Errorf(target.User, "neff: input %q is aliased twice", a.Input)
		}
		used[a.Input] = true
	}
	return nil
}
