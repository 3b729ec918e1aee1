package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rosmar-compiler/rosmar/codegen"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// readmeHolds tests that what stands in the README between two marks is want, or writes it there.
func readmeHolds(t *testing.T, begin, end, want string) {
	t.Helper()
	const file = "../../README.md"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	has, tail, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatalf("%s has nothing between %q and %q", file, begin, end)
	case has == want:
	case *update:
		if err := os.WriteFile(file, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("README does not say what the code does; run go test ./cmd/rosmar -run TestReadme -update\n%s", cmp.Diff(want, has))
	}
}

// The README's list of operators and types is what the code does.
func TestReadmeList(t *testing.T) {
	g, err := target.ForCodeGen(codegen.DefaultTarget)
	if err != nil {
		t.Fatal(err)
	}
	readmeHolds(t, "<!-- list-operators: written by go test ./cmd/rosmar -update -->\n", "<!-- end of list-operators -->\n",
		"\n"+codegen.SupportMarkdown(g)+"\n")
}

// The README shows what its first example of plan prints, and the file that it writes.
func TestReadmePlan(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "printf '")
	file, rest, ok2 := strings.Cut(rest, "' > buffers.csv\n")
	line, _, ok3 := strings.Cut(rest, "\n")
	if !ok || !ok2 || !ok3 {
		t.Fatal("README makes no buffers.csv")
	}
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("buffers.csv", []byte(strings.ReplaceAll(file, `\n`, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := newApp(&out, os.Stderr).execute(t.Context(), strings.Fields(line)[1:]); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	placed, err := os.ReadFile("placed.csv")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(home)
	readmeHolds(t, "<!-- plan: written by go test ./cmd/rosmar -update -->\n", "<!-- end of plan -->\n",
		"\n```\n"+out.String()+"```\n\n`placed.csv` is then\n\n```\n"+string(placed)+"```\n\n")
}

// The README and the help name the same exit codes and verbs.
func TestReadmeVerbs(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range newApp(os.Stdout, os.Stderr).root().Commands() {
		if c.Name() != "help" && c.Name() != "completion" && !bytes.Contains(b, []byte("`rosmar "+c.Name())) {
			t.Errorf("the README does not describe rosmar %s", c.Name())
		}
		if c.Example == "" {
			t.Errorf("rosmar %s has no example", c.Name())
		}
	}
}

// Every command line of the help and the README has flags that exist.
func TestExamples(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var text string
	for i, block := range strings.Split(string(b), "```") {
		if i%2 == 1 {
			text += block
		}
	}
	root := newApp(os.Stdout, os.Stderr).root()
	for _, c := range root.Commands() {
		text += "\n" + c.Example
	}
	n := 0
	for line := range strings.SplitSeq(text+"\n"+root.Example, "\n") {
		for part := range strings.SplitSeq(line, " | ") {
			part = strings.Replace(strings.TrimSpace(part), "go run ./cmd/rosmar ", "rosmar ", 1)
			rest, ok := strings.CutPrefix(part, "rosmar ")
			if !ok {
				continue
			}
			args := strings.Fields(rest)
			cmd, args, err := newApp(os.Stdout, os.Stderr).root().Find(args)
			if err != nil || !cmd.HasParent() {
				t.Errorf("%q: %v", part, err)
				continue
			}
			if err := cmd.ParseFlags(args); err != nil {
				t.Errorf("%q: %v", part, err)
			}
			n++
		}
	}
	if n < 40 {
		t.Errorf("%d command lines found; the search is broken", n)
	}
}

// The README's examples run as they stand, in order, in an empty folder.
func TestReadmeRuns(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell")
	}
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i, block := range strings.Split(string(b), "```") {
		for line := range strings.SplitSeq(block, "\n") {
			own := strings.HasPrefix(line, "rosmar ") || strings.HasPrefix(line, "cat ") || strings.HasPrefix(line, "printf ")
			if i%2 == 1 && own && !strings.HasPrefix(line, "rosmar test ") { // its folder is not made here
				lines = append(lines, "echo '"+strings.ReplaceAll(line, "'", "")+"' >&2", line)
			}
		}
	}
	if len(lines) < 30 {
		t.Fatalf("%d examples found; the search is broken", len(lines)/2)
	}
	script := filepath.Join(t.TempDir(), "readme.txtar")
	text := "exec sh -e examples\n-- examples --\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Files: []string{script}})
}

// The files and folders that the map names exist.
func TestMapPaths(t *testing.T) {
	b, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, word := range strings.Split(string(b), "`") {
		if i%2 == 0 || !strings.Contains(word, "/") || strings.ContainsAny(word, " …") {
			continue
		}
		n++
		if found, err := filepath.Glob("../../" + word); err != nil || len(found) == 0 {
			t.Errorf("ARCHITECTURE.md names %s, which does not exist", word)
		}
	}
	if n < 30 {
		t.Errorf("%d paths found; the search is broken", n)
	}
}
