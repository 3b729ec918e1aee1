package neff

import (
	"encoding/hex"

	"github.com/go-json-experiment/json"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// RecipeOp is one step from a model tensor to the bytes of a variable.
type RecipeOp uint8

// Recipe steps. All work on whole tensors in C order.
//
//	slice    A start, B limit (exclusive), C stride, one entry a dimension
//	permute  A axes: dimension i of the result is dimension A[i] of the input
//	reshape  A shape
//	block    A tile sizes: each dimension d becomes (d/A, A); the outer parts come first, then the inner ones
//	pad      A low, B high, zeros
//	cast     Dtype
const (
	RecipeSlice RecipeOp = iota + 1
	RecipePermute
	RecipeReshape
	RecipeBlock
	RecipePad
	RecipeCast
)

var recipeOps = [...]string{"", "slice", "permute", "reshape", "block", "pad", "cast"}

// String is the JSON spelling.
func (o RecipeOp) String() string { return word(recipeOps[:], uint8(o)) }

// RecipeStep is one step with its parameters; see RecipeOp.
type RecipeStep struct {
	Op      RecipeOp
	A, B, C []int64
	Dtype   string
}

// Weight is a constant that the package does not carry: the model tensor that it is made of, by name and digest, and how.
// Shape and Dtype are those of the model tensor; SHA256 is of its bytes, C order, little-endian.
type Weight struct {
	Var    string // variable of type file
	Tensor string
	Shape  []int64
	Dtype  string
	SHA256 [32]byte
	Recipe []RecipeStep
}

type stepJSON struct {
	A     []int64 `json:"a,omitempty"`
	B     []int64 `json:"b,omitempty"`
	C     []int64 `json:"c,omitempty"`
	Dtype string  `json:"dtype,omitempty"`
	Op    string  `json:"op"`
}

type weightJSON struct {
	Dtype  string     `json:"dtype"`
	Recipe []stepJSON `json:"recipe"`
	SHA256 string     `json:"sha256"`
	Shape  []int64    `json:"shape"`
	Tensor string     `json:"tensor"`
	Var    string     `json:"var"`
}

type weightsJSON struct {
	Weights []weightJSON `json:"weights"`
}

func marshalWeights(ws []Weight) ([]byte, error) {
	out := weightsJSON{Weights: []weightJSON{}}
	for i := range ws {
		w := &ws[i]
		j := weightJSON{Dtype: w.Dtype, SHA256: hex.EncodeToString(w.SHA256[:]), Shape: w.Shape, Tensor: w.Tensor, Var: w.Var}
		for _, s := range w.Recipe {
			j.Recipe = append(j.Recipe, stepJSON{s.A, s.B, s.C, s.Dtype, s.Op.String()})
		}
		out.Weights = append(out.Weights, j)
	}
	return json.Marshal(out, sortedKeys)
}

func parseWeights(b []byte) ([]Weight, error) {
	var in weightsJSON
	if err := json.Unmarshal(b, &in, strictJSON); err != nil {
		return nil, badJSON("weights.json", err)
	}
	var out []Weight
	for _, j := range in.Weights {
		w := Weight{Var: j.Var, Tensor: j.Tensor, Shape: j.Shape, Dtype: j.Dtype}
		sum, err := hex.DecodeString(j.SHA256)
		if err != nil || len(sum) != len(w.SHA256) {
			return nil, target.Errorf(target.User, "neff: weights.json: %q is not a SHA-256", j.SHA256)
		}
		copy(w.SHA256[:], sum)
		for _, s := range j.Recipe {
			op, ok := wordOf(recipeOps[:], s.Op)
			if !ok {
				return nil, target.Errorf(target.Unsupported, "neff: weights.json: recipe step %q is unknown", s.Op)
			}
			w.Recipe = append(w.Recipe, RecipeStep{RecipeOp(op), s.A, s.B, s.C, s.Dtype})
		}
		out = append(out, w)
	}
	return out, nil
}
