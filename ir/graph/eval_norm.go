package graph

import "math"

// The normalisation composites compute in float64 and round once: they are what the formula says, not how a machine adds.

// batchNorm calls f for every element with its feature.
func perFeature(x Tensor, feature int, f func(i, c int)) {
	inner, nc := count(x.Dims[feature+1:]), int(x.Dims[feature])
	i := 0
	for range count(x.Dims[:feature]) {
		for c := range nc {
			for range inner {
				f(i, c)
				i++
			}
		}
	}
}

func putFloat(t Tensor, i int, v float64) {
	bits, _ := EncodeFloat(t.Dtype, v)
	putElem(t.Dtype, t.Data, i, bits)
}

func (r *run) batchNormInference(n Node, out, x, scale, offset, mean, variance Tensor) {
	eps := r.g.Float(n, AttrEpsilon, 0)
	nc := scale.Len()
	mul, add := make([]float64, nc), make([]float64, nc)
	for c := range nc {
		mul[c] = scale.Float(c) / math.Sqrt(variance.Float(c)+eps)
		add[c] = offset.Float(c)
	}
	means := mean.Floats()
	perFeature(x, int(r.g.Int(n, AttrFeature, 0)), func(i, c int) {
		putFloat(out, i, (x.Float(i)-means[c])*mul[c]+add[c])
	})
}

// moments are the mean and the biased variance of each feature.
func moments(x Tensor, feature int) (mean, variance []float64) {
	nc := int(x.Dims[feature])
	mean, variance = make([]float64, nc), make([]float64, nc)
	k := float64(x.Len()) / float64(nc)
	perFeature(x, feature, func(i, c int) { mean[c] += x.Float(i) })
	for c := range mean {
		mean[c] /= k
	}
	perFeature(x, feature, func(i, c int) {
		d := x.Float(i) - mean[c]
		variance[c] += d * d
	})
	for c := range variance {
		variance[c] /= k
	}
	return mean, variance
}

func (r *run) batchNormTraining(n Node, outs []Tensor, x, scale, offset Tensor) {
	eps := r.g.Float(n, AttrEpsilon, 0)
	feature := int(r.g.Int(n, AttrFeature, 0))
	mean, variance := moments(x, feature)
	for c := range mean {
		putFloat(outs[1], c, mean[c])
		putFloat(outs[2], c, variance[c])
	}
	perFeature(x, feature, func(i, c int) {
		putFloat(outs[0], i, (x.Float(i)-mean[c])/math.Sqrt(variance[c]+eps)*scale.Float(c)+offset.Float(c))
	})
}

// batchNormGrad gives the gradients of operand, scale and offset, as the XLA operation semantics define them.
func (r *run) batchNormGrad(n Node, outs []Tensor, x, scale, mean, variance, grad Tensor) {
	eps := r.g.Float(n, AttrEpsilon, 0)
	feature := int(r.g.Int(n, AttrFeature, 0))
	nc := scale.Len()
	k := float64(x.Len()) / float64(nc)
	sum, dot := make([]float64, nc), make([]float64, nc)
	perFeature(x, feature, func(i, c int) {
		sum[c] += grad.Float(i)
		dot[c] += grad.Float(i) * (x.Float(i) - mean.Float(c))
	})
	perFeature(x, feature, func(i, c int) {
		v := variance.Float(c) + eps
		g := grad.Float(i) - sum[c]/k - (x.Float(i)-mean.Float(c))*dot[c]/(v*k)
		putFloat(outs[0], i, scale.Float(c)/math.Sqrt(v)*g)
	})
	for c := range nc {
		putFloat(outs[1], c, dot[c]/math.Sqrt(variance.Float(c)+eps))
		putFloat(outs[2], c, sum[c])
	}
}

// lrn is ONNX LRN: neighbours c-⌊(size-1)/2⌋ … c+⌈(size-1)/2⌉ of dimension 1.
func (r *run) lrn(n Node, out, x Tensor) {
	g := r.g
	size := int(g.Int(n, AttrSize, 1))
	alpha, beta, bias := g.Float(n, AttrAlpha, 1e-4), g.Float(n, AttrBeta, 0.75), g.Float(n, AttrBias, 1)
	before, after := (size-1)/2, size/2
	_ = lines(x.Dims, 1, func(_ int, l line) error {
		square := make([]float64, l.n)
		for i := range square {
			v := x.Float(l.at(i))
			square[i] = v * v
		}
		for i := range l.n {
			s := 0.0
			for j := max(0, i-before); j <= min(l.n-1, i+after); j++ {
				s += square[j]
			}
			putFloat(out, l.at(i), x.Float(l.at(i))/math.Pow(bias+alpha/float64(size)*s, beta))
		}
		return nil
	})
}
