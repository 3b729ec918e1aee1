package codegen

import (
	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/graph"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// machineTypes are the element types that model and machine share, by the machine's name.
var machineTypes = map[string]graph.Dtype{
	"uint8": graph.U8, "int8": graph.S8, "uint16": graph.U16, "int16": graph.S16, "uint32": graph.U32, "int32": graph.S32,
	"uint64": graph.U64, "int64": graph.S64, "bfloat16": graph.BF16, "float16": graph.F16, "float32": graph.F32,
	"float8_e4m3fn": graph.F8E4M3FN, "float8e5": graph.F8E5M2, "float8e4": graph.F8E4M3, "float8e3": graph.F8E3M4,
}

// ModelConstant gives the bytes that a package's constant stands for: the constant of that name in the canonical graph,
// taken through the recipe.
func ModelConstant(g *graph.Graph, tensor string, recipe []neff.RecipeStep) ([]byte, error) {
	n, ok := g.FindConst(tensor)
	if !ok {
		return nil, target.Errorf(target.User, "the model has no constant %q; give the model that the package was compiled from", tensor)
	}
	data, err := graph.Materialise(g, n)
	if err != nil {
		return nil, err
	}
	t := graph.Tensor{Dtype: g.Dtype(n), Dims: g.Dims(n), Data: data}
	for i := range recipe {
		if t, err = applyStep(t, &recipe[i]); err != nil {
			return nil, target.Errorf(target.User, "constant %q, %s: %w", tensor, recipe[i].Op, err)
		}
	}
	return t.Data, nil
}

// applyStep takes a tensor through one step of a recipe.
func applyStep(t graph.Tensor, s *neff.RecipeStep) (graph.Tensor, error) {
	switch s.Op {
	case neff.RecipeReshape:
		return reshape(t, s.A)
	case neff.RecipePermute:
		return permute(t, s.A)
	case neff.RecipeSlice:
		return slice(t, s.A, s.B, s.C)
	case neff.RecipePad:
		return pad(t, s.A, s.B)
	case neff.RecipeBlock:
		return block(t, s.A)
	case neff.RecipeCast:
		return cast(t, s.Dtype)
	}
	return t, target.Errorf(target.User, "unknown step")
}

func reshape(t graph.Tensor, dims []int64) (graph.Tensor, error) {
	if !graph.CheckDims(dims) || product(dims) != product(t.Dims) {
		return t, target.Errorf(target.User, "%v to %v", t.Dims, dims)
	}
	t.Dims = dims
	return t, nil
}

// block turns each dimension d into (d/a, a), the outer parts first.
func block(t graph.Tensor, a []int64) (graph.Tensor, error) {
	if len(a) != len(t.Dims) {
		return t, target.Errorf(target.User, "%v for %v", a, t.Dims)
	}
	var dims, outer, inner []int64
	for d, n := range a {
		if n < 1 || t.Dims[d]%n != 0 {
			return t, target.Errorf(target.User, "tile %d of dimension %d", n, t.Dims[d])
		}
		dims = append(dims, t.Dims[d]/n, n)
		outer, inner = append(outer, int64(2*d)), append(inner, int64(2*d+1))
	}
	t.Dims = dims
	return permute(t, append(outer, inner...))
}

func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

// strides are the bytes between neighbours along each dimension of a row-major tensor.
func strides(dims []int64, size int) []int64 {
	s := make([]int64, len(dims))
	n := int64(size)
	for d := len(dims) - 1; d >= 0; d-- {
		s[d] = n
		n *= dims[d]
	}
	return s
}

// gather copies the elements of src that a walk over dims visits, step bytes apart from off on, to a dense tensor.
func gather(dst, src []byte, dims, step []int64, off int64, size int) {
	idx := make([]int64, len(dims))
	for at := 0; at < len(dst); at += size {
		copy(dst[at:at+size], src[off:off+int64(size)])
		for d := len(dims) - 1; d >= 0; d-- {
			idx[d]++
			off += step[d]
			if idx[d] < dims[d] {
				break
			}
			off -= idx[d] * step[d]
			idx[d] = 0
		}
	}
}

func permute(t graph.Tensor, perm []int64) (graph.Tensor, error) {
	seen := make([]bool, len(t.Dims))
	if len(perm) != len(t.Dims) {
		return t, target.Errorf(target.User, "%v of %d dimensions", perm, len(t.Dims))
	}
	old := strides(t.Dims, t.Dtype.Size())
	out := graph.Tensor{Dtype: t.Dtype, Dims: make([]int64, len(perm)), Data: make([]byte, len(t.Data))}
	step := make([]int64, len(perm))
	for d, p := range perm {
		if p < 0 || int(p) >= len(seen) || seen[p] {
			return t, target.Errorf(target.User, "%v is no permutation", perm)
		}
		seen[p] = true
		out.Dims[d], step[d] = t.Dims[p], old[p]
	}
	gather(out.Data, t.Data, out.Dims, step, 0, t.Dtype.Size())
	return out, nil
}

// slice cuts start:limit:stride out of each dimension.
func slice(t graph.Tensor, start, limit, stride []int64) (graph.Tensor, error) {
	n := len(t.Dims)
	if len(start) != n || len(limit) != n || len(stride) != n {
		return t, target.Errorf(target.User, "%v, %v, %v for %v", start, limit, stride, t.Dims)
	}
	out := graph.Tensor{Dtype: t.Dtype, Dims: make([]int64, n)}
	step := strides(t.Dims, t.Dtype.Size())
	off := int64(0)
	for d := range n {
		if start[d] < 0 || limit[d] > t.Dims[d] || start[d] > limit[d] || stride[d] < 1 {
			return t, target.Errorf(target.User, "%d:%d:%d of dimension %d", start[d], limit[d], stride[d], t.Dims[d])
		}
		out.Dims[d] = (limit[d] - start[d] + stride[d] - 1) / stride[d]
		off += start[d] * step[d]
		step[d] *= stride[d]
	}
	out.Data = make([]byte, product(out.Dims)*int64(t.Dtype.Size()))
	gather(out.Data, t.Data, out.Dims, step, off, t.Dtype.Size())
	return out, nil
}

// pad adds low zeros before and high behind each dimension.
func pad(t graph.Tensor, low, high []int64) (graph.Tensor, error) {
	n := len(t.Dims)
	if len(low) != n || len(high) != n {
		return t, target.Errorf(target.User, "%v, %v for %v", low, high, t.Dims)
	}
	out := graph.Tensor{Dtype: t.Dtype, Dims: make([]int64, n)}
	for d := range n {
		if low[d] < 0 || high[d] < 0 || low[d] > graph.MaxElements || high[d] > graph.MaxElements {
			return t, target.Errorf(target.User, "%d and %d around dimension %d", low[d], high[d], d)
		}
		out.Dims[d] = t.Dims[d] + low[d] + high[d]
	}
	if !graph.CheckDims(out.Dims) {
		return t, target.Errorf(target.Limit, "shape %v", out.Dims)
	}
	out.Data = make([]byte, product(out.Dims)*int64(t.Dtype.Size()))
	step := strides(out.Dims, t.Dtype.Size())
	off := int64(0)
	for d := range n {
		off += low[d] * step[d]
	}
	scatter(out.Data, t.Data, t.Dims, step, off, t.Dtype.Size())
	return out, nil
}

// scatter is gather's inverse: the elements of a dense src go to a window of dst.
func scatter(dst, src []byte, dims, step []int64, off int64, size int) {
	idx := make([]int64, len(dims))
	for at := 0; at < len(src); at += size {
		copy(dst[off:off+int64(size)], src[at:at+size])
		for d := len(dims) - 1; d >= 0; d-- {
			idx[d]++
			off += step[d]
			if idx[d] < dims[d] {
				break
			}
			off -= idx[d] * step[d]
			idx[d] = 0
		}
	}
}

func cast(t graph.Tensor, arg string) (graph.Tensor, error) {
	d, ok := machineTypes[arg]
	if !ok {
		return t, target.Errorf(target.User, "cast to unknown type %q", arg)
	}
	if d == t.Dtype {
		return t, nil
	}
	n := t.Len()
	out := graph.Tensor{Dtype: d, Dims: t.Dims, Data: make([]byte, n*d.Size())}
	size := d.Size()
	for i := range n {
		bits, ok := graph.EncodeFloat(d, t.Float(i))
		if !ok {
			return t, target.Errorf(target.User, "cast of %s to %s", t.Dtype, d)
		}
		for b := range size {
			out.Data[i*size+b] = byte(bits >> (8 * b))
		}
	}
	return out, nil
}
