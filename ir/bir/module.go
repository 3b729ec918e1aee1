package bir

import (
	"encoding/base64"
	"math"
	"slices"

	"github.com/rosmar-compiler/rosmar/arena"
	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Bits of members seen, one list per kind of object.
const (
	seenModule = iota
	seenName
	seenVersion
	seenArch
	seenFunctions
	seenNKI
	seenQueues
	seenAttributes
	seenConsts
)

func (r *Reader) module(top bool) {
	var seen uint32
	at := r.start
	r.moduleMembers(&seen, top)
	if r.err == nil && seen&(1<<seenModule) == 0 && seen&(1<<seenFunctions|1<<seenNKI) == 0 {
		r.fail(at, "the module has no functions: it is not BIR JSON")
	}
	if r.err == nil && top && seen&(1<<seenModule) != 0 && seen&^(1<<seenModule) != 0 {
		r.fail(at, "the module stands both under \"module\" and beside it")
	}
	if top {
		r.m.Extra = r.layNames(r.extra, at)
	}
}

func (r *Reader) layNames(l []arena.Name, at int) arena.Span {
	r.sortExtras(l, at)
	return r.m.NameList.AddSlice(l)
}

func (r *Reader) moduleMembers(seen *uint32, top bool) {
	m := r.m
	for r.member() {
		switch string(r.key) {
		case "module":
			if !top {
				r.keep()
				continue
			}
			r.once(seen, seenModule)
			if r.object() {
				r.module(false)
			}
		case "name":
			r.once(seen, seenName)
			m.Name = r.name()
		case "version":
			r.once(seen, seenVersion)
			if v := r.int(0, math.MaxInt64); r.err == nil && v != 1 && v != 2 {
				r.failClass(target.Unsupported, r.start, "version %d; versions 1 and 2 are known", v)
			}
		case "arch":
			r.once(seen, seenArch)
			s := r.str()
			if r.err != nil {
				return
			}
			g, err := target.Lookup(string(s))
			if err != nil {
				r.failClass(target.ClassOf(err), r.start, "%w", err)
			}
			m.Gen = g
		case "functions":
			r.once(seen, seenFunctions)
			r.functions(false)
		case "nki_functions":
			r.once(seen, seenNKI)
			r.functions(true)
		case "queues":
			r.once(seen, seenQueues)
			r.queueList()
		case "attributes":
			r.once(seen, seenAttributes)
			r.moduleAttributes()
		case "consts":
			r.once(seen, seenConsts)
			r.constList()
		case "archRev":
			// Read under this key and written as revision.
			if v := r.value(); r.err == nil {
				r.text = append(append(r.text[:0], `"/revision":`...), r.raw(v)...)
				r.extra = append(r.extra, m.Names.InternBytes(r.text))
			}
		default:
			r.keep()
		}
	}
	if r.err == nil && r.kind != '}' {
		r.fail(r.start, "expected a member or }")
	}
}

// keep stores a member of the module that no table explains, under its pointer.
func (r *Reader) keep() {
	key := r.keyAt
	if v := r.value(); r.err == nil {
		r.extra = append(r.extra, r.pointerText("", key, v))
	}
}

func (r *Reader) moduleAttributes() {
	if r.next() == 'n' {
		return
	}
	if !r.is('{') {
		return
	}
	var seen uint32
	for r.member() {
		switch string(r.key) {
		case "num_semaphores_per_queue":
			r.once(&seen, 0)
			r.m.SemaphoresPerQueue = int32(r.int(0, 256))
		case "entry":
			r.once(&seen, 1)
			r.entry = ref{name: r.name(), at: r.start}
		default:
			key := r.keyAt
			if v := r.value(); r.err == nil {
				r.extra = append(r.extra, r.bagText(key, v))
			}
		}
	}
}

func (r *Reader) functions(nki bool) {
	if !r.array() {
		return
	}
	for r.element() {
		if !r.is('{') {
			return
		}
		f := r.function(nki)
		if r.err != nil {
			return
		}
		if nki {
			continue
		}
		if r.first == 0 {
			r.first = f
		}
	}
}

// constList reads the data of constant tensors, which is ours: [{"dtype", "data": base64} or {"dtype", "tensor", "shape",
// "recipe"}]. Tensors refer to it by position from 1.
func (r *Reader) constList() {
	m := r.m
	if !r.array() {
		return
	}
	for r.element() {
		if !r.is('{') {
			return
		}
		at := r.start
		var seen uint32
		c := ir.ConstRow{Kind: ir.ConstModel}
		for r.member() {
			switch string(r.key) {
			case "dtype":
				r.once(&seen, 0)
				c.Dtype = enumOf(r, "element type", target.ParseDtype)
			case "data":
				r.once(&seen, 1)
				s := r.str()
				var err error
				if r.text, err = base64.StdEncoding.AppendDecode(r.text[:0], s); err != nil {
					r.fail(r.start, "%v", err)
				}
				c.Kind, c.Data = ir.ConstEmbedded, m.Bytes.AddSlice(r.text)
			case "tensor":
				r.once(&seen, 2)
				c.Tensor = r.name()
			case "shape":
				r.once(&seen, 3)
				c.Shape = r.shape()
			case "recipe":
				r.once(&seen, 4)
				c.Recipe = r.name()
			default:
				r.fail(r.keyAt.off, "unknown key of a constant")
			}
		}
		if r.err == nil && (seen&1 == 0 || seen&(1<<1|1<<2) == 0 || seen&(1<<1) != 0 && seen>>2 != 0) {
			r.fail(at, "a constant has dtype and either data, or tensor, shape and recipe")
		}
		if r.err != nil {
			return
		}
		m.Consts.Add(c)
	}
}

// maxRank bounds the rank of a tensor.
const maxRank = 64

// shape takes a list of extents.
func (r *Reader) shape() arena.Span {
	if !r.array() {
		return arena.Span{}
	}
	r.ints = r.ints[:0]
	size := int64(1)
	for r.element() {
		v := r.intHere(0, 1<<48)
		if r.err != nil {
			return arena.Span{}
		}
		if v > 0 {
			if size > (1<<48)/v {
				r.fail(r.start, "the tensor has more than 2^48 elements")
				return arena.Span{}
			}
			size *= v
		}
		if r.ints = append(r.ints, v); len(r.ints) > maxRank {
			r.fail(r.start, "the tensor has more than %d dimensions", maxRank)
		}
	}
	return r.m.Ints.AddSlice(r.ints)
}

// queueList reads DMA queue sets. Blocks and all else that has no column stay text.
func (r *Reader) queueList() {
	m := r.m
	if !r.array() {
		return
	}
	for r.element() {
		if !r.is('{') {
			return
		}
		at := r.start
		var seen uint32
		var q ir.QueueRow
		mark := len(r.fextra)
		for r.member() {
			switch string(r.key) {
			case "name":
				r.once(&seen, 0)
				q.Name = r.someName()
			case "num_dma_engines":
				r.once(&seen, 1)
				q.NumQueues = uint8(r.int(0, 255))
			case "owner":
				r.once(&seen, 2)
				q.Owner = enumOf(r, "engine", target.ParseEngine)
			case "direction":
				r.once(&seen, 3)
				q.Dir = enumOf(r, "direction", parseDir)
			case "semaphore_base":
				r.once(&seen, 4)
				q.SemBase = uint8(r.int(0, 255))
			default:
				key := r.keyAt
				if v := r.value(); r.err == nil {
					r.fextra = append(r.fextra, r.memberText(key, v))
				}
			}
		}
		q.Extra = r.layNames(r.fextra[mark:], at)
		r.fextra = r.fextra[:mark]
		if r.err == nil && q.Name == 0 {
			r.fail(at, "a queue without a name")
		}
		if r.err == nil && r.queues.Get(q.Name) != 0 {
			r.fail(at, "queue %q is defined twice", m.Names.String(q.Name))
		}
		if r.err != nil {
			return
		}
		r.queues.Set(q.Name, m.Queues.Add(q))
	}
}

var queueDirs = [...]string{"load", "store", "copy"}

func parseDir(s string) (ir.QueueDir, bool) {
	i := slices.Index(queueDirs[:], s)
	return ir.QueueDir(max(0, i)), i >= 0
}
