package memalloc

import (
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Type says what a colouring allocator places. The values are those of the public notes.
type Type uint8

const (
	TypeSB Type = iota
	TypePSUM
	TypeDRAM
	TypeREG
)

// Registration is one name of the colouring driver and what it is built with.
type Registration struct {
	Name string
	Type Type
	// AfterLinking: it runs on what the linker put together, where the parts have their places already.
	AfterLinking bool
	// Space is the DRAM address space that it places.
	Space ir.AddrSpace
	// Second is a second address space, Local in every registration. Nothing reads it.
	Second ir.AddrSpace
}

// registrations are the eight names of the one driver. TypeREG places registers of an engine, not locations; its work is not in
// this package.
var registrations = [...]Registration{
	{"coloring_allocator_sb", TypeSB, false, ir.AddrLocal, ir.AddrLocal},
	{"coloring_allocator_psum", TypePSUM, false, ir.AddrLocal, ir.AddrLocal},
	{"coloring_allocator_dram", TypeDRAM, false, ir.AddrLocal, ir.AddrLocal},
	{"coloring_allocator_reg", TypeREG, false, ir.AddrLocal, ir.AddrLocal},
	{"coloring_allocator_dram_shared", TypeDRAM, false, ir.AddrShared, ir.AddrLocal},
	{"coloring_allocator_dram_debug", TypeDRAM, false, ir.AddrDebug, ir.AddrLocal},
	{"coloring_allocator_dram_post_lnk", TypeDRAM, true, ir.AddrLocal, ir.AddrLocal},
	{"coloring_allocator_dram_shared_post_lnk", TypeDRAM, true, ir.AddrShared, ir.AddrLocal},
}

// Registered finds a registration by its name.
func Registered(name string) (Registration, bool) {
	for _, r := range registrations {
		if r.Name == name {
			return r, true
		}
	}
	return Registration{}, false
}

// Allocator is a colouring allocator of one registration.
type Allocator struct{ reg Registration }

// NewAllocator builds the allocator of a registration. On-chip memory has one address space and is placed before linking: what
// says otherwise is one of the internal errors 508 to 511.
func NewAllocator(r Registration) (Allocator, error) {
	refuse := func(code int, what string) (Allocator, error) {
		return Allocator{}, target.Errorf(target.Bug, "internal error %d: %s: %s; only DRAM is placed after linking or in an address space other than Local", code, r.Name, what)
	}
	switch {
	case r.Type == TypePSUM && r.AfterLinking:
		return refuse(508, "PSUM after linking")
	case r.Type == TypePSUM && r.Space != ir.AddrLocal:
		return refuse(509, "PSUM in address space "+r.Space.String())
	case r.Type == TypeSB && r.AfterLinking:
		return refuse(510, "SB after linking")
	case r.Type == TypeSB && r.Space != ir.AddrLocal:
		return refuse(511, "SB in address space "+r.Space.String())
	}
	return Allocator{r}, nil
}

// Run places what the registration says on one function. The options' address space is the registration's. An allocator of
// registers refuses: registers are no locations.
func (a Allocator) Run(m *ir.Module, f ir.Func, ws *Workspace, opt Options) (Metrics, error) {
	opt.AddrSpace = a.reg.Space
	switch a.reg.Type {
	case TypeSB:
		return SB(m, f, ws, opt)
	case TypePSUM:
		return PSUM(m, f, ws, opt)
	case TypeDRAM:
		return DRAM(m, f, ws, opt)
	}
	return Metrics{}, target.Errorf(target.Bug, "%s places no locations", a.reg.Name)
}
