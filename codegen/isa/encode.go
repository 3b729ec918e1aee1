package isa

import (
	"encoding/binary"
	"unsafe"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Byte 1 of every bundle: its length in dwords. QuantizeMx sets bit 0 to ask for saturation.
const lengthByte = 0x10

// Members are read and written by their place in Inst: a form row names the place, so that one loop serves all forms. The
// table test proves that each place is a member of the right width.
func get8(in *Inst, m uint16) uint8   { return *(*uint8)(unsafe.Add(unsafe.Pointer(in), m)) }
func get32(in *Inst, m uint16) uint32 { return *(*uint32)(unsafe.Add(unsafe.Pointer(in), m)) }
func get64(in *Inst, m uint16) uint64 { return *(*uint64)(unsafe.Add(unsafe.Pointer(in), m)) }

func put8(in *Inst, m uint16, v uint8)   { *(*uint8)(unsafe.Add(unsafe.Pointer(in), m)) = v }
func put32(in *Inst, m uint16, v uint32) { *(*uint32)(unsafe.Add(unsafe.Pointer(in), m)) = v }
func put64(in *Inst, m uint16, v uint64) { *(*uint64)(unsafe.Add(unsafe.Pointer(in), m)) = v }

func descOf(in *Inst, m uint16) *Desc { return (*Desc)(unsafe.Add(unsafe.Pointer(in), m)) }

func bytesOf(in *Inst, f *field) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(in), f.mem)), int(f.n))
}

// Encode writes one instruction as a bundle of a generation (level 20, 30, 40). It only asserts what earlier floors must
// have made true: an error names the form, the field, the value and the limit, and is of class Unsupported for an opcode
// that the generation lacks, else Limit. out is unspecified after an error. Unit axes of patterns are dropped here.
func Encode(level int, in *Inst, out *Bundle) error {
	g, ok := genIndex(level)
	if !ok {
		return target.Errorf(target.Unsupported, "isa: level %d has no encoder; use 20, 30 or 40", level)
	}
	l := index[g][in.Opcode]
	if l == nil {
		return missing(g, in.Opcode)
	}
	idle := uint64(0)
	for i := range l.unused {
		idle |= *(*uint64)(unsafe.Add(unsafe.Pointer(in), 8*i)) & l.unused[i]
	}
	if idle != 0 {
		return target.Errorf(target.Limit, "%s: %s is set, but the form has no such field on %s", in.Opcode, l.idle(in), gens[g].Core)
	}
	*out = Bundle{byte(in.Opcode), lengthByte}
	for i := range l.rows {
		f := &l.rows[i]
		at := out[f.off:]
		switch f.kind {
		case kConst:
			at[0] = byte(f.lo)
		case kSat:
			v := get8(in, f.mem)
			if v > 1 {
				return outside(target.Limit, in.Opcode, f, int64(v))
			}
			at[0] |= v
		case kU8:
			v := get8(in, f.mem)
			if !f.holds(uint32(v)) {
				return outside(target.Limit, in.Opcode, f, int64(v))
			}
			at[0] = v
		case kLo4, kHi4:
			v := get8(in, f.mem)
			if !f.holds(uint32(v)) {
				return outside(target.Limit, in.Opcode, f, int64(v))
			}
			if f.kind == kHi4 {
				v <<= 4
			}
			at[0] |= v
		case kU16, kRun:
			v := get32(in, f.mem)
			if !f.holds(v) {
				return outside(target.Limit, in.Opcode, f, int64(v))
			}
			binary.LittleEndian.PutUint16(at, uint16(v))
		case kU24:
			v := get32(in, f.mem)
			if !f.holds(v) {
				return outside(target.Limit, in.Opcode, f, int64(v))
			}
			at[0], at[1], at[2] = byte(v), byte(v>>8), byte(v>>16)
		case kU32:
			v := get32(in, f.mem)
			if !f.holds(v) {
				return outside(target.Limit, in.Opcode, f, int64(v))
			}
			binary.LittleEndian.PutUint32(at, v)
		case kI32, kPtr, kImm:
			binary.LittleEndian.PutUint32(at, get32(in, f.mem))
		case kU64:
			binary.LittleEndian.PutUint64(at, get64(in, f.mem))
		case kI16:
			v := int32(get32(in, f.mem))
			if v != int32(int16(v)) {
				return outside(target.Limit, in.Opcode, f, int64(v))
			}
			binary.LittleEndian.PutUint16(at, uint16(v))
		case kDtype, kDtypeLo, kDtypeHi, kDtypeMx:
			d := target.Dtype(get8(in, f.mem))
			t := dtypeTag(g, d)
			if f.kind == kDtypeMx {
				t = mxTag(d)
			}
			if t == noByte || t > 0xF && (f.kind == kDtypeLo || f.kind == kDtypeHi) {
				return target.Errorf(target.Limit, "%s: %s %s cannot be spelled in this field on %s", in.Opcode, f.name, d, gens[g].Core)
			}
			if f.kind == kDtypeHi {
				t <<= 4
			}
			at[0] |= t
		case kAlu:
			op := target.AluOp(get8(in, f.mem))
			if !op.LegalOn(gens[g].Level) {
				return target.Errorf(target.Limit, "%s: %s %s has no ALU byte on %s", in.Opcode, f.name, op, gens[g].Core)
			}
			at[0] = aluBytes[op]
		case kAcc, kAccHi, kAccAct:
			c := target.AccCmd(get8(in, f.mem))
			b, ok := AccByte(c)
			if !ok {
				return target.Errorf(target.Limit, "%s: %s %s has no byte; use AddAccumulate", in.Opcode, f.name, c)
			}
			if f.kind == kAccAct && b == 0 {
				b = accBytes[target.AccZeroAccumulate]
			}
			if f.kind == kAccHi {
				b <<= 4
			}
			at[0] |= b
		case kFunc:
			b, ok := FuncByte(target.ActFunc(get8(in, f.mem)))
			if !ok {
				return outside(target.Limit, in.Opcode, f, int64(get8(in, f.mem)))
			}
			at[0] = b
		case kBytes, kName:
			copy(at[:f.n], bytesOf(in, f))
		case kDesc:
			if err := putDesc(in.Opcode, f, descOf(in, f.mem), out); err != nil {
				return err
			}
		}
	}
	return l.check(target.Limit, g, in)
}

// holds reports whether an integer is legal in the field.
func (f *field) holds(v uint32) bool {
	if f.set != 0 {
		return v < 64 && f.set>>v&1 != 0
	}
	return v >= f.lo && v <= f.hi
}

// putDesc packs a pattern into its slot: unit axes dropped, unused axes 1, 1.
func putDesc(op Opcode, f *field, d *Desc, out *Bundle) error {
	if d.N == 0 && f.flags&fOptional != 0 {
		if *d != (Desc{}) {
			return target.Errorf(target.Limit, "%s: %s has no axes but is not empty", op, f.name)
		}
		return nil
	}
	if d.N == 0 || d.N > 4 {
		return target.Errorf(target.Limit, "%s: %s has %d axes; 1 to 4 are possible", op, f.name, d.N)
	}
	binary.LittleEndian.PutUint32(out[f.off:], d.Addr)
	rank := int(f.n)
	if f.ext != 0 {
		rank++
	}
	k := 0
	for i := 0; i < int(d.N); i++ {
		step, num := d.Step[i], d.Num[i]
		if num == 1 {
			continue
		}
		if num-1 >= 0xFFFF {
			return target.Errorf(target.Limit, "%s: %s count %d of axis %d is outside 1..65535", op, f.name, num, i)
		}
		if step != int32(int16(step)) {
			return target.Errorf(target.Limit, "%s: %s step %d of axis %d does not fit int16", op, f.name, step, i)
		}
		if k == rank {
			return target.Errorf(target.Limit, "%s: %s has more than %d axes; merge axes or split the instruction", op, f.name, rank)
		}
		putAxis(out, f, k, uint16(step), uint16(num))
		k++
	}
	for ; k < rank; k++ {
		putAxis(out, f, k, 1, 1)
	}
	for i := d.N; i < 4; i++ {
		if d.Step[i] != 0 || d.Num[i] != 0 {
			return target.Errorf(target.Limit, "%s: %s has %d axes but axis %d is not empty", op, f.name, d.N, i)
		}
	}
	return nil
}

// axisAt is where the step and the count of an axis are in the bundle.
func axisAt(f *field, k int) (step, num int) {
	if k == int(f.n) {
		return int(f.ext), int(f.ext) + 2
	}
	return int(f.off) + 4 + 2*k, int(f.off) + 4 + 2*int(f.n) + 2*k
}

func putAxis(out *Bundle, f *field, k int, step, num uint16) {
	s, n := axisAt(f, k)
	binary.LittleEndian.PutUint16(out[s:], step)
	binary.LittleEndian.PutUint16(out[n:], num)
}

// missing says why an opcode has no layout on a generation.
func missing(g int, op Opcode) error {
	switch {
	case !op.Known():
		return target.Errorf(target.Unsupported, "opcode 0x%02X is not an instruction", uint8(op))
	case opTable[op].gens>>g&1 == 0:
		return target.Errorf(target.Unsupported, "%s (0x%02X) does not exist on %s", op, uint8(op), gens[g].Core)
	}
	return target.Errorf(target.Unsupported, "%s (0x%02X) has a name but no laid-out form", op, uint8(op))
}

// outside is the error of an integer that its field cannot hold.
func outside(c target.Class, op Opcode, f *field, v int64) error {
	switch {
	case f.set != 0:
		return target.Errorf(c, "%s: %s %d is not one of %s", op, f.name, v, setString(f.set))
	case f.kind == kI16:
		return target.Errorf(c, "%s: %s %d does not fit int16", op, f.name, v)
	}
	return target.Errorf(c, "%s: %s %d is outside %d..%d", op, f.name, v, f.lo, f.hi)
}
