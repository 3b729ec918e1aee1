package ir

// Edits collects insertions and deletions of one pass and applies them in one linear merge of every block's order: moving
// nothing until then keeps positions valid while a pass looks around. Reusable; not for concurrent use.
type Edits struct {
	items   []edit
	head    []uint32 // per instruction: first edit, 1-based
	tail    []uint32
	order   []Inst
	deleted int
}

type edit struct {
	next  uint32
	inst  Inst
	where uint8
}

const (
	editBefore uint8 = iota
	editAfter
	editDelete
)

// Before puts n right before anchor, after what was put there earlier.
func (e *Edits) Before(anchor, n Inst) { e.add(anchor, n, editBefore) }

// First puts n before anchor, ahead of what was put there earlier.
func (e *Edits) First(anchor, n Inst) {
	if int(anchor) >= len(e.head) || e.head[anchor] == 0 {
		e.Before(anchor, n)
		return
	}
	e.items = append(e.items, edit{next: e.head[anchor], inst: n, where: editBefore})
	e.head[anchor] = uint32(len(e.items))
}

// After puts n right after anchor, after what was put there earlier.
func (e *Edits) After(anchor, n Inst) { e.add(anchor, n, editAfter) }

// Delete drops an instruction from the order; its row stays.
func (e *Edits) Delete(i Inst) { e.add(i, 0, editDelete); e.deleted++ }

// Len is the number of pending edits.
func (e *Edits) Len() int { return len(e.items) }

func (e *Edits) add(anchor, n Inst, where uint8) {
	for int(anchor) >= len(e.head) {
		e.head = append(e.head, 0)
		e.tail = append(e.tail, 0)
	}
	e.items = append(e.items, edit{inst: n, where: where})
	id := uint32(len(e.items))
	if e.head[anchor] == 0 {
		e.head[anchor] = id
	} else {
		e.items[e.tail[anchor]-1].next = id
	}
	e.tail[anchor] = id
}

// Apply merges the pending edits into every block that an anchor stands in, and forgets them. A block without edits keeps
// its order list. Anchors must be instructions that are in their block's order.
func (e *Edits) Apply(m *Module) {
	if len(e.items) == 0 {
		return
	}
	for b := Block(1); int(b) < m.Blocks.Len(); b++ {
		old := m.OrderOf(b)
		touched := false
		for _, i := range old {
			if int(i) < len(e.head) && e.head[i] != 0 {
				touched = true
				break
			}
		}
		if !touched {
			continue
		}
		e.order = e.order[:0]
		for _, i := range old {
			if int(i) >= len(e.head) || e.head[i] == 0 {
				e.order = append(e.order, i)
				continue
			}
			keep := true
			for k := e.head[i]; k != 0; k = e.items[k-1].next {
				switch it := e.items[k-1]; it.where {
				case editBefore:
					e.order = append(e.order, it.inst)
				case editDelete:
					keep = false
				}
			}
			if keep {
				e.order = append(e.order, i)
			}
			for k := e.head[i]; k != 0; k = e.items[k-1].next {
				if it := e.items[k-1]; it.where == editAfter {
					e.order = append(e.order, it.inst)
				}
			}
		}
		m.SetOrder(b, e.order)
	}
	e.Reset()
}

// Reset drops pending edits.
func (e *Edits) Reset() {
	e.items = e.items[:0]
	clear(e.head)
	clear(e.tail)
	e.deleted = 0
}

// SetOrder gives a block a new program order; it is copied. A list that is no longer than the old one reuses its place.
func (m *Module) SetOrder(b Block, order []Inst) {
	r := m.Blocks.At(b)
	if int(r.Order.Len) >= len(order) {
		copy(m.Order.Of(r.Order), order)
		r.Order.Len = uint32(len(order))
		return
	}
	r.Order = m.Order.AddSlice(order)
}
