package neff

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/rosmar-compiler/rosmar/ir/target"
)

// HeaderSize is the bytes before the payload.
const HeaderSize = 1024

// Versions of the package: they select the digest.
const (
	VersionSHA256 = 1
	VersionMD5    = 2
)

// Header is the packed first 1024 bytes of a file. Offsets are fixed by the format; DataSize, Hash and UUID are filled by the
// Writer.
type Header struct {
	PkgVersion uint64
	DataSize   uint64
	Major      uint64
	Minor      uint64
	Build      string // at most 127 bytes
	NumTPB     uint32
	Hash       [32]byte // MD5 fills the first 16
	UUID       [16]byte
	Name       string // at most 255 bytes
	Requested  uint32
	PerNode    [64]byte
	Features   uint64
	LNC        uint32
}

const (
	offVersion   = 0
	offHeader    = 8
	offData      = 16
	offMajor     = 24
	offMinor     = 32
	offBuild     = 40
	offNumTPB    = 168
	offHash      = 172
	offUUID      = 204
	offName      = 220
	offRequested = 476
	offPerNode   = 480
	offFeatures  = 544
	offLNC       = 552
	offPad       = 556
)

// IsPackage reports whether b begins like a package: with a header that announces its own size.
func IsPackage(b []byte) bool {
	le := binary.LittleEndian
	return len(b) >= offData && le.Uint64(b[offHeader:]) == HeaderSize && le.Uint64(b[offVersion:]) < 16
}

// NewHeader is the header of a single-core package.
func NewHeader(name, build string, features uint64) Header {
	h := Header{PkgVersion: VersionMD5, Major: 2, Build: build, NumTPB: 1, Name: name, Requested: 1, Features: features, LNC: 1}
	h.PerNode[0] = 1
	return h
}

// AppendTo appends the 1024 bytes.
func (h *Header) AppendTo(dst []byte) ([]byte, error) {
	var b [HeaderSize]byte
	le := binary.LittleEndian
	le.PutUint64(b[offVersion:], h.PkgVersion)
	le.PutUint64(b[offHeader:], HeaderSize)
	le.PutUint64(b[offData:], h.DataSize)
	le.PutUint64(b[offMajor:], h.Major)
	le.PutUint64(b[offMinor:], h.Minor)
	if err := putText(b[offBuild:offNumTPB], "build", h.Build); err != nil {
		return nil, err
	}
	le.PutUint32(b[offNumTPB:], h.NumTPB)
	copy(b[offHash:], h.Hash[:])
	copy(b[offUUID:], h.UUID[:])
	if err := putText(b[offName:offRequested], "name", h.Name); err != nil {
		return nil, err
	}
	le.PutUint32(b[offRequested:], h.Requested)
	copy(b[offPerNode:], h.PerNode[:])
	le.PutUint64(b[offFeatures:], h.Features)
	le.PutUint32(b[offLNC:], h.LNC)
	return append(dst, b[:]...), nil
}

func putText(dst []byte, field, s string) error {
	if len(s) >= len(dst) {
		return target.Errorf(target.Limit, "neff: header %s is %d bytes; the limit is %d", field, len(s), len(dst)-1)
	}
	if bytes.IndexByte([]byte(s), 0) >= 0 {
		return target.Errorf(target.User, "neff: header %s %q contains a NUL", field, s)
	}
	copy(dst, s)
	return nil
}

// ParseHeader reads the 1024 bytes. It checks the form (header size, texts, padding), not the payload.
func ParseHeader(b []byte) (Header, error) {
	var h Header
	if len(b) < HeaderSize {
		return h, target.Errorf(target.User, "neff: file is %d bytes, shorter than the %d byte header", len(b), HeaderSize)
	}
	le := binary.LittleEndian
	if n := le.Uint64(b[offHeader:]); n != HeaderSize {
		return h, target.Errorf(target.User, "neff: header size field is %d, want %d: not a package, or an older form", n, HeaderSize)
	}
	h.PkgVersion = le.Uint64(b[offVersion:])
	h.DataSize = le.Uint64(b[offData:])
	h.Major = le.Uint64(b[offMajor:])
	h.Minor = le.Uint64(b[offMinor:])
	h.NumTPB = le.Uint32(b[offNumTPB:])
	copy(h.Hash[:], b[offHash:])
	copy(h.UUID[:], b[offUUID:])
	h.Requested = le.Uint32(b[offRequested:])
	copy(h.PerNode[:], b[offPerNode:])
	h.Features = le.Uint64(b[offFeatures:])
	h.LNC = le.Uint32(b[offLNC:])
	var err error
	if h.Build, err = getText(b[offBuild:offNumTPB], "build"); err != nil {
		return h, err
	}
	if h.Name, err = getText(b[offName:offRequested], "name"); err != nil {
		return h, err
	}
	for i := offPad; i < HeaderSize; i++ {
		if b[i] != 0 {
			return h, target.Errorf(target.User, "neff: header padding byte %d is not zero", i)
		}
	}
	return h, nil
}

func getText(b []byte, field string) (string, error) {
	s, rest, ok := bytes.Cut(b, []byte{0})
	if !ok {
		return "", target.Errorf(target.User, "neff: header %s has no end", field)
	}
	for _, c := range rest {
		if c != 0 {
			return "", target.Errorf(target.User, "neff: header %s has bytes after its end", field)
		}
	}
	return string(s), nil
}

// digest is the hash of a package version.
func digest(version uint64) (hash.Hash, error) {
	switch version {
	case VersionSHA256:
		return sha256.New(), nil
	case VersionMD5:
		return md5.New(), nil
	}
	return nil, target.Errorf(target.Unsupported, "neff: package version %d; 1 (SHA-256) and 2 (MD5) are known", version)
}

// seal stores the payload's size and digest, and the UUID made of it: version 4 in form, so that equal payloads have equal
// identities.
func (h *Header) seal(size uint64, sum []byte) {
	h.DataSize = size
	h.Hash = [32]byte{}
	copy(h.Hash[:], sum)
	copy(h.UUID[:], sum)
	h.UUID[6] = h.UUID[6]&0x0F | 0x40
	h.UUID[8] = h.UUID[8]&0x3F | 0x80
}
