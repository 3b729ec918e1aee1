package zoo

import (
	"fmt"
	"strings"
)

// Setting is one key of a model, for readers.
type Setting struct {
	Name    string
	Doc     string
	Values  string // "1…4096", or "relu|gelu"
	Default string
}

// Entry is one model, for readers.
type Entry struct {
	Name     string // with Prefix
	Doc      string
	Settings []Setting
}

func (k key) values() string {
	if k.choices != nil {
		return strings.Join(k.choices, "|")
	}
	return fmt.Sprintf("%d…%d", k.low, k.high)
}

// Describe lists every model with every setting and its default.
func Describe() []Entry {
	es := make([]Entry, len(models))
	for i := range models {
		m := &models[i]
		e := Entry{Name: Prefix + m.name, Doc: m.doc}
		for _, k := range m.allKeys() {
			e.Settings = append(e.Settings, Setting{Name: k.name, Doc: k.doc, Values: k.values(), Default: k.def})
		}
		es[i] = e
	}
	return es
}

// Help describes every model and its settings, one line each; the settings of a family stand once, behind its models.
func Help() string {
	var b strings.Builder
	width := 0
	for _, m := range models {
		width = max(width, len(m.name))
	}
	line := func(k key, several bool) {
		def := k.def
		if k.published && several {
			def = "the model's"
		}
		fmt.Fprintf(&b, "    %-9s %s (%s; default %s)\n", k.name, k.doc, k.values(), def)
	}
	for i := range models {
		m := &models[i]
		fmt.Fprintf(&b, "%s%-*s  %s\n", Prefix, width, m.name, m.doc)
		if i+1 < len(models) && models[i+1].family == m.family && m.family != "" {
			continue
		}
		for _, k := range m.keys {
			line(k, i > 0 && models[i-1].family == m.family && m.family != "")
		}
	}
	b.WriteString("every model:\n")
	for _, k := range common("") {
		line(k, true)
	}
	return b.String()
}
