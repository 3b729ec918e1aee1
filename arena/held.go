package arena

import (
	"reflect"
	"strings"
)

// AddFields adds an entry for each field of the struct that owner points to, under prefix and the field's name in small letters: the
// bytes of every array that slices in the field lead to and that the report has not counted yet, and the rows of the longest. Pointers,
// maps, interfaces and texts are taken for what others own. Fields without an array are left out.
func (r *Report) AddFields(prefix string, owner any) {
	v := reflect.ValueOf(owner).Elem()
	if r.counted == nil {
		r.counted = make(map[uintptr]bool)
	}
	for i := range v.NumField() {
		if rows, bytes := r.size(v.Field(i)); bytes > 0 {
			r.Add(prefix+"."+strings.ToLower(v.Type().Field(i).Name), rows, bytes)
		}
	}
}

// Held is the bytes of every array that slices in the struct that owner points to lead to, as AddFields counts them.
func Held(owner any) int {
	var r Report
	r.AddFields("", owner)
	return r.Total()
}

func (r *Report) size(v reflect.Value) (rows, bytes int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			n, b := r.size(v.Field(i))
			rows, bytes = max(rows, n), bytes+b
		}
	case reflect.Array:
		if hasSlices(v.Type().Elem()) {
			for i := range v.Len() {
				n, b := r.size(v.Index(i))
				rows, bytes = max(rows, n), bytes+b
			}
		}
	case reflect.Slice:
		if v.Cap() == 0 || r.counted[v.Pointer()] {
			return 0, 0
		}
		r.counted[v.Pointer()] = true
		rows, bytes = v.Len(), v.Cap()*int(v.Type().Elem().Size())
		if hasSlices(v.Type().Elem()) {
			for v, i := v.Slice(0, v.Cap()), 0; i < v.Len(); i++ { // what is beyond the length is kept for the next use
				_, b := r.size(v.Index(i))
				bytes += b
			}
		}
	}
	return rows, bytes
}

// hasSlices reports whether values of the type can lead to an array without a pointer in between.
func hasSlices(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice:
		return true
	case reflect.Array:
		return hasSlices(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasSlices(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
