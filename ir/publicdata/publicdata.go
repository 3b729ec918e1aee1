// Package publicdata finds the public models and tensors that tests read: the folder shared/data beside the module, or beside
// a folder around it. Only tests import it, and all but those stand without the data.
package publicdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Path finds a file or folder of the public data and skips the test when there is none. Without elements it is the whole
// folder.
func Path(tb testing.TB, elem ...string) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		p := filepath.Join(append([]string{dir, "shared", "data"}, elem...)...)
		if _, err := os.Stat(p); err == nil {
			return p
		}
		up := filepath.Dir(dir)
		if up == dir {
			tb.Skipf("no shared/data/%s beside the module", filepath.Join(elem...))
		}
		dir = up
	}
}
