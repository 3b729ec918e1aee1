package hlo

import (
	"path/filepath"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/graph"
)

// TestDataChecks asks shape inference whether it agrees with every type that the modules give.
func TestDataChecks(t *testing.T) {
	dir := dataDir(t)
	var r Reader
	var g graph.Graph
	for _, row := range manifest(t, dir) {
		if err := r.Read(load(t, filepath.Join(dir, row["file"])), &g); err != nil {
			t.Errorf("%s: %v", row["file"], err)
			continue
		}
		if err := graph.Check(&g); err != nil {
			t.Errorf("%s: %v", row["file"], err)
		}
	}
}
