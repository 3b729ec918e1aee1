package bir_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/bir"
)

// structural are the members whose values the reader takes apart; all others are opaque here.
var structural = map[string]bool{
	"functions": true, "nki_functions": true, "allocations": true, "memorylocations": true, "blocks": true,
	"instructions": true, "ins": true, "outs": true, "indirection_ins": true, "LoopAxis": true, "addrs": true, "terms": true,
	"idx": true, "numer": true, "var": true, "sync_info": true, "on_wait": true, "on_update": true, "queues": true,
}

// rewrite copies a text, handing every object that the reader takes apart to f as its members, `"key":value` each.
func rewrite(t testing.TB, data []byte, f func(path string, members []string) []string) []byte {
	t.Helper()
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	var value func(path string) string
	value = func(path string) string {
		switch dec.PeekKind() {
		case '{':
			dec.ReadToken()
			var l []string
			for dec.PeekKind() != '}' {
				key, err := dec.ReadToken()
				if err != nil {
					t.Fatal(err)
				}
				k := key.String()
				q, _ := jsontext.AppendQuote(nil, k)
				var v string
				if structural[k] && !(k == "blocks" && strings.HasPrefix(path, "/queues")) {
					v = value(path + "/" + k)
				} else {
					raw, err := dec.ReadValue()
					if err != nil {
						t.Fatal(err)
					}
					v = string(raw)
				}
				l = append(l, string(q)+":"+v)
			}
			dec.ReadToken()
			return "{" + strings.Join(f(path, l), ",") + "}"
		case '[':
			dec.ReadToken()
			var l []string
			for dec.PeekKind() != ']' {
				l = append(l, value(path))
			}
			dec.ReadToken()
			return "[" + strings.Join(l, ",") + "]"
		default:
			raw, err := dec.ReadValue()
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
	}
	return []byte(value(""))
}

// TestKeyOrder reads texts whose members stand in any order: the module is the same.
func TestKeyOrder(t *testing.T) {
	want := load(t, "all.json")
	rng := rand.New(rand.NewPCG(1, 2))
	n := 200
	if testing.Short() {
		n = 30
	}
	var r bir.Reader
	var m ir.Module
	for range n {
		data := rewrite(t, want, func(_ string, l []string) []string {
			rng.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
			return l
		})
		if err := r.Read(data, &m); err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if d := cmp.Diff(string(want), string(write(t, &m))); d != "" {
			t.Fatalf("%s\n%s", d, data)
		}
	}
}

// TestUnknownKeys puts members that nobody knows into every object and finds all of them again, byte for byte.
func TestUnknownKeys(t *testing.T) {
	const value = `{ "deep" : [1,2.50, "\u00e9"], "n":null}`
	n := 0
	put := func(data []byte) []byte {
		n = 0
		return rewrite(t, data, func(path string, l []string) []string {
			if strings.Contains(path, "/addrs") {
				return l // expressions are read in full or refused
			}
			n++
			return append(l, fmt.Sprintf(`"zz_%d":%s`, n, value), fmt.Sprintf(`"/a~%d":%d`, n, n))
		})
	}
	for _, file := range []string{"all.json", "relu.json"} {
		m := read(t, put(load(t, file)))
		text := string(stable(t, m))
		for i := 1; i <= n; i++ {
			if k := fmt.Sprintf(`"zz_%d":%s`, i, value); strings.Count(text, k) != 1 {
				t.Errorf("%s: %s occurs %d times", file, k, strings.Count(text, k))
			}
			if k := fmt.Sprintf(`"/a~%d":%d`, i, i); strings.Count(text, k) != 1 {
				t.Errorf("%s: %s occurs %d times", file, k, strings.Count(text, k))
			}
		}
		if n < 30 {
			t.Errorf("%s has %d objects only", file, n)
		}
		// They stand where they stood: taking them out of the text leaves what there was without them.
		less := rewrite(t, []byte(text), func(_ string, l []string) []string {
			out := l[:0]
			for _, x := range l {
				if !strings.HasPrefix(x, `"zz_`) && !strings.HasPrefix(x, `"/a~`) {
					out = append(out, x)
				}
			}
			return out
		})
		if d := cmp.Diff(string(write(t, read(t, load(t, file)))), string(write(t, read(t, less)))); d != "" {
			t.Errorf("%s: %s", file, d)
		}
	}
}
