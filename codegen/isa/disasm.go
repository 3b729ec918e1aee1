package isa

import (
	"math"
	"strconv"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// mnemonicWidth is the column where operands begin.
const mnemonicWidth = 24

// Disasm appends one line of text, without a line end, for a bundle of a generation. It never fails: what Decode refuses is
// shown with the reason and the raw bytes. Fields print in table order as name=value; zero fields that may be zero are
// left out; wait and update come last.
//
// Patterns print as place[step:count,…], fastest axis first: sb(partition,byte), psum(partition,bank,byte in bank), reg(n).
func Disasm(level int, b *Bundle, dst []byte) []byte {
	var in Inst
	op := Opcode(b[0])
	start := len(dst)
	dst = append(dst, op.String()...)
	err := Decode(level, b, &in)
	if err != nil && !op.Known() {
		dst = append(dst, " 0x"...)
		dst = appendHex(dst, b[:1])
	}
	dst = pad(dst, start+mnemonicWidth)
	if err != nil {
		dst = append(dst, "raw "...)
		dst = appendHex(dst, b[:])
		dst = append(dst, " ; "...)
		return append(dst, err.Error()...)
	}
	g, _ := genIndex(level)
	l := index[g][op]
	for i := range l.rows {
		dst = appendField(dst, &l.rows[i], &in)
	}
	dst = appendSync(dst, &in)
	for len(dst) > start && dst[len(dst)-1] == ' ' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// DisasmStream appends a stream, one line a bundle with its index; trailing bytes that make no bundle are named.
func DisasmStream(level int, stream, dst []byte) []byte {
	n := len(stream) / BundleSize
	for i := 0; i < n; i++ {
		at := len(dst)
		dst = strconv.AppendInt(dst, int64(i), 10)
		dst = pad(dst, at+8)
		dst = Disasm(level, (*Bundle)(stream[i*BundleSize:]), dst)
		dst = append(dst, '\n')
	}
	if rest := len(stream) - n*BundleSize; rest != 0 {
		dst = append(dst, "; "...)
		dst = strconv.AppendInt(dst, int64(rest), 10)
		dst = append(dst, " bytes after the last bundle\n"...)
	}
	return dst
}

func appendField(dst []byte, f *field, in *Inst) []byte {
	if f.flags&fQuiet != 0 || f.kind == kConst {
		return dst
	}
	var v int64
	switch f.kind {
	case kSat, kU8, kLo4, kHi4, kFunc, kAlu, kAcc, kAccHi, kAccAct, kDtype, kDtypeLo, kDtypeHi, kDtypeMx:
		v = int64(get8(in, f.mem))
	case kU16, kU24, kU32, kRun, kPtr, kImm:
		v = int64(get32(in, f.mem))
	case kI16, kI32:
		v = int64(int32(get32(in, f.mem)))
	case kU64:
		v = int64(get64(in, f.mem))
	}
	at := len(dst)
	for i := 0; i < len(f.name); i++ {
		c := f.name[i]
		if c == ' ' {
			c = '_'
		}
		dst = append(dst, c)
	}
	dst = append(dst, '=')
	switch f.kind {
	case kDtype, kDtypeLo, kDtypeHi, kDtypeMx:
		dst = append(dst, target.Dtype(v).String()...)
	case kAlu:
		if v == 0 {
			return dst[:at]
		}
		dst = append(dst, target.AluOp(v).String()...)
	case kAcc, kAccHi, kAccAct:
		if v == 0 {
			return dst[:at]
		}
		dst = append(dst, target.AccCmd(v).String()...)
	case kFunc:
		dst = append(dst, target.ActFunc(v).String()...)
	case kPtr:
		if v == 0 {
			return dst[:at]
		}
		dst = appendPlace(dst, uint32(v))
	case kImm:
		switch get8(in, f.dt) {
		case SrcPointer:
			if v == 0 {
				return dst[:at]
			}
			dst = appendPlace(append(dst, '*'), uint32(v))
		case SrcInline:
			dst = strconv.AppendFloat(dst, float64(math.Float32frombits(uint32(v))), 'g', -1, 32)
		default:
			dst = strconv.AppendInt(append(dst, 'r'), v, 10)
		}
	case kDesc:
		d := descOf(in, f.mem)
		if d.N == 0 {
			return dst[:at]
		}
		dst = appendPlace(dst, d.Addr)
		dst = append(dst, '[')
		for i := uint32(0); i < d.N; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, int64(d.Step[i]), 10)
			dst = append(dst, ':')
			dst = strconv.AppendUint(dst, uint64(d.Num[i]), 10)
		}
		dst = append(dst, ']')
	case kName:
		dst = append(dst, in.NameBytes()...)
	case kBytes:
		b := bytesOf(in, f)
		if zero(b) {
			return dst[:at]
		}
		dst = appendHex(dst, b)
	default:
		if v == 0 && f.lo == 0 {
			return dst[:at]
		}
		switch {
		case f.mem == mFlags:
			dst = appendFlags(dst, uint8(v))
		case f.flags&fHex != 0 || f.mem == mVariant && v > 0xF:
			dst = append(dst, "0x"...)
			dst = strconv.AppendUint(dst, uint64(v), 16)
		case f.kind == kU64:
			dst = strconv.AppendUint(dst, uint64(v), 10)
		default:
			dst = strconv.AppendInt(dst, v, 10)
		}
	}
	return append(dst, ' ')
}

// appendFlags spells accumulation flags by name.
func appendFlags(dst []byte, v uint8) []byte {
	for i, name := range [3]string{"start", "stop", "accumulate"} {
		if v>>i&1 == 0 {
			continue
		}
		if v&(1<<i-1) != 0 {
			dst = append(dst, '|')
		}
		dst = append(dst, name...)
	}
	return dst
}

func appendPlace(dst []byte, a uint32) []byte {
	if a&AddrRegister != 0 {
		dst = append(dst, "reg("...)
		dst = strconv.AppendUint(dst, uint64(a&^AddrRegister), 10)
		return append(dst, ')')
	}
	if a&AddrIndirect != 0 {
		dst = append(dst, '@')
		a &^= AddrIndirect
	}
	p, _ := PlaceOf(a)
	if p.Space == target.SpaceSB {
		dst = append(dst, "sb("...)
		dst = strconv.AppendInt(dst, int64(p.Partition), 10)
		dst = append(dst, ',')
		dst = strconv.AppendUint(dst, uint64(p.Off), 10)
		return append(dst, ')')
	}
	dst = append(dst, "psum("...)
	dst = strconv.AppendInt(dst, int64(p.Partition), 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, int64(p.Bank), 10)
	dst = append(dst, ',')
	dst = strconv.AppendUint(dst, uint64(p.Off%target.PSUMBankPitch), 10)
	return append(dst, ')')
}

func appendSync(dst []byte, in *Inst) []byte {
	s := &in.Sync
	dst = appendWait(dst, s.WaitMode, s.WaitSem, s.Value)
	dst = appendWait(dst, in.Wait1Mode, in.Wait1Sem, in.Wait1Value)
	v := s.Value
	if in.Opcode == OpEventSemaphore {
		v = in.UpdateValue
	}
	if s.UpdateMode == UpdateNone {
		return dst
	}
	dst = append(dst, "; update "...)
	if s.UpdateMode == UpdateEvent {
		dst = append(dst, 'e')
	} else {
		dst = append(dst, 's')
	}
	dst = strconv.AppendUint(dst, uint64(s.UpdateSem), 10)
	switch s.UpdateMode {
	case UpdateInc:
		return append(dst, "+1 "...)
	case UpdateDec:
		return append(dst, "-1 "...)
	case UpdateAdd:
		dst = append(dst, '+')
	case UpdateSub:
		dst = append(dst, '-')
	case UpdateWrite:
		dst = append(dst, '=')
	default:
		return append(dst, ' ')
	}
	dst = strconv.AppendUint(dst, uint64(v), 10)
	return append(dst, ' ')
}

func appendWait(dst []byte, mode, sem uint8, v uint32) []byte {
	switch mode {
	case WaitNone:
		return dst
	case WaitEvent:
		dst = append(dst, "; wait e"...)
		dst = strconv.AppendUint(dst, uint64(sem), 10)
		return append(dst, ' ')
	}
	dst = append(dst, "; wait s"...)
	dst = strconv.AppendUint(dst, uint64(sem), 10)
	dst = append(dst, ">="...)
	if mode == WaitGEReg {
		dst = append(dst, 'r')
	}
	dst = strconv.AppendUint(dst, uint64(v), 10)
	return append(dst, ' ')
}

func appendHex(dst, b []byte) []byte {
	const digits = "0123456789abcdef"
	for _, c := range b {
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst
}

func pad(dst []byte, to int) []byte {
	dst = append(dst, ' ')
	for len(dst) < to {
		dst = append(dst, ' ')
	}
	return dst
}
