package codegen

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var goFile = regexp.MustCompile(`[a-z0-9_/]*[a-z0-9_*]+\.go\b`)

// The files that ARCHITECTURE.md names exist, in the folder that is written before them or in one that their paragraph has named, and
// what is said to be in one is there; those that the doc.go of a package names exist in the package, or where their folder says.
func TestMapNamesFilesThatExist(t *testing.T) {
	exists := func(pattern string) bool {
		found, err := filepath.Glob(filepath.Join("..", pattern))
		return err == nil && len(found) > 0
	}
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	folder := regexp.MustCompile("`([a-z]+(?:/[a-z]+)*)[/`]")
	named := 0
	var folders []string // of the paragraph so far
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" {
			folders = folders[:0]
		}
		for _, m := range folder.FindAllStringSubmatch(line, -1) {
			folders = append(folders, m[1])
		}
		for _, file := range goFile.FindAllString(line, -1) {
			named++
			if !exists(file) && !slices.ContainsFunc(folders, func(d string) bool { return exists(path.Join(d, file)) }) && file != "doc.go" {
				t.Errorf("ARCHITECTURE.md:%d: there is no %s", n+1, file)
			}
		}
	}
	for _, m := range regexp.MustCompile("`(\\w+)` (?:in|of) `([a-z/_]+\\.go)`").FindAllStringSubmatch(string(text), -1) {
		code, err := os.ReadFile(filepath.Join("..", m[2]))
		if err != nil || !regexp.MustCompile(`\b`+m[1]+`\b`).Match(code) {
			t.Errorf("ARCHITECTURE.md: %s is not in %s", m[1], m[2])
		}
		named++
	}
	if named < 20 {
		t.Errorf("ARCHITECTURE.md names %d files", named)
	}
	err = filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "doc.go" {
			return err
		}
		doc, err := os.ReadFile(name)
		pkg := filepath.Dir(strings.TrimPrefix(name, "../"))
		for _, file := range goFile.FindAllString(string(doc), -1) {
			if !exists(file) && !exists(path.Join(pkg, file)) {
				t.Errorf("%s: there is no %s", name, file)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
