package tile

// emitPieces writes a value piece by piece into its tensor in DRAM: first the filling, then each piece in order, so that a
// later piece may overwrite an earlier one.
func (l *lowering) emitPieces(u *unit) {
	r := l.vals.At(u.root)
	l.at(r.src)
	info := &l.pieces[r.aux]
	to := l.homeOf(u.root)
	if info.fill.root != 0 {
		l.fillDRAM(l.vals.At(info.fill.root), to, dense(u.root, l.shapeOf(u.root)))
	}
	for i := range info.pieces {
		p := &info.pieces[i]
		l.copyOut(p.src, to, p.dst)
	}
}
