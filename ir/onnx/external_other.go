//go:build !unix

package onnx

import "os"

func mapFile(f *os.File, size int64) ([]byte, error) { return loadFile(f, size) }
