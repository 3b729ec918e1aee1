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
