package neff

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// DefVersion is the schema version of def.json.
const DefVersion = "0.6"

// VarType is what a variable stands for.
type VarType uint8

// Variable types, spelled as in def.json.
const (
	VarStateBuffer VarType = iota + 1 // on-chip memory, offsets are global addresses
	VarInput
	VarOutput
	VarFile   // constant: a member, or an entry of weights.json
	VarTmpBuf // scratch DRAM
	VarVirtual
	VarPointer
	VarDGETable
)

var varTypes = [...]string{
	"", "state-buffer", "input", "output", "file", "tmp-buf", "virtual", "pointer", "dge-table",
}

// String is the JSON spelling.
func (t VarType) String() string { return word(varTypes[:], uint8(t)) }

// QueueType is what a queue set carries.
type QueueType uint8

// Queue types, spelled as in def.json.
const (
	QueueIn QueueType = iota + 1
	QueueOut
	QueueData
	QueueEmbedding
	QueueDynamic
)

var queueTypes = [...]string{"", "in", "out", "data", "embedding_update", "dynamic"}

// String is the JSON spelling.
func (t QueueType) String() string { return word(queueTypes[:], uint8(t)) }

func word(names []string, i uint8) string {
	if i == 0 || int(i) >= len(names) {
		return "?"
	}
	return names[i]
}

func wordOf(names []string, s string) (uint8, bool) {
	for i := 1; i < len(names); i++ {
		if names[i] == s {
			return uint8(i), true
		}
	}
	return 0, false
}

// MaxHardwareQueues is how many hardware queues the queue sets of a package may use together.
const MaxHardwareQueues = 11 * 16

// Queue is one queue set: hardware queues that one engine triggers, with the ring of completion semaphores.
type Queue struct {
	Name       string
	Type       QueueType
	NumQueues  int // 1..16
	Owner      target.Engine
	Semaphores []uint8
	Instances  []string
}

// Var is one variable: a range of bytes that descriptors address.
type Var struct {
	Name       string
	Type       VarType
	ID         uint32
	Size       int64
	Align      int64
	File       string // VarFile: the member's path below the core's folder; empty when weights.json has it
	BackingOff int64  // VarVirtual: offset in the scratch
	Ref        uint32 // VarPointer: variable id
	List       []uint32
}

// Names of the two on-chip variables. Their offsets are the global addresses that bundles use.
const (
	SBVar   = "SB"
	PSUMVar = "PSUM"
)

// Def is def.json: the queue sets and variables of one core. Row 0 of both tables is reserved; descriptors name rows.
// Read returns queues by name and variables by id; a writer that fills the tables in that order gets the same rows back.
type Def struct {
	Queues []Queue
	Vars   []Var
}

// NewDef is a definition with its reserved rows and the two on-chip variables, ids 1 and 2.
func NewDef(g *target.Generation) Def {
	return Def{
		Queues: make([]Queue, 1),
		Vars: []Var{{}, {Name: SBVar, Type: VarStateBuffer, ID: 1, Size: int64(g.SBPartitions) * target.SBPartitionPitch},
			{Name: PSUMVar, Type: VarStateBuffer, ID: 2, Size: target.PSUMBase + int64(g.PSUMParts)*target.PSUMPartitionPitch}},
	}
}

// QueueRow finds a queue set by name; 0 = none. It scans: build a map for bulk work.
func (d *Def) QueueRow(name string) uint32 {
	for i := 1; i < len(d.Queues); i++ {
		if d.Queues[i].Name == name {
			return uint32(i)
		}
	}
	return 0
}

// VarRow finds a variable by name; 0 = none.
func (d *Def) VarRow(name string) uint32 {
	for i := 1; i < len(d.Vars); i++ {
		if d.Vars[i].Name == name {
			return uint32(i)
		}
	}
	return 0
}

// VarByID finds a variable by id in a table that is in order of ids, as Read gives it; 0 = none.
func (d *Def) VarByID(id uint32) uint32 {
	i, ok := slices.BinarySearchFunc(d.Vars[1:], id, func(v Var, id uint32) int { return cmp.Compare(v.ID, id) })
	if !ok {
		return 0
	}
	return uint32(i) + 1
}

// names maps each name to its row and refuses doubles; n rows, row 0 reserved.
func names(what string, n int, name func(int) string) (map[string]uint32, error) {
	m := make(map[string]uint32, n)
	for i := 1; i < n; i++ {
		s := name(i)
		if s == "" {
			return nil, target.Errorf(target.User, "neff: %s %d has no name", what, i)
		}
		if m[s] != 0 {
			return nil, target.Errorf(target.User, "neff: %s %q is defined twice", what, s)
		}
		m[s] = uint32(i)
	}
	return m, nil
}

type queueJSON struct {
	Instances  []string `json:"queue_instances,omitempty"`
	NumQueues  int      `json:"num_queues"`
	Owner      string   `json:"owner"`
	Semaphores []int    `json:"semaphore_set,omitempty"`
	Type       string   `json:"type"`
}

type varJSON struct {
	Align      int64    `json:"alignment,omitzero"`
	BackingOff int64    `json:"backing_variable_off,omitzero"`
	File       string   `json:"file_name,omitempty"`
	List       []uint32 `json:"list,omitempty"`
	Ref        uint32   `json:"referenced_var_id,omitzero"`
	Size       int64    `json:"size"`
	Type       string   `json:"type"`
	ID         uint32   `json:"var_id"`
}

type engineFiles struct {
	Descriptors string `json:"desc"`
	Instr       string `json:"instr"`
}

type defJSON struct {
	Definition map[string]engineFiles `json:"definition"`
	Queues     map[string]queueJSON   `json:"dma_queue"`
	Features   []string               `json:"neff_features"`
	Vars       map[string]varJSON     `json:"var"`
	Version    string                 `json:"version"`
}

// sortedKeys makes map keys come out in order, as all other keys do by declaration.
var sortedKeys = json.JoinOptions(json.Deterministic(true), jsontext.WithIndent(" "))

var strictJSON = json.RejectUnknownMembers(true)

func (d *Def) marshal(features uint64) ([]byte, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	out := defJSON{Definition: map[string]engineFiles{}, Queues: map[string]queueJSON{}, Vars: map[string]varJSON{},
		Features: listedFeatures(features), Version: DefVersion}
	for _, e := range target.Sequencers {
		out.Definition[e.Info().Token] = engineFiles{Instr: e.Info().Name + ".bin", Descriptors: e.Info().Name + ".json"}
	}
	for _, q := range d.Queues[1:] {
		j := queueJSON{Instances: q.Instances, NumQueues: q.NumQueues, Owner: q.Owner.Info().Token, Type: q.Type.String()}
		for _, s := range q.Semaphores {
			j.Semaphores = append(j.Semaphores, int(s))
		}
		out.Queues[q.Name] = j
	}
	for _, v := range d.Vars[1:] {
		out.Vars[v.Name] = varJSON{v.Align, v.BackingOff, v.File, v.List, v.Ref, v.Size, v.Type.String(), v.ID}
	}
	return json.Marshal(out, sortedKeys)
}

func parseDef(b []byte, features uint64) (Def, error) {
	var in defJSON
	if err := json.Unmarshal(b, &in, strictJSON); err != nil {
		return Def{}, badJSON("def.json", err)
	}
	if in.Version != DefVersion {
		return Def{}, target.Errorf(target.Unsupported, "neff: def.json has version %q; %s is known", in.Version, DefVersion)
	}
	if want := listedFeatures(features); !slices.Equal(want, in.Features) {
		return Def{}, target.Errorf(target.User, "neff: def.json lists features %q, the header has %q", in.Features, want)
	}
	for _, e := range target.Sequencers {
		want := engineFiles{Instr: e.Info().Name + ".bin", Descriptors: e.Info().Name + ".json"}
		if got := in.Definition[e.Info().Token]; got != want {
			return Def{}, target.Errorf(target.User, "neff: def.json names %q and %q for engine %s", got.Instr, got.Descriptors, e)
		}
	}
	if len(in.Definition) != len(target.Sequencers) {
		return Def{}, target.Errorf(target.User, "neff: def.json defines %d engines, want %d", len(in.Definition), len(target.Sequencers))
	}
	d := Def{Queues: make([]Queue, 1, len(in.Queues)+1), Vars: make([]Var, 1, len(in.Vars)+1)}
	for name, j := range in.Queues {
		t, ok := wordOf(queueTypes[:], j.Type)
		if !ok {
			return Def{}, target.Errorf(target.User, "neff: queue set %q has unknown type %q", name, j.Type)
		}
		e, ok := target.ParseEngine(j.Owner)
		if !ok {
			return Def{}, target.Errorf(target.User, "neff: queue set %q has unknown owner %q", name, j.Owner)
		}
		q := Queue{Name: name, Type: QueueType(t), NumQueues: j.NumQueues, Owner: e, Instances: j.Instances}
		for _, s := range j.Semaphores {
			if s < 0 || s > 255 {
				return Def{}, target.Errorf(target.User, "neff: queue set %q has semaphore %d outside 0..255", name, s)
			}
			q.Semaphores = append(q.Semaphores, uint8(s))
		}
		d.Queues = append(d.Queues, q)
	}
	for name, j := range in.Vars {
		t, ok := wordOf(varTypes[:], j.Type)
		if !ok {
			return Def{}, target.Errorf(target.User, "neff: variable %q has unknown type %q", name, j.Type)
		}
		d.Vars = append(d.Vars, Var{name, VarType(t), j.ID, j.Size, j.Align, j.File, j.BackingOff, j.Ref, j.List})
	}
	slices.SortFunc(d.Queues[1:], func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(d.Vars[1:], func(a, b Var) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Name, b.Name)) })
	return d, d.check()
}

// check holds the rules of the two tables; writer and reader both end here.
func (d *Def) check() error {
	if len(d.Queues) == 0 || len(d.Vars) == 0 || d.Queues[0].Name != "" || d.Vars[0].Name != "" {
		return target.Errorf(target.Bug, "neff: row 0 of the definition tables is reserved")
	}
	if _, err := names("queue set", len(d.Queues), func(i int) string { return d.Queues[i].Name }); err != nil {
		return err
	}
	if _, err := names("variable", len(d.Vars), func(i int) string { return d.Vars[i].Name }); err != nil {
		return err
	}
	hardware := 0
	for i := 1; i < len(d.Queues); i++ {
		q := &d.Queues[i]
		if q.NumQueues < 1 || q.NumQueues > 16 {
			return target.Errorf(target.Limit, "neff: queue set %q has %d queues; 1..16 are possible", q.Name, q.NumQueues)
		}
		if len(q.Name) > 31 {
			return target.Errorf(target.Limit, "neff: queue set name %q is longer than 31 bytes", q.Name)
		}
		if word(queueTypes[:], uint8(q.Type)) == "?" {
			return target.Errorf(target.User, "neff: queue set %q has type %d", q.Name, q.Type)
		}
		if !q.Owner.HasStream() {
			return target.Errorf(target.User, "neff: queue set %q is owned by %s, which has no stream", q.Name, q.Owner)
		}
		hardware += q.NumQueues
	}
	if hardware > MaxHardwareQueues {
		return target.Errorf(target.Limit, "neff: queue sets use %d hardware queues; the limit is %d", hardware, MaxHardwareQueues)
	}
	ids := make(map[uint32]string, len(d.Vars))
	for i := 1; i < len(d.Vars); i++ {
		v := &d.Vars[i]
		if v.ID == 0 {
			return target.Errorf(target.User, "neff: variable %q has id 0", v.Name)
		}
		if other, ok := ids[v.ID]; ok {
			return target.Errorf(target.User, "neff: variables %q and %q share id %d", other, v.Name, v.ID)
		}
		ids[v.ID] = v.Name
		if v.Size < 0 || v.Size > 1<<40 {
			return target.Errorf(target.Limit, "neff: variable %q has %d bytes; 0..2^40 are possible", v.Name, v.Size)
		}
		if v.Align < 0 || v.Align&(v.Align-1) != 0 {
			return target.Errorf(target.User, "neff: variable %q has alignment %d, not a power of two", v.Name, v.Align)
		}
		if word(varTypes[:], uint8(v.Type)) == "?" {
			return target.Errorf(target.User, "neff: variable %q has type %d", v.Name, v.Type)
		}
		if v.File != "" {
			if v.Type != VarFile {
				return target.Errorf(target.User, "neff: variable %q of type %s has a file", v.Name, v.Type)
			}
			if err := checkPath(v.File); err != nil {
				return err
			}
		}
		if (v.Type == VarStateBuffer) != (v.Name == SBVar || v.Name == PSUMVar) {
			return target.Errorf(target.User, "neff: variable %q has type %s; on-chip memory is %s and %s", v.Name, v.Type, SBVar, PSUMVar)
		}
	}
	return nil
}

func badJSON(file string, err error) error {
	return target.Errorf(target.User, "neff: %s: %w", file, err)
}
