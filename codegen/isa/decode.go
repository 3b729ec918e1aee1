package isa

import (
	"encoding/binary"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Decode reads a bundle of a generation into in, which it overwrites whole. It is strict: it takes exactly the bundles that
// Encode can write. Errors are of class User for a malformed bundle and Unsupported for an opcode that the generation
// lacks; in is unspecified after an error.
func Decode(level int, b *Bundle, in *Inst) error {
	g, ok := genIndex(level)
	if !ok {
		return target.Errorf(target.Unsupported, "isa: level %d has no decoder; use 20, 30 or 40", level)
	}
	op := Opcode(b[0])
	l := index[g][op]
	if l == nil {
		return missing(g, op)
	}
	if b[1]&^1 != lengthByte {
		return target.Errorf(target.User, "%s: length byte is 0x%02X, want 0x10", op, b[1])
	}
	for i, m := range l.free {
		if binary.LittleEndian.Uint64(b[8*i:])&m != 0 {
			return target.Errorf(target.User, "%s: reserved byte %s is not zero", op, reservedAt(b, l))
		}
	}
	*in = Inst{Opcode: op}
	for i := range l.rows {
		f := &l.rows[i]
		at := b[f.off:]
		switch f.kind {
		case kConst:
			if at[0] != byte(f.lo) {
				return target.Errorf(target.User, "%s: %s is 0x%02X, want 0x%02X", op, f.name, at[0], f.lo)
			}
		case kSat:
			put8(in, f.mem, at[0]&1)
		case kU8:
			if !f.holds(uint32(at[0])) {
				return outside(target.User, op, f, int64(at[0]))
			}
			put8(in, f.mem, at[0])
		case kLo4, kHi4:
			v := at[0] & 0xF
			if f.kind == kHi4 {
				v = at[0] >> 4
			}
			if !f.holds(uint32(v)) {
				return outside(target.User, op, f, int64(v))
			}
			put8(in, f.mem, v)
		case kU16, kRun:
			v := uint32(binary.LittleEndian.Uint16(at))
			if f.kind == kRun && v == 0 {
				v = 65536
			}
			if !f.holds(v) {
				return outside(target.User, op, f, int64(v))
			}
			put32(in, f.mem, v)
		case kU24:
			put32(in, f.mem, uint32(at[0])|uint32(at[1])<<8|uint32(at[2])<<16)
		case kU32:
			v := binary.LittleEndian.Uint32(at)
			if !f.holds(v) {
				return outside(target.User, op, f, int64(v))
			}
			put32(in, f.mem, v)
		case kI32, kPtr, kImm:
			put32(in, f.mem, binary.LittleEndian.Uint32(at))
		case kU64:
			put64(in, f.mem, binary.LittleEndian.Uint64(at))
		case kI16:
			put32(in, f.mem, uint32(int32(int16(binary.LittleEndian.Uint16(at)))))
		case kDtype, kDtypeLo, kDtypeHi, kDtypeMx:
			t := at[0]
			switch f.kind {
			case kDtypeLo:
				t &= 0xF
			case kDtypeHi:
				t >>= 4
			}
			d := dtypeOf(g, t)
			if f.kind == kDtypeMx {
				d = mxType(t)
			}
			if d == target.NumDtypes {
				return target.Errorf(target.User, "%s: %s tag %d is not an element type of %s", op, f.name, t, gens[g].Core)
			}
			put8(in, f.mem, uint8(d))
		case kAlu:
			a, ok := AluOf(gens[g].Level, at[0])
			if !ok {
				return target.Errorf(target.User, "%s: %s 0x%02X is not an ALU operator of %s", op, f.name, at[0], gens[g].Core)
			}
			put8(in, f.mem, uint8(a))
		case kAcc, kAccHi, kAccAct:
			v := at[0]
			if f.kind == kAccHi {
				v >>= 4
			}
			c, ok := AccOf(v)
			if !ok || f.kind == kAccAct && v == 0 {
				return target.Errorf(target.User, "%s: %s %d is not an accumulator command", op, f.name, v)
			}
			put8(in, f.mem, uint8(c))
		case kFunc:
			a, ok := FuncOf(at[0])
			if !ok {
				return target.Errorf(target.User, "%s: %s %d is not an activation function", op, f.name, at[0])
			}
			put8(in, f.mem, uint8(a))
		case kBytes, kName:
			copy(bytesOf(in, f), at[:f.n])
		case kDesc:
			if err := getDesc(op, f, b, descOf(in, f.mem)); err != nil {
				return err
			}
		}
	}
	return l.check(target.User, g, in)
}

// getDesc reads a slot; only the packed spelling is legal: no count 0, unused axes 1, 1 and last.
func getDesc(op Opcode, f *field, b *Bundle, d *Desc) error {
	if f.flags&fOptional != 0 && zero(b[f.off:int(f.off)+f.width()]) {
		return nil
	}
	d.Addr = binary.LittleEndian.Uint32(b[f.off:])
	rank := int(f.n)
	if f.ext != 0 {
		rank++
	}
	ended := false
	for k := 0; k < rank; k++ {
		s, n := axisAt(f, k)
		step, num := int16(binary.LittleEndian.Uint16(b[s:])), binary.LittleEndian.Uint16(b[n:])
		switch {
		case num == 0:
			return target.Errorf(target.User, "%s: %s count of axis %d is 0", op, f.name, k)
		case num == 1:
			if step != 1 {
				return target.Errorf(target.User, "%s: %s unused axis %d has step %d, want 1", op, f.name, k, step)
			}
			ended = true
		case ended:
			return target.Errorf(target.User, "%s: %s axis %d follows an unused axis", op, f.name, k)
		default:
			d.Step[d.N], d.Num[d.N] = int32(step), uint32(num)
			d.N++
		}
	}
	if d.N == 0 {
		d.N, d.Step[0], d.Num[0] = 1, 1, 1
	}
	return nil
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// reservedAt names the first byte with bits outside the form.
func reservedAt(b *Bundle, l *layout) string {
	for i := range b {
		free := byte(l.free[i/8] >> (8 * (i % 8)))
		if b[i]&free != 0 {
			return hexByte(i) + " = " + hexByte(int(b[i]))
		}
	}
	return "?"
}
