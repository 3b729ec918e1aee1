package codegen

import (
	"strings"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// An empty name in a list of passes is a slip of the comma, and said so; sizes beyond the machine are refused however large.
func TestOddOptions(t *testing.T) {
	for _, c := range []struct {
		set  func(*Options)
		want string
	}{
		{func(o *Options) { o.Pass = []string{"", ""} }, "--pass: name 1 of 2 is empty"},
		{func(o *Options) { o.Pass = []string{"birverifier", "", "codegen"} }, "--pass: name 2 of 3 is empty"},
		{func(o *Options) { o.SkipPass = []string{"codegen", ""} }, "--skip-pass: name 2 of 2 is empty"},
		{func(o *Options) { o.PrintBefore = []string{""} }, "--print-before: name 1 of 1 is empty"},
		{func(o *Options) { o.PrintAfter = []string{""} }, "--print-after: name 1 of 1 is empty"},
		{func(o *Options) { o.AllreduceMiB = 1 << 50 }, "--allreduce-buffer-size 1125899906842624: -1, or MiB up to"},
		{func(o *Options) { o.AllreduceMiB = 24<<10 + 1 }, "--allreduce-buffer-size 24577"},
	} {
		o := NewOptions()
		c.set(&o)
		if err := o.Check(); err == nil || target.ClassOf(err) != target.User || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
