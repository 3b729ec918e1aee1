package isa

// kind says how a field is spelled on the wire and which width its member has.
type kind uint8

const (
	kConst   kind = iota // one byte that must be lo; no member
	kSat                 // bit 0 of byte 1; uint8 member
	kU8                  // uint8 member
	kU16                 // uint32 member
	kU32                 // uint32 member
	kU64                 // uint64 member
	kI16                 // int32 member
	kI32                 // int32 member
	kU24                 // uint32 member
	kRun                 // uint32 member 1..65536, 65536 spelled 0, 16 bits
	kLo4                 // uint8 member in the low nibble
	kHi4                 // uint8 member in the high nibble
	kDtype               // element type tag, a byte
	kDtypeMx             // packed element type tag, a byte
	kDtypeLo             // element type tag in the low nibble
	kDtypeHi             // element type tag in the high nibble
	kAlu                 // ALU byte
	kAcc                 // accumulator command byte
	kAccHi               // accumulator command in the high nibble
	kAccAct              // accumulator command byte, Idle spelled as ZeroAccumulate
	kFunc                // activation function byte
	kPtr                 // ADDR4 word
	kImm                 // immediate word; its source code is the member src
	kDesc                // tensor descriptor of rank n: address, n steps, n counts
	kBytes               // n raw bytes
	kName                // n bytes, NUL padded, at least one NUL
	numKinds
)

// wireBytes is the width of each kind on the wire; 0 = depends on n.
var wireBytes = [numKinds]uint8{
	kConst: 1, kSat: 1, kU8: 1, kU16: 2, kU32: 4, kU64: 8, kI16: 2, kI32: 4, kU24: 3, kRun: 2, kLo4: 1, kHi4: 1, kDtype: 1,
	kDtypeMx: 1, kDtypeLo: 1, kDtypeHi: 1, kAlu: 1, kAcc: 1, kAccHi: 1, kAccAct: 1, kFunc: 1, kPtr: 4, kImm: 4,
}

// memberBytes is the width of the member behind each kind; 0 = depends on n.
var memberBytes = [numKinds]uint8{
	kSat: 1, kU8: 1, kU16: 4, kU32: 4, kU64: 8, kI16: 4, kI32: 4, kU24: 4, kRun: 4, kLo4: 1, kHi4: 1, kDtype: 1, kDtypeMx: 1,
	kDtypeLo: 1, kDtypeHi: 1, kAlu: 1, kAcc: 1, kAccHi: 1, kAccAct: 1, kFunc: 1, kPtr: 4, kImm: 4,
}

// kindNames are the spellings of FORMS.md.
var kindNames = [numKinds]string{
	"constant", "bit", "u8", "u16", "u32", "u64", "i16", "i32", "u24", "u16 run (65536 = 0)", "u4 low", "u4 high", "dtype tag",
	"packed dtype tag", "dtype tag low nibble", "dtype tag high nibble", "ALU byte", "accumulator byte",
	"accumulator high nibble", "accumulator byte (idle = 3)", "function byte", "ADDR4", "immediate word", "descriptor",
	"bytes", "name",
}

// Flags of a descriptor or pointer field.
const (
	fWrite    = 1 << iota // the operand is written: PSUM takes only some types
	fOptional             // all-zero bytes mean that the operand is absent
	fPSUM                 // must be in PSUM
	fSBUF                 // must be in SBUF
	fIndirect             // ADDR4 bit 29 is allowed: the address of an index list
	fVector               // one run of 8 elements
	fQuiet                // the disassembler shows it as part of another field
	fHex                  // bits rather than a number: shown in hex
)

// field is one field of a form. off is the byte offset in the bundle; n the rank of a descriptor or the bytes of a name;
// mem the member of Inst. dt and par are, for a descriptor, the members with its element type and partition count; for an
// immediate dt is the member with its source code. ext is the place of a fourth axis that does not fit the slot.
// lo..hi bounds an integer; set, when not zero, lists its legal values below 64.
type field struct {
	name    string
	kind    kind
	off     uint8
	n       uint8
	flags   uint8
	ext     uint8
	mem     uint16
	dt, par uint16
	lo, hi  uint32
	set     uint64
}

// width is the bytes of the field in the bundle.
func (f *field) width() int {
	switch f.kind {
	case kDesc:
		return 4 + 4*int(f.n)
	case kBytes, kName:
		return int(f.n)
	}
	return int(wireBytes[f.kind])
}

// mask sets the bits of the field in the 64 bytes of a bundle.
func (f *field) mask(m *Bundle) {
	var bits byte = 0xFF
	switch f.kind {
	case kSat:
		bits = 0x01
	case kLo4, kDtypeLo:
		bits = 0x0F
	case kHi4, kDtypeHi, kAccHi:
		bits = 0xF0
	}
	for i := 0; i < f.width(); i++ {
		m[int(f.off)+i] |= bits
	}
	if f.ext != 0 {
		for i := 0; i < 4; i++ {
			m[int(f.ext)+i] |= 0xFF
		}
	}
}

// memberWidth is the bytes that the field fills in Inst.
func (f *field) memberWidth() int {
	switch f.kind {
	case kConst:
		return 0
	case kDesc:
		return int(descSize)
	case kBytes:
		return int(f.n)
	case kName:
		return int(f.n)
	}
	return int(memberBytes[f.kind])
}

func fixed(name string, off uint8, v uint32) field {
	return field{name: name, kind: kConst, off: off, lo: v, mem: noMember}
}

func num(name string, k kind, off uint8, mem uint16) field {
	f := field{name: name, kind: k, off: off, mem: mem}
	switch k {
	case kU8:
		f.hi = 0xFF
	case kLo4, kHi4:
		f.hi = 0xF
	case kU16:
		f.hi = 0xFFFF
	case kU24:
		f.hi = 0xFFFFFF
	case kU32:
		f.hi = 0xFFFFFFFF
	}
	return f
}

func u8(name string, off uint8, mem uint16) field { return num(name, kU8, off, mem) }

// u8in is a byte with bounds.
func u8in(name string, off uint8, mem uint16, lo, hi uint32) field {
	f := u8(name, off, mem)
	f.lo, f.hi = lo, hi
	return f
}

// u8of is a byte with a list of legal values, each below 64.
func u8of(name string, off uint8, mem uint16, vals ...uint) field {
	f := u8(name, off, mem)
	for _, v := range vals {
		f.set |= 1 << v
	}
	return f
}

// bits32 is a word of raw bits.
func bits32(name string, off uint8, mem uint16) field {
	f := num(name, kU32, off, mem)
	f.flags = fHex
	return f
}

func dtype(name string, off uint8, mem uint16) field { return num(name, kDtype, off, mem) }

// dtypes is a byte with two element types: the first in the low nibble.
func dtypes(lo string, mlo uint16, hi string, mhi uint16, off uint8) []field {
	return []field{num(lo, kDtypeLo, off, mlo), num(hi, kDtypeHi, off, mhi)}
}

func parts(off uint8) field { return u8in("partitions", off, mParts, 1, 128) }

// imm is an immediate word and its source code byte.
func imm(name string, codeOff, off uint8, msrc, mem uint16) []field {
	code := u8in(name+" source", codeOff, msrc, 0, 2)
	code.flags = fQuiet
	return []field{
		code,
		{name: name, kind: kImm, off: off, mem: mem, dt: msrc},
	}
}

// read and write are descriptors of rank n whose element type and partition count are in the members dt and par.
func read(name string, off, n uint8, mem, dt, par uint16, flags uint8) field {
	return field{name: name, kind: kDesc, off: off, n: n, mem: mem, dt: dt, par: par, flags: flags}
}

func write(name string, off, n uint8, mem, dt, par uint16, flags uint8) field {
	return read(name, off, n, mem, dt, par, flags|fWrite)
}

// syncBand is the wait and update that sit at 0x04..0x0B of every bundle that has them.
func syncBand() []field {
	return quiet(
		u8("wait mode", 0x04, mWaitMode), u8("wait semaphore", 0x05, mWaitSem),
		u8("update mode", 0x06, mUpdateMode), u8("update semaphore", 0x07, mUpdateSem),
		num("sync value", kU32, 0x08, mSyncValue))
}

func quiet(fs ...field) []field {
	for i := range fs {
		fs[i].flags |= fQuiet
	}
	return fs
}

// rows joins single fields and groups into the field list of a form.
func rows(items ...any) []field {
	var out []field
	for _, it := range items {
		switch v := it.(type) {
		case field:
			out = append(out, v)
		case []field:
			out = append(out, v...)
		default:
			panic("isa: a form row is neither a field nor a group")
		}
	}
	return out
}
