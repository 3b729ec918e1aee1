// Package flowtest has functions for the tests of register allocators; none of it is for other code.
//
//	Random     valid functions of a shape, every rule of package flow kept by construction   random.go
//	Try        one of any shape, and a register file for it                                  random.go
//	Cases      the shapes that allocators have got wrong or been slow on                     cases.go
//	Public     the functions of public programs, and what others need for them               public.go
package flowtest
