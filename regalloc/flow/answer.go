package flow

import "strconv"

// Place is where a value is: a register of its class, or a stack slot. Registers and slots count from 0.
type Place uint32

// NoPlace is nowhere.
const NoPlace = ^Place(0)

const slotBit = Place(1) << 31

// Reg is the place of register r.
func Reg(r int) Place { return Place(r) }

// Slot is the place of slot s.
func Slot(s int) Place { return slotBit | Place(s) }

// IsSlot reports a stack slot. Asked of NoPlace the answer has no meaning.
func (p Place) IsSlot() bool { return p&slotBit != 0 }

// Index is the number of the register or slot.
func (p Place) Index() int { return int(p &^ slotBit) }

func (p Place) String() string {
	switch {
	case p == NoPlace:
		return "nowhere"
	case p.IsSlot():
		return "s" + strconv.Itoa(p.Index())
	}
	return "r" + strconv.Itoa(p.Index())
}

// Move copies a value of class Class before instruction At. 16 bytes.
type Move struct {
	At       uint32
	Class    Class
	From, To Place
}

// Answer is what an allocator found. Place has one entry for each row of Func.Ops: where an operand is read, a result is
// written, where a parameter stands when its block is entered, and where the argument of an edge stands when the branch is taken, which is
// the place of the parameter that it feeds. Moves are in order of At, and those of one instruction happen one after the other.
//
// Along an edge nothing happens: the moves that bring arguments to parameters stand before the branch when the block has one successor,
// else before the first instruction of the target, which then has one predecessor. In the second case the argument's row says where the
// value was at the branch and the parameter's row where it is at the head of the target, before the moves: the same place.
type Answer struct {
	Place []Place
	Moves []Move
	Slots int // number of slots
}

// Counts are the moves of an answer by kind.
type Counts struct{ Stores, Loads, Copies int }

// Total is the number of moves.
func (c Counts) Total() int { return c.Stores + c.Loads + c.Copies }

// Add takes in the moves of another answer.
func (c *Counts) Add(o Counts) {
	c.Stores, c.Loads, c.Copies = c.Stores+o.Stores, c.Loads+o.Loads, c.Copies+o.Copies
}

// Count adds up the moves.
func (a *Answer) Count() (c Counts) {
	for i := range a.Moves {
		switch m := &a.Moves[i]; {
		case m.To.IsSlot():
			c.Stores++
		case m.From.IsSlot():
			c.Loads++
		default:
			c.Copies++
		}
	}
	return c
}
