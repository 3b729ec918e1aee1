package bir

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// How far IsBIR looks.
const (
	sniffMembers = 64
	sniffTokens  = 4096
)

// IsBIR reports whether data, which may be the beginning of a file, looks like BIR JSON: an object with one of the keys
// functions, nki_functions, module or version. It looks at no more than the first few thousand tokens.
func IsBIR(data []byte) bool {
	t := bytes.TrimLeft(data, " \t\r\n")
	if len(t) == 0 || t[0] != '{' {
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	tokens := 0
	for range sniffMembers {
		key, err := dec.ReadToken()
		if err != nil || key.Kind() != '"' {
			return false
		}
		switch key.String() {
		case "functions", "nki_functions", "module", "version":
			return true
		}
		for first := true; first || dec.StackDepth() > 1; first = false {
			if _, err := dec.ReadToken(); err != nil {
				return false
			}
			if tokens++; tokens > sniffTokens {
				return false
			}
		}
	}
	return false
}
