package tile

// Level is how far products reuse what they loaded. The lower levels are inputs for passes that optimise transfers: every
// value goes through DRAM, and each load moves one tile of 128×128 or 128×512.
type Level uint8

const (
	// L2 keeps blocks of both operands, and values between units, in SBUF.
	L2 Level = iota
	// L1 loads the stationary tiles of a row once, and a moving tile for each matmul.
	L1
	// L0 loads both operands of each matmul.
	L0
)

// keep says how long an operand of a product stays on chip.
type keep uint8

const (
	keepStream keep = iota // a few K tiles at a time, for one pass over K
	keepTile               // stationary: for one chunk of columns
	keepBlock              // stationary: of all row tiles of a block, for all chunks; moving: a chunk, for the tiles of a block
	keepWhole              // moving: all columns
)

// blocking is the loop nest of a product:
//
//	for each block of row tiles: for each chunk of columns: for each group of its row tiles: one pass over K
//
// The row tiles of a group have their banks open together, so that a moving tile serves them all.
type blocking struct {
	a, b       keep
	block      int64 // row tiles
	group      int64 // row tiles
	width      int64 // columns of a chunk
	segA, segB int64 // K tiles of one location, and of one transfer
	bytes      int64 // a partition, of both operands
}

// productSize is what the choice of a blocking depends on.
type productSize struct {
	tiles, cols, kt int64 // row tiles, columns, K tiles
	a, b            int64 // bytes of an element
	width           int64 // the most columns of a chunk
	evict           int64 // bytes a column of what the unit holds beside the operands
	turnA, turnB    bool
	rows            bool // a row tile finishes before the next starts: values of the unit need whole rows
}

const (
	// segmentBytes a partition is a moving load of 1 MiB: transfers come near their full rate, and products start before the
	// whole block is there.
	segmentBytes = 8 << 10
	// rowSegmentBytes is the run of a row that is loaded to be turned.
	rowSegmentBytes = 4 << 10
	// ringA and ringB are the segments of a streamed operand that are in flight or in use.
	ringA, ringB = 2, 4
	// stationaryBytes weighs one load of the array's stationary operand, about 128 cycles, by what DMA moves meanwhile.
	stationaryBytes = 16 << 10
)

// held is the most bytes a partition that the moving operand may take as a whole.
func (l *lowering) held() int64 { return l.budget / 4 }

// chooseBlocking takes the nest that moves the fewest bytes of those that fit: weight bytes once a block of tokens, the tokens
// once. What is moved again because nothing larger fits counts each time; so do, as bytes, loads of the stationary operand, and
// the room taken from values that could stay between units.
func (l *lowering) chooseBlocking(s *productSize) blocking {
	switch l.opt.Level {
	case L0:
		return s.sized(blocking{a: keepStream, b: keepStream, block: s.tiles, group: 1, width: s.oneBank(), segA: 1, segB: 1})
	case L1:
		return s.sized(blocking{a: keepBlock, b: keepStream, block: 1, group: 1, width: s.oneBank(), segA: 1, segB: 1})
	}
	limit := l.budget * 7 / 8
	best, bestCost := blocking{}, int64(-1)
	try := func(p blocking) bool {
		p = s.sized(p)
		if p.bytes+s.evict*min(p.width, s.cols) > limit {
			return false
		}
		if cost := s.cost(&p); bestCost < 0 || cost < bestCost || cost == bestCost && p.bytes < best.bytes {
			best, bestCost = p, cost
		}
		return true
	}
	tileA := s.kt * 128 * s.a
	if s.kt*s.cols*s.b <= l.held() {
		// The stationary rows pass by once, whatever the chunks are.
		p := blocking{a: keepBlock, b: keepWhole, block: 1, group: 1, width: s.width}
		if s.width >= s.cols {
			p.a, p.block = keepTile, s.tiles
		}
		if try(p) {
			return best
		}
	}
	if s.rows {
		try(blocking{a: keepBlock, b: keepStream, block: 1, group: 1, width: s.width})
	} else {
		wide := l.budget / 8 / (s.kt * s.b)
		for _, w := range [5]int64{wide - wide%bankColumns, 4 * bankColumns, 3 * bankColumns, 2 * bankColumns, bankColumns} {
			w = min(w, s.width)
			if w < min(bankColumns, s.width) {
				continue
			}
			try(blocking{a: keepTile, b: keepBlock, block: s.tiles, group: 1, width: w})
			one := s.sized(blocking{a: keepBlock, b: keepBlock, block: 1, group: 1, width: w})
			if most := 1 + (limit-one.bytes-s.evict*min(w, s.cols))/tileA; most >= 1 {
				passes := (s.tiles + most - 1) / most
				try(blocking{a: keepBlock, b: keepBlock, block: (s.tiles + passes - 1) / passes, group: 1, width: w})
			}
		}
		for g := int64(groupBanks); g > 0; g /= 2 {
			if g <= s.tiles || g == 1 {
				w := min(s.width, groupBanks/g*bankColumns)
				try(blocking{a: keepBlock, b: keepStream, block: g, group: g, width: w})
				try(blocking{a: keepStream, b: keepStream, block: g, group: g, width: w})
			}
		}
	}
	if bestCost < 0 {
		best = s.sized(blocking{a: keepStream, b: keepStream, block: 1, group: 1, width: s.width})
	}
	return best
}

// oneBank is the chunk of the levels that load tile by tile: a bank, or the whole row where values need it.
func (s *productSize) oneBank() int64 {
	if s.rows {
		return s.width
	}
	return min(s.width, bankColumns)
}

// sized fills in the segments that are not given, and the bytes.
func (s *productSize) sized(p blocking) blocking {
	w := min(p.width, s.cols)
	if p.b == keepStream {
		w = min(w, groupBanks*bankColumns)
	}
	if p.segA == 0 {
		p.segA = max(1, min(s.kt, rowSegmentBytes/(128*s.a)))
		p.segB = max(1, min(s.kt, segmentBytes/(w*s.b)))
	}
	segA := p.segA * 128 * s.a
	switch p.a {
	case keepStream:
		p.bytes = ringA * p.group * segA
	case keepTile:
		p.bytes = 2 * s.kt * 128 * s.a
	case keepBlock:
		p.bytes = p.block * s.kt * 128 * s.a
	}
	if s.turnA {
		p.bytes += 2 * segA
	}
	switch p.b {
	case keepStream:
		p.bytes += ringB * p.segB * w * s.b
	case keepBlock:
		p.bytes += 2 * s.kt * w * s.b
	case keepWhole:
		p.bytes += s.kt * s.cols * s.b
	}
	if s.turnB {
		p.bytes += 2 * p.segB * 128 * s.b
	}
	return p
}

// cost weighs a nest by the bytes that it moves.
func (s *productSize) cost(p *blocking) int64 {
	up := func(a, b int64) int64 { return (a + b - 1) / b }
	w := min(p.width, s.cols)
	passA, passB := int64(1), int64(1)
	switch p.a {
	case keepTile:
		passA = up(s.cols, w)
	case keepStream:
		passA = up(s.cols, min(w, groupBanks*bankColumns))
	}
	switch p.b {
	case keepStream:
		passB = up(s.tiles, p.group)
	case keepBlock:
		passB = up(s.tiles, p.block)
	}
	if s.turnA {
		passA *= 2 // the array's time
	}
	banks := min(up(w, bankColumns), groupBanks/p.group)
	loads := s.tiles * s.kt * up(up(s.cols, bankColumns), banks)
	return passA*s.tiles*s.kt*128*128*s.a + passB*s.kt*128*s.cols*s.b + loads*stationaryBytes + p.bytes*128
}
