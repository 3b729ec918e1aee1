package codegen

import (
	"github.com/rosmar-compiler/rosmar/codegen/lower"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// late is what holds only as long as neither instructions nor placements change. That a function has been scheduled is not among it:
// no pass brings back the order in which locations were placed, and the checkers must know that it is gone.
const late = ir.FuncHasDeps | ir.FuncGroupsLegal | ir.FuncQueued | ir.FuncSynced

// step says what a pass finds done when it runs, and what is no longer true afterwards. Lists of passes are free, and a
// module may come from the middle of an earlier run, so this is asked of the module and not of the list.
type step struct{ needs, voids ir.FuncFlag }

var steps = map[string]step{
	"lower_select":                            {voids: late},
	"dead_code_elim_o0":                       {voids: late},
	"psum_legalization":                       {voids: late | ir.FuncPsumPlaced},
	"runtime_memory_reservation":              {voids: late | ir.FuncSBPlaced},
	"coloring_allocator_psum":                 {voids: late | ir.FuncSBPlaced | ir.FuncDRAMPlaced}, // it spills into both
	"linear_scan_allocator":                   {voids: late | ir.FuncDRAMPlaced},
	"address_rotation_dram":                   {needs: ir.FuncPsumPlaced | ir.FuncSBPlaced, voids: late},
	"coloring_allocator_with_loop":            {voids: late | ir.FuncDRAMPlaced},
	"address_rotation_psum":                   {needs: ir.FuncPsumPlaced, voids: late},
	"coloring_allocator_sb":                   {needs: ir.FuncPsumPlaced, voids: late | ir.FuncDRAMPlaced},
	"address_rotation_sb":                     {needs: ir.FuncSBPlaced, voids: late},
	"coloring_allocator_dram":                 {needs: ir.FuncPsumPlaced | ir.FuncSBPlaced, voids: late},
	"coloring_allocator_dram_shared":          {needs: ir.FuncPsumPlaced | ir.FuncSBPlaced, voids: late},
	"coloring_allocator_dram_debug":           {needs: ir.FuncPsumPlaced | ir.FuncSBPlaced, voids: late},
	"coloring_allocator_dram_post_lnk":        {needs: ir.FuncPsumPlaced | ir.FuncSBPlaced}, // they void what is late if they find
	"coloring_allocator_dram_shared_post_lnk": {needs: ir.FuncPsumPlaced | ir.FuncSBPlaced}, // anything to place
	"hbm_usage":                               {needs: ir.FuncDRAMPlaced},
	"build_fdeps":                             {needs: placed, voids: late},
	"post_sched":                              {needs: placed | ir.FuncHasDeps, voids: ir.FuncGroupsLegal | ir.FuncQueued | ir.FuncSynced},
	"legalize_mm_accumulation_groups":         {needs: placed | ir.FuncHasDeps},
	"alloc_queues":                            {needs: placed | ir.FuncHasDeps, voids: ir.FuncSynced},
	"lower_act":                               {voids: ir.FuncSynced},
	"lower_sync":                              {needs: placed | ir.FuncHasDeps | ir.FuncQueued},
	"codegen":                                 {needs: placed | ir.FuncHasDeps | ir.FuncGroupsLegal | ir.FuncQueued | ir.FuncSynced},
}

const placed = ir.FuncPsumPlaced | ir.FuncSBPlaced | ir.FuncDRAMPlaced

// givers are the passes that make each thing true, in the order of the plane.
var givers = [...]struct {
	flag ir.FuncFlag
	pass string
}{
	{ir.FuncPsumPlaced, "coloring_allocator_psum"}, {ir.FuncSBPlaced, "coloring_allocator_sb"},
	{ir.FuncDRAMPlaced, "coloring_allocator_dram"}, {ir.FuncHasDeps, "build_fdeps"},
	{ir.FuncGroupsLegal, "legalize_mm_accumulation_groups"}, {ir.FuncQueued, "alloc_queues"}, {ir.FuncSynced, "lower_sync"},
}

// dramGivers are the passes that place the address spaces of DRAM.
var dramGivers = [ir.NumAddrSpaces]string{"coloring_allocator_dram", "coloring_allocator_dram_shared", "coloring_allocator_dram_debug"}

// unplacedDRAM finds a tensor of f in DRAM without an address, and says in which address space it is.
func (w *Worker) unplacedDRAM(f ir.Func) (space ir.AddrSpace, found bool) {
	for _, s := range w.m.SetsOf(f) {
		r := w.m.Sets.At(s)
		if r.Count == 0 || w.m.Locs.At(r.First).Space != target.SpaceDRAM || !r.Kind.IsInternal() {
			continue
		}
		for k := range r.Count {
			if w.m.Locs.At(r.First+ir.Loc(k)).Flags&ir.LocAllocated == 0 && (!found || r.Addr < space) {
				space, found = r.Addr, true
			}
		}
	}
	return space, found
}

// giver is the pass that would make a flag of f true: of DRAM that of the first address space with a tensor that has no address, of
// the others also those that place both memories at once.
func (w *Worker) giver(f ir.Func, flag ir.FuncFlag, pass string) string {
	switch flag {
	case ir.FuncDRAMPlaced:
		if space, found := w.unplacedDRAM(f); found {
			return dramGivers[space]
		}
	case ir.FuncPsumPlaced, ir.FuncSBPlaced:
		return pass + " or linear_scan_allocator or coloring_allocator_with_loop"
	}
	return pass
}

// ready refuses to run a pass on a module that lacks what it builds on, by the name of the pass that is missing, and takes
// back what will not be true afterwards.
func (w *Worker) ready(p *Pass) error {
	s := steps[p.Name]
	return w.eachFunc(func(f ir.Func) error {
		r := w.m.Funcs.At(f)
		for _, g := range givers {
			missing := s.needs&g.flag&^r.Flags != 0
			if p.Name == "address_rotation_dram" && g.flag == ir.FuncDRAMPlaced { // it needs one address space only
				space, found := w.unplacedDRAM(f)
				missing = found && space == ir.AddrLocal
			}
			if missing {
				return target.Errorf(target.User, "%s needs %s to have run on function %s, after every pass that undoes it; it is not among the selected passes before, and the program does not carry its result (--dry-run prints the selection)",
					p.Name, w.giver(f, g.flag, g.pass), w.m.Names.String(r.Name))
			}
		}
		if p.Name == "codegen" {
			if i := lower.TableMissing(w.m, f); i != 0 {
				return target.Errorf(target.User, "codegen needs lower_act to have run on function %s: no pass has loaded the table of %s (%s)",
					w.m.Names.String(r.Name), w.m.InstName(i), w.m.Insts.At(i).Op)
			}
		}
		r.Flags &^= s.voids
		return nil
	})
}
