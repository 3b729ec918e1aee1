package isa

import (
	"encoding/binary"
	"reflect"
	"unsafe"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// layout is a form made ready for one pass over its rows: the bits of the bundle that it does not cover and the words of
// Inst that it does not use, both of which must be zero.
type layout struct {
	*form
	free   [8]uint64
	unused [instWords]uint64
}

const instWords = instSize / 8

// forms is the whole table, in the order of FORMS.md.
var forms = func() (all []form) {
	for _, t := range [][]form{formsPE, formsAct, formsALU, formsSpecial, formsControl, formsDMA} {
		all = append(all, t...)
	}
	return all
}()

// gens are the generations that have an encoder, by genIndex.
var gens = func() (g [3]*target.Generation) {
	for i := range g {
		g[i], _ = target.ByLevel(20 + 10*i)
	}
	return g
}()

// index finds the layout of an opcode on a generation.
var index = func() (ix [3][256]*layout) {
	for i := range forms {
		l := newLayout(&forms[i])
		for _, op := range l.ops {
			for g := range ix {
				if (l.gens&opTable[op].gens)>>g&1 == 0 {
					continue
				}
				if ix[g][op] != nil {
					panic("isa: two forms claim " + op.String())
				}
				ix[g][op] = l
			}
		}
	}
	return ix
}()

func newLayout(f *form) *layout {
	l := &layout{form: f}
	m := Bundle{0xFF, 0xFE}
	var used [instSize]byte
	use := func(at uint16, n int) {
		for i := 0; i < n; i++ {
			used[int(at)+i] = 0xFF
		}
	}
	use(uint16(unsafe.Offsetof(z.Opcode)), 1)
	walkMembers(func(name string, at, size uintptr) {
		if name == "_" { // padding may hold anything
			use(uint16(at), int(size))
		}
	})
	for i := range f.rows {
		r := &f.rows[i]
		r.mask(&m)
		if r.mem != noMember {
			use(r.mem, r.memberWidth())
		}
		if r.kind == kName { // a longer name is an error of the slot
			use(r.mem, len(z.Name))
		}
	}
	for i := range l.free {
		l.free[i] = ^binary.LittleEndian.Uint64(m[8*i:])
	}
	for i := range l.unused {
		l.unused[i] = ^*(*uint64)(unsafe.Pointer(&used[8*i]))
	}
	return l
}

// idle names a member that the form does not use but the instruction sets, for the error message.
func (l *layout) idle(in *Inst) string {
	for i := range l.unused {
		w := *(*uint64)(unsafe.Add(unsafe.Pointer(in), 8*i)) & l.unused[i]
		if w == 0 {
			continue
		}
		at := uint16(8 * i)
		for b := 0; b < 8; b++ {
			if *(*uint8)(unsafe.Add(unsafe.Pointer(&w), b)) != 0 {
				return memberAt(at + uint16(b))
			}
		}
	}
	return "a member"
}

// memberAt is the name of the member of Inst that holds a byte.
func memberAt(byteAt uint16) string {
	found := "a member"
	walkMembers(func(name string, at, size uintptr) {
		if at <= uintptr(byteAt) && uintptr(byteAt) < at+size {
			found = name
		}
	})
	return found
}

// walkMembers visits the members of Inst, those of nested structs as Outer.Inner; padding is named "_".
func walkMembers(visit func(name string, at, size uintptr)) {
	t := reflect.TypeOf(z)
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		if f.Type.Kind() != reflect.Struct {
			visit(f.Name, f.Offset, f.Type.Size())
			continue
		}
		for j := 0; j < f.Type.NumField(); j++ {
			in := f.Type.Field(j)
			name := f.Name + "." + in.Name
			if in.Name == "_" {
				name = "_"
			}
			visit(name, f.Offset+in.Offset, in.Type.Size())
		}
	}
}
