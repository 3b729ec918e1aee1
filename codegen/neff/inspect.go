package neff

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Report is what a file of this shape contains, as far as it could be read.
type Report struct {
	HasHeader  bool
	Header     Header
	HashOK     bool
	Compressed bool
	Arch       string
	Features   []string
	Members    []MemberInfo // by path
	Streams    []StreamInfo // by path
	Vars       []VarTotal   // by type
	Queues     []string     // by name
	Inputs     []string     // "name dtype[shape]"
	Outputs    []string
	Problems   []string // what could not be read or does not hold
}

// MemberInfo is one file of the archive. Kind is "" for a file whose name says nothing.
type MemberInfo struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
	Size int64  `json:"bytes"`
}

// StreamInfo is one engine of one core: bundles of the stream, descriptors and blocks of its list.
type StreamInfo struct {
	Path        string `json:"path"` // without suffix
	Bundles     int64  `json:"bundles"`
	Descriptors int64  `json:"descriptors"`
	Blocks      int64  `json:"blocks"`
}

// VarTotal sums the variables of one type.
type VarTotal struct {
	Type  string `json:"type"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"`
}

// Members are told by pattern: prefixes differ between versions of the format.
var kinds = [...]struct {
	kind string
	re   *regexp.Regexp
}{
	{"info", regexp.MustCompile(`(^|/)info\.json$`)},
	{"manifest", regexp.MustCompile(`(^|/)neff\.json$`)},
	{"kelf", regexp.MustCompile(`(^|/)kelf-\d+\.json$`)},
	{"definition", regexp.MustCompile(`(^|/)sg[^/]*/def\.json$`)},
	{"tensor map", regexp.MustCompile(`(^|/)tensor_map\.json$`)},
	{"weights", regexp.MustCompile(`(^|/)weights\.json$`)},
	{"stream", regexp.MustCompile(`(^|/)(?i:PE|Pool|Activation|DVE|SP)\.bin$`)},
	{"descriptors", regexp.MustCompile(`(^|/)(?i:PE|Pool|Activation|DVE|SP)\.json$`)},
	{"constant", regexp.MustCompile(`\.npy$`)},
	{"debug", regexp.MustCompile(`(\.dbg|(^|/)debug\.(bin|json))$`)},
	{"engine table", regexp.MustCompile(`_table\.bin$`)},
}

func kindOf(path string) string {
	for i := range kinds {
		if kinds[i].re.MatchString(path) {
			return kinds[i].kind
		}
	}
	return ""
}

// maxProblems bounds the list of a hostile file.
const maxProblems = 100

func (r *Report) problem(format string, args ...any) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// Inspect describes size bytes of r: our packages and others of this shape, with or without the header, compressed or not.
// It fails only when there is no archive at all; everything else that is wrong is listed in Problems. lim may be nil.
func Inspect(r io.ReaderAt, size int64, lim *Limits) (*Report, error) {
	rep := &Report{}
	head, at, err := locate(r, size)
	if err != nil {
		return nil, err
	}
	if at == 0 {
		rep.problem("no header: the file starts with the archive")
	} else {
		rep.HasHeader = true
		rep.readHeader(head, r, size)
	}
	c := collector{rep: rep, streams: map[string]*StreamInfo{}, vars: map[string]*VarTotal{}}
	arch, err := readArchive(io.NewSectionReader(r, at, size-at), size-at, lim.orDefault(), false, c.member)
	rep.Compressed = arch.gzip
	if err != nil {
		rep.problem("%v", err)
	}
	c.finish()
	return rep, nil
}

// Walk visits the members of any file of this shape in their order, with or without the header, as far as it can be read. It
// stops at the first error of visit. lim may be nil.
func Walk(r io.ReaderAt, size int64, lim *Limits, visit func(Member) error) error {
	_, at, err := locate(r, size)
	if err != nil {
		return err
	}
	_, err = readArchive(io.NewSectionReader(r, at, size-at), size-at, lim.orDefault(), false, visit)
	return err
}

// locate finds the archive: behind a header, or at the start of the file.
func locate(r io.ReaderAt, size int64) (head []byte, at int64, err error) {
	head = make([]byte, min(max(size, 0), HeaderSize+512))
	n, err := r.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, 0, err
	}
	head = head[:n]
	switch {
	case isArchive(head): // first: an archive may well have a member where a payload would begin
		return head, 0, nil
	case len(head) > HeaderSize && isArchive(head[HeaderSize:]):
		return head[:HeaderSize], HeaderSize, nil
	}
	return nil, 0, target.Errorf(target.User, "neff: no archive at byte %d or 0; this is not a NEFF", HeaderSize)
}

// KindOf tells what a member is by its path, "" for a name that says nothing.
func KindOf(path string) string { return kindOf(path) }

func isArchive(b []byte) bool {
	return len(b) >= 2 && b[0] == 0x1F && b[1] == 0x8B || len(b) >= 262 && string(b[257:262]) == "ustar"
}

// readHeader reads the header twice: as it should be, and, for the fields that are fixed in place, as far as it goes.
func (r *Report) readHeader(b []byte, src io.ReaderAt, size int64) {
	h, err := ParseHeader(b)
	if err != nil {
		r.problem("%v", err)
	}
	r.Header = h
	if h.DataSize != uint64(size-HeaderSize) {
		r.problem("header announces %d payload bytes, the file has %d", h.DataSize, size-HeaderSize)
	}
	sum, err := digest(h.PkgVersion)
	if err != nil {
		r.problem("%v", err)
	} else if _, err := io.Copy(sum, io.NewSectionReader(src, HeaderSize, size-HeaderSize)); err != nil {
		r.problem("%v", err)
	} else {
		want := h
		want.seal(h.DataSize, sum.Sum(nil))
		if r.HashOK = want.Hash == h.Hash; !r.HashOK {
			r.problem("payload digest does not match the header")
		}
	}
	names, unknown := FeatureNames(h.Features)
	r.Features = names
	if unknown != 0 {
		r.problem("unknown feature bits 0x%x", unknown)
	}
}

// collector turns members into the report.
type collector struct {
	rep     *Report
	streams map[string]*StreamInfo
	vars    map[string]*VarTotal
}

func (c *collector) stream(path string) *StreamInfo {
	path = path[:strings.LastIndexByte(path, '.')]
	s := c.streams[path]
	if s == nil {
		s = &StreamInfo{Path: path}
		c.streams[path] = s
	}
	return s
}

func (c *collector) member(m Member) error {
	kind := kindOf(m.Path)
	c.rep.Members = append(c.rep.Members, MemberInfo{m.Path, kind, int64(len(m.Data))})
	var err error
	switch kind {
	case "stream":
		c.stream(m.Path).Bundles = int64(len(m.Data)) / bundleSize
		err = oddBundles(m.Data)
	case "descriptors":
		s := c.stream(m.Path)
		s.Descriptors, s.Blocks, err = countDescs(m.Data)
	case "manifest", "kelf":
		err = c.arch(m.Data)
	case "definition":
		err = c.definition(m.Data)
	case "tensor map":
		err = c.tensors(m.Data)
	case "constant":
		_, err = ParseNPY(m.Data)
	}
	if err != nil {
		c.rep.problem("%s: %v", m.Path, err)
	}
	return nil
}

func oddBundles(b []byte) error {
	if len(b)%bundleSize != 0 {
		return fmt.Errorf("%d bytes are not whole bundles", len(b))
	}
	for at := 0; at < len(b); at += bundleSize {
		if b[at+1]&^1 != lengthByte {
			return fmt.Errorf("bundle %d has length byte 0x%02X", at/bundleSize, b[at+1])
		}
	}
	return nil
}

// countDescs counts the entries of the "dma" list and the runs of equal ids.
func countDescs(b []byte) (descs, blocks int64, err error) {
	dec := jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowDuplicateNames(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return 0, 0, errors.Join(errors.New("not a JSON object"), err)
	}
	last := ""
	for dec.PeekKind() == '"' {
		key, err := dec.ReadToken()
		if err != nil {
			return descs, blocks, err
		}
		if key.String() != "dma" || dec.PeekKind() != '[' {
			if err := dec.SkipValue(); err != nil {
				return descs, blocks, err
			}
			continue
		}
		if _, err := dec.ReadToken(); err != nil {
			return descs, blocks, err
		}
		for k := dec.PeekKind(); k != ']' && k != 0; k = dec.PeekKind() {
			v, err := dec.ReadValue()
			if err != nil {
				return descs, blocks, err
			}
			var d struct {
				ID jsontext.Value `json:"id"`
			}
			if err := json.Unmarshal(v, &d); err != nil {
				return descs, blocks, err
			}
			descs++
			if id := string(d.ID); id != last {
				blocks, last = blocks+1, id
			}
		}
		if _, err := dec.ReadToken(); err != nil {
			return descs, blocks, err
		}
	}
	_, err = dec.ReadToken()
	return descs, blocks, err
}

func (c *collector) arch(b []byte) error {
	var m struct {
		Target string `json:"target_arch"`
		Arch   string `json:"arch"`
	}
	if err := json.Unmarshal(b, &m, jsontext.AllowDuplicateNames(true)); err != nil {
		return err
	}
	a := cmp.Or(m.Target, m.Arch)
	switch {
	case a == "":
		return nil
	case c.rep.Arch == "":
		c.rep.Arch = a
	case c.rep.Arch != a:
		return fmt.Errorf("architecture %q, another member says %q", a, c.rep.Arch)
	}
	return nil
}

func (c *collector) definition(b []byte) error {
	var d struct {
		Queues map[string]jsontext.Value `json:"dma_queue"`
		Vars   map[string]jsontext.Value `json:"var"`
	}
	if err := json.Unmarshal(b, &d, jsontext.AllowDuplicateNames(true)); err != nil {
		return err
	}
	for q := range d.Queues {
		c.rep.Queues = append(c.rep.Queues, q)
	}
	ids := map[int64]int{}
	bad := 0
	for _, raw := range d.Vars {
		var v struct {
			Type string `json:"type"`
			Size int64  `json:"size"`
			ID   *int64 `json:"var_id"`
		}
		if json.Unmarshal(raw, &v) != nil {
			bad++
			continue
		}
		t := c.vars[v.Type]
		if t == nil {
			t = &VarTotal{Type: v.Type}
			c.vars[v.Type] = t
		}
		t.Count++
		t.Bytes += v.Size
		if v.ID != nil {
			ids[*v.ID]++
		}
	}
	double := 0
	for _, n := range ids {
		if n > 1 {
			double++
		}
	}
	if bad+double > 0 {
		return fmt.Errorf("%d variables could not be read, %d ids are used twice", bad, double)
	}
	return nil
}

func (c *collector) tensors(b []byte) error {
	var t struct {
		Inputs  []jsontext.Value `json:"inputs"`
		Outputs []jsontext.Value `json:"outputs"`
	}
	if err := json.Unmarshal(b, &t, jsontext.AllowDuplicateNames(true)); err != nil {
		return err
	}
	c.rep.Inputs = append(c.rep.Inputs, tensorLines(t.Inputs)...)
	c.rep.Outputs = append(c.rep.Outputs, tensorLines(t.Outputs)...)
	return nil
}

func tensorLines(raw []jsontext.Value) (out []string) {
	for _, v := range raw {
		var t struct {
			Name  string  `json:"name"`
			Dtype string  `json:"dtype"`
			Shape []int64 `json:"shape"`
		}
		if json.Unmarshal(v, &t) != nil || t.Name == "" {
			out = append(out, "? "+clip(string(v)))
			continue
		}
		line := t.Name
		if t.Dtype != "" {
			line += " " + t.Dtype
			for i, n := range t.Shape {
				line += [2]string{"[", ","}[min(i, 1)] + strconv.FormatInt(n, 10)
			}
			if len(t.Shape) > 0 {
				line += "]"
			}
		}
		out = append(out, line)
	}
	return out
}

// finish sorts what came out of maps and checks that streams and lists are paired.
func (c *collector) finish() {
	r := c.rep
	for _, s := range c.streams {
		r.Streams = append(r.Streams, *s)
	}
	for _, v := range c.vars {
		r.Vars = append(r.Vars, *v)
	}
	slices.SortFunc(r.Streams, func(a, b StreamInfo) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(r.Vars, func(a, b VarTotal) int { return cmp.Compare(a.Type, b.Type) })
	slices.SortFunc(r.Members, func(a, b MemberInfo) int { return cmp.Compare(a.Path, b.Path) })
	slices.Sort(r.Queues)
	has := map[string]bool{}
	for _, m := range r.Members {
		has[m.Path] = true
	}
	for _, s := range r.Streams {
		if !has[s.Path+".bin"] || !has[s.Path+".json"] {
			r.problem("%s has a stream or a descriptor list, not both", s.Path)
		}
	}
	for _, want := range []string{"manifest", "kelf", "definition", "tensor map"} {
		if !slices.ContainsFunc(r.Members, func(m MemberInfo) bool { return m.Kind == want }) {
			r.problem("no %s", want)
		}
	}
}

// AppendText appends the report as lines of text.
func (r *Report) AppendText(dst []byte) []byte {
	line := func(format string, args ...any) { dst = append(fmt.Appendf(dst, format, args...), '\n') }
	if r.HasHeader {
		h := &r.Header
		line("name      %s", h.Name)
		line("build     %s", h.Build)
		line("version   %d (neff %d.%d)", h.PkgVersion, h.Major, h.Minor)
		line("uuid      %x-%x-%x-%x-%x", h.UUID[:4], h.UUID[4:6], h.UUID[6:8], h.UUID[8:10], h.UUID[10:])
		line("payload   %d bytes, digest %s", h.DataSize, map[bool]string{true: "ok", false: "WRONG"}[r.HashOK])
		line("cores     %d, lnc %d", h.NumTPB, h.LNC)
	}
	line("arch      %s", cmp.Or(r.Arch, "unknown"))
	line("format    %s", map[bool]string{true: "tar, gzip", false: "tar"}[r.Compressed])
	for _, f := range r.Features {
		line("feature   %s", f)
	}
	var bundles, descs int64
	for _, s := range r.Streams {
		line("engine    %-20s %10d bundles %10d descriptors %8d blocks", s.Path, s.Bundles, s.Descriptors, s.Blocks)
		bundles, descs = bundles+s.Bundles, descs+s.Descriptors
	}
	line("total     %-20s %10d bundles %10d descriptors", "", bundles, descs)
	for _, v := range r.Vars {
		line("variables %-20s %10d, %d bytes", v.Type, v.Count, v.Bytes)
	}
	for _, q := range r.Queues {
		line("queue     %s", q)
	}
	for _, s := range r.Inputs {
		line("input     %s", s)
	}
	for _, s := range r.Outputs {
		line("output    %s", s)
	}
	for _, m := range r.Members {
		line("member    %-32s %12d %s", m.Path, m.Size, m.Kind)
	}
	for _, p := range r.Problems {
		line("problem   %s", p)
	}
	return dst
}
