// Package zoo builds models from a name, "zoo:NAME?key=value&key=value": programs of a known shape and size for tests,
// benchmarks and batch compiles, without files.
//
// # Tables
//
//	models   one row a model: name, keys with default and bounds, builder, closed-form counts      zoo.go
//	mlp      dense layers                                                                           mlp.go
//	gpt2s    published dimensions of GPT-2, small to xl                                             gpt2.go
//	llamas   published dimensions of Llama and its like, 7 to 405 G weights                         llama.go
//	resnets  published block counts of residual networks                                            resnet.go
//
// Parts that transformers share are in transformer.go, counting in counts.go, the lists for readers in describe.go. Every
// published dimension is a key as well, so that tests run the same structure at a width that an interpreter can afford.
//
// # Weights
//
// Weights are constants that are generated from a seed when somebody reads them (graph.Materialise), so that a model of
// many gigabytes costs a few kilobytes until it is run; with weights=param they are parameters of the entry instead, but for
// the scales and statistics of norms. Their deviation goes with the root of 1/fan-in, so that values neither die out nor
// explode over any number of layers; scales of norms and variances lie around what keeps them so. Rotary tables are the only
// dense constants.
//
// # Invariants
//
// The same name gives the same graph. Counts saturate instead of overflowing, and a model beyond MaxCount is refused. Count
// says what a model holds without building it, and a test holds it against the graph.
package zoo
