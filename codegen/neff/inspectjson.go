package neff

import (
	"encoding/hex"

	"github.com/go-json-experiment/json"
)

// headerView is the header in a report as JSON.
type headerView struct {
	Name       string   `json:"name"`
	Build      string   `json:"build"`
	PkgVersion uint64   `json:"package_version"`
	Major      uint64   `json:"neff_major"`
	Minor      uint64   `json:"neff_minor"`
	UUID       string   `json:"uuid"`
	DataSize   uint64   `json:"payload_bytes"`
	Hash       string   `json:"digest"`
	HashOK     bool     `json:"digest_ok"`
	Cores      uint32   `json:"cores"`
	LNC        uint32   `json:"lnc"`
	Features   []string `json:"features"`
}

// fileView is a report as JSON.
type fileView struct {
	File       string       `json:"file"`
	Bytes      int64        `json:"bytes"`
	Header     *headerView  `json:"header,omitempty"`
	Arch       string       `json:"arch"`
	Compressed bool         `json:"compressed"`
	Engines    []StreamInfo `json:"engines"`
	Variables  []VarTotal   `json:"variables"`
	Queues     []string     `json:"queues"`
	Inputs     []string     `json:"inputs"`
	Outputs    []string     `json:"outputs"`
	Members    []MemberInfo `json:"members"`
	Problems   []string     `json:"problems"`
}

// AppendJSON appends the report as one JSON object; name and size are those of the file.
func (r *Report) AppendJSON(dst []byte, name string, size int64) []byte {
	v := fileView{
		File: name, Bytes: size, Arch: r.Arch, Compressed: r.Compressed, Engines: r.Streams, Variables: r.Vars, Queues: r.Queues,
		Inputs: r.Inputs, Outputs: r.Outputs, Members: r.Members, Problems: r.Problems,
	}
	if h := &r.Header; r.HasHeader {
		digest := h.Hash[:]
		if h.PkgVersion == VersionMD5 {
			digest = digest[:16]
		}
		v.Header = &headerView{
			h.Name, h.Build, h.PkgVersion, h.Major, h.Minor, hex.EncodeToString(h.UUID[:]), h.DataSize, hex.EncodeToString(digest),
			r.HashOK, h.NumTPB, h.LNC, r.Features,
		}
	}
	b, err := json.Marshal(&v)
	if err != nil {
		return append(dst, "{}"...) // plain texts and numbers: nothing in it can fail to marshal
	}
	return append(dst, b...)
}
