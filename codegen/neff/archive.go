package neff

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"hash"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Member is one file of the archive. Path is relative, slash-separated and clean.
type Member struct {
	Path string
	Data []byte
}

// Limits bounds what reading a file may cost. The zero value means DefaultLimits.
type Limits struct {
	Members int   // files in the archive
	Member  int64 // bytes of one file
	Total   int64 // bytes of all files together
	Free    int64 // bytes that any file may expand to ...
	Ratio   int64 // ... and beyond which they may be at most Ratio times the compressed payload
}

// DefaultLimits fits real models: 8 GiB of content; 256 MiB or 200 times the file, whichever is more.
var DefaultLimits = Limits{Members: 100_000, Member: 4 << 30, Total: 8 << 30, Free: 256 << 20, Ratio: 200}

func (l *Limits) orDefault() Limits {
	if l == nil || *l == (Limits{}) {
		return DefaultLimits
	}
	return *l
}

const (
	tarBlocking  = 10240 // archives are padded to whole blocks of this size
	maxPath      = 4096
	gzipLevel    = 1
	memberMode   = 0o644
	memberOwner  = "nobody"
	growthAtOnce = 1 << 20 // read buffers grow with what arrives, not with what a header claims
)

// Writer streams an archive into a file and puts the header in front. Members come in ascending path order. Nothing but
// order, names and contents decides the bytes.
type Writer struct {
	out   io.WriteSeeker
	h     Header
	sum   hash.Hash
	sunk  int64 // payload bytes
	pack  *packer
	buf   *bufio.Writer // of pack
	gz    *gzip.Writer  // of pack, nil = plain tar
	tarN  int64         // tar bytes
	tar   *tar.Writer
	last  string
	start int64
	err   error
}

// packer is the end of a writer's pipe, a megabyte of tables that hold nothing between two packages.
type packer struct {
	buf *bufio.Writer
	gz  *gzip.Writer
}

var packers = sync.Pool{New: func() any {
	gz, err := gzip.NewWriterLevel(nil, gzipLevel)
	if err != nil {
		panic("neff: " + err.Error()) // the level is ours
	}
	return &packer{bufio.NewWriterSize(nil, 1<<16), gz}
}}

// NewWriter begins a package at the current position of out. plain leaves the tar uncompressed.
func NewWriter(out io.WriteSeeker, h Header, plain bool) (*Writer, error) {
	if h.PkgVersion == 0 {
		h.PkgVersion = VersionMD5
	}
	sum, err := digest(h.PkgVersion)
	if err != nil {
		return nil, err
	}
	w := &Writer{out: out, h: h, sum: sum}
	if w.start, err = out.Seek(0, io.SeekCurrent); err != nil {
		return nil, err
	}
	blank, err := w.h.AppendTo(nil)
	if err != nil {
		return nil, err
	}
	if _, err := out.Write(blank); err != nil {
		return nil, err
	}
	w.pack = packers.Get().(*packer)
	w.buf = w.pack.buf
	w.buf.Reset((*payloadSink)(w))
	var under io.Writer = w.buf
	if !plain {
		w.gz = w.pack.gz
		w.gz.Reset(w.buf)
		under = w.gz
	}
	w.tar = tar.NewWriter(&counter{w: under, n: &w.tarN})
	return w, nil
}

// payloadSink is the Writer as the end of its own pipe: it hashes and counts what reaches the file.
type payloadSink Writer

func (s *payloadSink) Write(p []byte) (int, error) {
	n, err := s.out.Write(p)
	s.sum.Write(p[:n])
	s.sunk += int64(n)
	return n, err
}

type counter struct {
	w io.Writer
	n *int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	*c.n += int64(n)
	return n, err
}

// Add writes a member from memory.
func (w *Writer) Add(path string, data []byte) error {
	return w.AddStream(path, int64(len(data)), func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
}

// AddStream writes a member of a known size, which write must produce exactly.
func (w *Writer) AddStream(path string, size int64, write func(io.Writer) error) error {
	if w.err != nil {
		return w.err
	}
	w.err = w.addStream(path, size, write)
	return w.err
}

func (w *Writer) addStream(path string, size int64, write func(io.Writer) error) error {
	if err := checkPath(path); err != nil {
		return err
	}
	if path <= w.last {
		return target.Errorf(target.Bug, "neff: member %q comes after %q; members are sorted and unique", path, w.last)
	}
	w.last = path
	if err := w.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: path, Size: size, Mode: memberMode, Uname: memberOwner, Gname: memberOwner,
		ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
	}); err != nil {
		return target.Errorf(target.Limit, "neff: member %q: %w", path, err)
	}
	before := w.tarN
	if err := write(w.tar); err != nil {
		if errors.Is(err, tar.ErrWriteTooLong) {
			return target.Errorf(target.Bug, "neff: member %q is longer than its %d bytes", path, size)
		}
		return err
	}
	if got := w.tarN - before; got != size {
		return target.Errorf(target.Bug, "neff: member %q is %d bytes, %d were announced", path, got, size)
	}
	return nil
}

// Close ends the archive and writes the finished header; it returns the header. out is left at the end of the file.
func (w *Writer) Close() (Header, error) {
	if w.err != nil {
		return Header{}, w.err
	}
	w.err = errors.New("neff: writer is closed")
	if err := w.tar.Close(); err != nil {
		return Header{}, err
	}
	if rest := w.tarN % tarBlocking; rest != 0 {
		pad := make([]byte, tarBlocking-rest)
		var err error
		if w.gz != nil {
			_, err = w.gz.Write(pad)
		} else {
			_, err = w.buf.Write(pad)
		}
		if err != nil {
			return Header{}, err
		}
	}
	if w.gz != nil {
		if err := w.gz.Close(); err != nil {
			return Header{}, err
		}
	}
	if err := w.buf.Flush(); err != nil {
		return Header{}, err
	}
	w.buf.Reset(nil)
	w.gz, w.buf = nil, nil
	packers.Put(w.pack)
	w.h.seal(uint64(w.sunk), w.sum.Sum(nil))
	head, err := w.h.AppendTo(nil)
	if err != nil {
		return Header{}, err
	}
	if _, err := w.out.Seek(w.start, io.SeekStart); err != nil {
		return Header{}, err
	}
	if _, err := w.out.Write(head); err != nil {
		return Header{}, err
	}
	_, err = w.out.Seek(w.start+HeaderSize+w.sunk, io.SeekStart)
	return w.h, err
}

// Buffer is a file in memory for NewWriter and for outputs that cannot seek.
type Buffer struct {
	b   []byte
	pos int64
}

// Bytes is the content.
func (m *Buffer) Bytes() []byte { return m.b }

// Reset empties the buffer and keeps its memory.
func (m *Buffer) Reset() { m.b, m.pos = m.b[:0], 0 }

// Write overwrites at the position and grows at the end.
func (m *Buffer) Write(p []byte) (int, error) {
	if over := m.pos + int64(len(p)) - int64(len(m.b)); over > 0 {
		m.b = append(m.b, make([]byte, over)...)
	}
	copy(m.b[m.pos:], p)
	m.pos += int64(len(p))
	return len(p), nil
}

// Seek moves inside the content; beyond the end is refused.
func (m *Buffer) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += m.pos
	case io.SeekEnd:
		offset += int64(len(m.b))
	}
	if offset < 0 || offset > int64(len(m.b)) {
		return 0, target.Errorf(target.Bug, "neff: seek to %d in a buffer of %d bytes", offset, len(m.b))
	}
	m.pos = offset
	return offset, nil
}

// checkPath accepts relative slash paths without empty, "." and ".." parts.
func checkPath(p string) error {
	switch {
	case p == "" || len(p) > maxPath:
		return target.Errorf(target.User, "neff: member name of %d bytes; 1..%d are possible", len(p), maxPath)
	case p[0] == '/':
		return target.Errorf(target.User, "neff: member %q is an absolute path", p)
	case strings.ContainsAny(p, "\x00\\"):
		return target.Errorf(target.User, "neff: member %q contains a NUL or backslash", p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." {
			return target.Errorf(target.User, "neff: member %q has an empty, \".\" or \"..\" part", p)
		}
	}
	return nil
}

// payload is what a container reader learns about the bytes after the header.
type payload struct {
	gzip    bool
	members []Member
}

// readArchive reads members from size compressed or plain bytes. It allocates as content arrives, never by what a header
// claims, and stops at the first limit. visit may be nil; when it is not, members are handed over and not kept. strict
// demands our profile: sorted names, regular files only, nothing after the archive.
func readArchive(r io.Reader, size int64, lim Limits, strict bool, visit func(Member) error) (payload, error) {
	var out payload
	br := bufio.NewReaderSize(r, 1<<16)
	magic, err := br.Peek(2)
	if err != nil {
		return out, target.Errorf(target.User, "neff: payload of %d bytes is no archive", size)
	}
	var src io.Reader = br
	var gz *gzip.Reader
	if magic[0] == 0x1F && magic[1] == 0x8B {
		out.gzip = true
		if gz, err = gzip.NewReader(br); err != nil {
			return out, badArchive(err)
		}
		gz.Multistream(false)
		src = gz
	}
	budget := min(lim.Total, max(lim.Free, satMul(lim.Ratio, size)))
	allowed := budget + int64(lim.Members+2)*1024 + tarBlocking
	bounded := &bound{r: src, left: allowed}
	tr := tar.NewReader(bounded)
	seen := map[string]bool{}
	last, total, mark := "", int64(0), int64(0)
	for {
		mark = bounded.left
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return out, badArchive(err)
		}
		if !strict && (h.Typeflag == tar.TypeDir || h.Typeflag == tar.TypeXGlobalHeader) {
			continue
		}
		name := h.Name
		if !strict {
			name = strings.TrimPrefix(name, "./")
		}
		if err := checkPath(name); err != nil {
			return out, err
		}
		if h.Typeflag != tar.TypeReg || h.Linkname != "" {
			return out, target.Errorf(target.User, "neff: member %q is not a regular file (type %q); links and devices are refused", name, h.Typeflag)
		}
		for k := range h.PAXRecords {
			if strings.HasPrefix(k, "GNU.sparse.") {
				return out, target.Errorf(target.User, "neff: member %q is sparse; sparse files are refused", name)
			}
		}
		if seen[name] {
			return out, target.Errorf(target.User, "neff: member %q occurs twice", name)
		}
		seen[name] = true
		if strict && name <= last {
			return out, target.Errorf(target.User, "neff: member %q comes after %q; members must be sorted", name, last)
		}
		last = name
		if len(seen) > lim.Members {
			return out, target.Errorf(target.Limit, "neff: more than %d members", lim.Members)
		}
		if h.Size < 0 || h.Size > lim.Member {
			return out, target.Errorf(target.Limit, "neff: member %q of %d bytes; the limit is %d", name, h.Size, lim.Member)
		}
		if total += h.Size; total > budget {
			return out, target.Errorf(target.Limit, "neff: members hold more than %d bytes (payload %d, ratio %d, total %d); raise the limits if you trust the file", budget, size, lim.Ratio, lim.Total)
		}
		var buf bytes.Buffer
		buf.Grow(int(min(h.Size, growthAtOnce)))
		if _, err := io.Copy(&buf, tr); err != nil {
			return out, badArchive(err)
		}
		if int64(buf.Len()) != h.Size {
			return out, target.Errorf(target.User, "neff: member %q is cut off after %d of %d bytes", name, buf.Len(), h.Size)
		}
		m := Member{name, buf.Bytes()}
		if visit == nil {
			out.members = append(out.members, m)
		} else if err := visit(m); err != nil {
			return out, err
		}
	}
	if strict {
		if mark-bounded.left < 1024 {
			return out, target.Errorf(target.User, "neff: archive is cut off: no end mark")
		}
		if err := checkEnd(bounded, gz, br); err != nil {
			return out, err
		}
		if (allowed-bounded.left)%tarBlocking != 0 {
			return out, target.Errorf(target.User, "neff: archive is cut off: %d bytes are not whole blocks of %d", allowed-bounded.left, tarBlocking)
		}
	}
	return out, nil
}

// checkEnd: after the archive come zeros up to a whole tar block, then the end of the compressed stream, whose checksum
// this reads, then nothing.
func checkEnd(src io.Reader, gz *gzip.Reader, br *bufio.Reader) error {
	var pad [512]byte
	for n := 0; ; {
		k, err := src.Read(pad[:])
		for _, c := range pad[:k] {
			if c != 0 {
				return target.Errorf(target.User, "neff: data after the end of the archive")
			}
		}
		if n += k; n > tarBlocking {
			return target.Errorf(target.User, "neff: more than %d bytes of padding after the archive", tarBlocking)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return badArchive(err)
		}
	}
	if gz != nil {
		if _, err := br.ReadByte(); err != io.EOF {
			return target.Errorf(target.User, "neff: data after the compressed payload")
		}
	}
	return nil
}

// bound fails a reader that gives more than it may: tar headers themselves can be a bomb.
type bound struct {
	r    io.Reader
	left int64
}

var errBomb = errors.New("content expands beyond the limit")

func (b *bound) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errBomb
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	return n, err
}

func badArchive(err error) error {
	if errors.Is(err, errBomb) {
		return target.Errorf(target.Limit, "neff: archive: %w; raise the limits if you trust the file", err)
	}
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return target.Errorf(target.User, "neff: archive is cut off")
	}
	return target.Errorf(target.User, "neff: archive is damaged: %w", err)
}

func satMul(a, b int64) int64 {
	if a > 0 && b > (1<<62)/a {
		return 1 << 62
	}
	return a * b
}
