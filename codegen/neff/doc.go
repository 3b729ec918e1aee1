// Package neff is the container: a 1024-byte header and a tar archive, deterministic to the byte, that carries one compiled
// core program.
//
// # Tables
//
//	Header        the packed first 1024 bytes, payload digest, UUID           header.go
//	Member        one file of the archive                                     archive.go
//	Package       what a finished program is: identity, definition, engines   package.go
//	Def           queue sets and variables of a core; row 0 reserved          def.go
//	Desc          one element descriptor of a DMA block, without strings      desc.go
//	TensorMap     graph inputs, outputs, aliases                              manifest.go
//	Weight        a constant that is supplied at run time, by digest          weights.go
//	Array         a constant as .npy                                          npy.go
//	Limits        what a hostile file may cost                                archive.go
//
// # Two readers
//
// Read is strict: it takes only packages of our profile and proves the invariants below before it returns. Inspect is
// lenient: it describes any file of this shape, ours or not, and lists what it could not read.
//
// # Invariants of a package that Read returns
//
//   - header size, payload size and digest agree with the file; no unknown feature bit is set
//   - members are sorted, unique, regular files with clean relative names
//   - neff.json and kelf-0.json name the same known architecture
//   - each engine has a stream and a descriptor list; streams are whole bundles with a legal length byte, and kelf-0.json
//     counts them
//   - each DMA trigger names a known queue set and a block that the engine's list has
//   - variable ids are unique, file variables have their member or their weights.json entry
//   - descriptors name known queues and variables, move equal element counts, and stay inside both sides
//
// Writing a package and reading it back gives the same package; writing that gives the same bytes.
//
// The package imports ir/target and nothing else of ours. It knows three facts of the wire (bundle size, length byte, where
// a trigger keeps its names); a test holds them against codegen/isa.
package neff
