package programs

import (
	"maps"
	"slices"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// maxSeen bounds the files that are recorded, and maxSeeing the bytes of each that are examined.
const maxSeen, maxSeeing = 100, 64 << 10

// sees records what a file says about how the agent observes the environment.
func (f *Finder) sees(file string, text []byte) {
	if s := pytext.SeeingOf(text[:min(len(text), maxSeeing)]); s != (pytext.Seeing{}) && len(f.seen) < maxSeen {
		f.seen[file] = s
	}
}

// Seeing returns how the agent observes the environment, according to the training program, else to the file that
// mentions the algorithm, and else to all other files together, except other programs and files that are aside.
func (f *Finder) Seeing(algorithm string, aside func(file string) bool) pytext.Seeing {
	firsts := []string{algorithm}
	if len(f.trained) > 0 {
		firsts = []string{f.trained[0].file, algorithm}
	}
	var out pytext.Seeing
	skip := map[string]bool{}
	for _, file := range firsts {
		out = out.Or(pytext.SeeingOf([]byte(f.Text[file])))
		skip[file] = true
	}
	for _, p := range append(slices.Clone(f.trained), f.evaluated...) {
		skip[p.file] = true
	}
	for _, file := range f.Order {
		if !skip[file] && !aside(file) && !f.isLate() {
			f.sees(file, []byte(f.Text[file]))
		}
	}
	maps.DeleteFunc(f.seen, func(file string, _ pytext.Seeing) bool { return aside(file) })
	return out.Or(pytext.Agreed(maps.Values(f.seen)))
}
