package pipeline

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// docs/pipelines.md has a line for each key, and no others.
func TestReferenceHasEveryKey(t *testing.T) {
	text, err := os.ReadFile("../../docs/pipelines.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## The file\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(section, -1) {
		first := ""
		for i, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			key := m[1]
			if i == 0 {
				first = key[:max(0, strings.LastIndex(key, "."))]
			}
			if strings.HasPrefix(key, ".") { // within the same section
				key = first + key
			}
			documented = append(documented, strings.ReplaceAll(key, "[]", ""))
		}
	}
	keys := keysOf("", reflect.ValueOf(&File{}).Elem())
	for _, k := range keys {
		if !slices.Contains(documented, k) {
			t.Errorf("the reference has no %s", k)
		}
	}
	for _, k := range documented {
		if !slices.Contains(keys, k) {
			t.Errorf("the reference has %s, which the file has not", k)
		}
	}
}

// keysOf returns the paths of all scalars and lists of scalars.
func keysOf(path string, x reflect.Value) []string {
	var out []string
	for _, f := range yamlfile.Fields(x) {
		v, key := f.Value, yamlfile.Join(path, f.Key)
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct {
			v = reflect.New(v.Type().Elem()).Elem()
		}
		if _, tree := v.Interface().(yamlfile.Value); v.Kind() == reflect.Struct && !tree {
			out = append(out, keysOf(key, v)...)
		} else {
			out = append(out, key)
		}
	}
	return out
}
