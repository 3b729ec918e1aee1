package ir

import "strconv"

// One named uint32 a kind. Zero means none; row 0 of every table is reserved.
type (
	Func  uint32
	Block uint32
	Inst  uint32
	Set   uint32 // a logical tensor
	Loc   uint32 // one placement of a logical tensor
	AP    uint32 // a physical access pattern
	Sym   uint32 // a symbolic or register-addressed access pattern
	Reg   uint32
	Queue uint32
	Axis  uint32 // a loop axis
	Expr  uint32 // an affine expression
	Const uint32 // the data behind a constant set
)

func id(prefix string, n uint32) string { return prefix + strconv.FormatUint(uint64(n), 10) }

// The printed forms are those of the text IR for objects without a name of their own.

func (f Func) String() string  { return id("func", uint32(f)) }
func (b Block) String() string { return id("block", uint32(b)) }
func (i Inst) String() string  { return id("I-", uint32(i)) }
func (s Set) String() string   { return id("set", uint32(s)) }
func (l Loc) String() string   { return id("%", uint32(l)) }
func (a AP) String() string    { return id("ap", uint32(a)) }
func (r Reg) String() string   { return id("r", uint32(r)) }
func (q Queue) String() string { return id("q", uint32(q)) }
func (a Axis) String() string  { return id("i", uint32(a)) }
