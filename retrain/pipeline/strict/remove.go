package strict

import (
	"reflect"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// IsBlank reports whether a file contains nothing but comments.
func IsBlank(text []byte) bool {
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && line != "---" {
			return false
		}
	}
	return true
}

// Remove sets the fields that a file leaves empty to their zero values: a null or an empty mapping removes what an
// ancestor file sets. dst is a pointer to the struct that the file was read into.
func Remove(r *yamlfile.Reader, dst any) { remove(r, "", reflect.ValueOf(dst).Elem()) }

func remove(r *yamlfile.Reader, path string, x reflect.Value) {
	for _, f := range yamlfile.Fields(x) {
		at := yamlfile.Join(path, f.Key)
		switch tree, isTree := f.Value.Interface().(yamlfile.Value); {
		case !r.Given(at):
		case Removes(r, at) || isTree && len(tree.Items)+len(tree.Members) == 0 && tree.Scalar == "":
			f.Value.SetZero()
		case !isTree && f.Value.Kind() == reflect.Struct:
			remove(r, at, f.Value)
		}
	}
}

// Removes reports whether a file has a null or an empty section at a path or above it, so that no ancestor file sets
// the value.
func Removes(r *yamlfile.Reader, path string) bool {
	for around := path; ; {
		if r.Given(around) && !r.Set(around) {
			return true
		}
		i := strings.LastIndexAny(around, ".[")
		if i < 0 {
			return false
		}
		around = around[:i]
	}
}

// OneLine removes the newline at the end of a folded YAML scalar, as in "description: >", from all strings of a struct.
func OneLine(x reflect.Value) {
	switch x.Kind() {
	case reflect.Struct:
		for _, f := range yamlfile.Fields(x) {
			OneLine(f.Value)
		}
	case reflect.Slice:
		for i := range x.Len() {
			OneLine(x.Index(i))
		}
	case reflect.String:
		x.SetString(strings.TrimSuffix(x.String(), "\n"))
	}
}
