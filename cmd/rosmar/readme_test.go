package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rosmar-compiler/rosmar/codegen"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

const (
	listBegin = "<!-- list-operators: written by go test ./cmd/rosmar -update -->\n"
	listEnd   = "<!-- end of list-operators -->\n"
)

// The README's list of operators and types is what the code does.
func TestReadmeList(t *testing.T) {
	const file = "../../README.md"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := bytes.Cut(b, []byte(listBegin))
	list, tail, ok2 := bytes.Cut(rest, []byte(listEnd))
	if !ok || !ok2 {
		t.Fatalf("%s has no list between %q and %q", file, listBegin, listEnd)
	}
	g, err := target.ForCodeGen(codegen.DefaultTarget)
	if err != nil {
		t.Fatal(err)
	}
	want := "\n" + codegen.SupportMarkdown(g) + "\n"
	if string(list) == want {
		return
	}
	if *update {
		all := strings.Join([]string{string(head), listBegin, want, listEnd, string(tail)}, "")
		if err := os.WriteFile(file, []byte(all), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("README's list is not what the code does; run go test ./cmd/rosmar -run TestReadmeList -update\n%s", cmp.Diff(want, string(list)))
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
