//go:build unix

package onnx

import (
	"os"
	"syscall"
)

// mapFile maps a file read-only. The mapping lasts as long as the process: constants of graphs point into it, and pages that are
// not read cost nothing.
func mapFile(f *os.File, size int64) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return loadFile(f, size)
	}
	return data, nil
}
