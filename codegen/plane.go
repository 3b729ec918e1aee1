package codegen

// plane2 is the list of level 2: what a model passes through from tiles to the package. The names are those of the
// reference; a later level adds rows and takes none away.
var plane2 = []string{
	"birverifier",
	"lower_select",
	"dead_code_elim_o0",
	"psum_legalization",
	"runtime_memory_reservation",
	"oom_checker",
	"coloring_allocator_psum",
	"address_rotation_psum",
	"coloring_allocator_sb",
	"address_rotation_sb",
	"coloring_allocator_dram",
	"coloring_allocator_dram_shared",
	"coloring_allocator_dram_debug",
	"hbm_usage",
	"build_fdeps",
	"post_sched",
	"legalize_mm_accumulation_groups",
	"alloc_queues",
	"coloring_allocator_dram_post_lnk",
	"coloring_allocator_dram_shared_post_lnk",
	"lower_act",
	"lower_sync",
	"report_stats",
	"codegen",
}

// rule is one ordering constraint: where both passes are in a list, Before comes first.
type rule struct{ Before, After, Because string }

// rules are checked on every plane by a test.
var rules = []rule{
	{"lower_select", "coloring_allocator_psum", "a select becomes a copy and a predicated copy, whose operands live longer"},
	{"dead_code_elim_o0", "psum_legalization", "dead tensors need no room"},
	{"psum_legalization", "coloring_allocator_psum", "widening changes how many banks a tensor takes"},
	{"runtime_memory_reservation", "coloring_allocator_sb", "the runtime's strip is an obstacle"},
	{"psum_legalization", "oom_checker", "widening changes how many banks a tensor takes"},
	{"runtime_memory_reservation", "oom_checker", "the runtime's strip is no room for tensors"},
	{"oom_checker", "coloring_allocator_psum", "a refusal in time spares rounds of spilling"},
	{"coloring_allocator_psum", "address_rotation_psum", "rotation re-places what has a place, after PSUM's spills are in"},
	{"coloring_allocator_sb", "address_rotation_sb", "rotation re-places what has a place, after SBUF's spills are in"},
	{"address_rotation_psum", "build_fdeps", "rotation is there to take edges away"},
	{"address_rotation_sb", "build_fdeps", "rotation is there to take edges away"},
	{"coloring_allocator_psum", "coloring_allocator_sb", "PSUM is smallest and spills into SBUF"},
	{"coloring_allocator_sb", "coloring_allocator_dram", "spill homes are DRAM tensors"},
	{"coloring_allocator_dram", "coloring_allocator_dram_shared", "shared tensors lie above those of one core, at addresses that all cores agree on"},
	{"coloring_allocator_dram_shared", "coloring_allocator_dram_debug", "a program with debug tensors has the addresses of one without"},
	{"coloring_allocator_dram_debug", "hbm_usage", "the window check adds up what was placed"},
	{"coloring_allocator_dram_debug", "build_fdeps", "two tensors at one address depend on each other"},
	{"coloring_allocator_dram_debug", "coloring_allocator_dram_post_lnk", "what linking adds goes above what was placed"},
	{"coloring_allocator_dram_post_lnk", "coloring_allocator_dram_shared_post_lnk", "shared tensors lie above those of one core"},
	{"coloring_allocator_dram_shared_post_lnk", "lower_sync", "descriptors and waits are made of addresses"},
	{"build_fdeps", "post_sched", "an order needs the edges"},
	{"post_sched", "legalize_mm_accumulation_groups", "the first and the last multiply of a group are known once the order is"},
	{"post_sched", "alloc_queues", "a save is triggered by the engine that wrote its source last in the final order"},
	{"post_sched", "lower_act", "which function table is resident follows the final order"},
	{"alloc_queues", "lower_sync", "a transfer's semaphore is a slot of its queue set's ring"},
	{"lower_act", "lower_sync", "a table load stands in its engine's stream"},
	{"lower_sync", "codegen", "waits and updates are fields of the bundles"},
}
