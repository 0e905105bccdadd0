package pipeline

import (
	"fmt"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// validateGuards checks that the guards can be copied to the generated configuration. The configuration itself checks
// what the keys mean.
func validateGuards(w *Work) {
	g := w.File.Guards
	switch g.Kind {
	case yamlfile.Absent:
	case yamlfile.Mapping:
		w.plainKeys("guards", g)
		if len(g.Members) == 0 {
			w.report("guards", "must contain limits")
		}
	default:
		w.report("guards", "must be a mapping that contains limits, not %s", g.Kind)
	}
}

// plainKeys reports keys that are not plain names.
func (w *Work) plainKeys(path string, v yamlfile.Value) {
	for i, item := range v.Items {
		w.plainKeys(element(path, i), item)
	}
	for _, key := range v.Keys() {
		at, member := yamlfile.JoinAny(path, key), v.Members[key]
		if !pytext.Identifier.MatchString(key) {
			w.Problems = append(w.Problems, yamlfile.Problem{Place: member.Key, Path: at, Message: fmt.Sprintf("must be a name of letters, digits and underscores, not %q", key)})
		}
		w.plainKeys(at, member)
	}
}
