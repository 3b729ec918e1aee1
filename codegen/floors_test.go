package codegen

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/rosmar-compiler/rosmar/"

// floor is a row of ARCHITECTURE.md's table. The row of a package that the table does not name is that of the nearest folder
// above it.
type floor struct {
	number int
	may    []string // imports of ours beside arena and target, by last element
	all    bool     // "all below"
	has    []string // of them, what is really imported
}

func floors(t *testing.T) map[string]*floor {
	t.Helper()
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| floor | package |")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no table of floors")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]*floor{}
	for _, line := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			t.Fatalf("row %q", line)
		}
		n, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			t.Fatalf("row %q: %v", line, err)
		}
		f := &floor{number: n}
		list, _, _ := strings.Cut(strings.TrimSpace(cells[4]), ";")
		switch list {
		case "all below":
			f.all = true
		case "nothing":
		default:
			f.may = strings.Split(list, ", ")
		}
		for _, name := range strings.Split(cells[2], ",") {
			rows[strings.Trim(name, " `")] = f
		}
	}
	return rows
}

func floorOf(rows map[string]*floor, pkg string) *floor {
	for rows[pkg] == nil {
		i := strings.LastIndexByte(pkg, '/')
		if i < 0 {
			return nil
		}
		pkg = pkg[:i]
	}
	return rows[pkg]
}

// The table of floors in ARCHITECTURE.md is what the imports say: each package imports only floors below it, or packages of
// its own folder, and of those only what its row lists; no row lists what nobody imports; nothing below codegen imports it,
// not even in a test.
func TestFloors(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("go list: %v", err)
	}
	rows := floors(t)
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		pkg := strings.TrimPrefix(p.ImportPath, modulePath)
		f := floorOf(rows, pkg)
		if f == nil {
			t.Errorf("%s is on no floor of ARCHITECTURE.md", pkg)
			continue
		}
		for _, imp := range p.Imports {
			dep, ours := strings.CutPrefix(imp, modulePath)
			if !ours {
				continue
			}
			switch g := floorOf(rows, dep); {
			case g == f && strings.HasPrefix(dep, pkg+"/"):
			case g == nil || g.number >= f.number:
				t.Errorf("%s imports %s, which is not on a floor below", pkg, dep)
			default:
				f.has = append(f.has, path.Base(dep))
				if b := path.Base(dep); !f.all && b != "arena" && b != "target" && !slices.Contains(f.may, b) {
					t.Errorf("%s imports %s, which its row in ARCHITECTURE.md does not list", pkg, dep)
				}
			}
		}
		for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
			if imp == modulePath+"codegen" && f.number <= rows["codegen"].number {
				t.Errorf("a test of %s imports codegen", pkg)
			}
		}
	}
	for name, f := range rows {
		if _, err := os.Stat("../" + name); err != nil {
			t.Errorf("ARCHITECTURE.md has a floor for %s, which does not exist", name)
		}
		for _, m := range f.may {
			if !slices.Contains(f.has, m) {
				t.Errorf("the row of %s in ARCHITECTURE.md lists %s, which nothing there imports", name, m)
			}
		}
	}
}
