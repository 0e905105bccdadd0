package inspect

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// pastOf returns the history of a policy, with the given level of its return and version at each episode, and noise of
// 1.
func pastOf(seed uint64, units int, level func(i int) float64, version func(i int) string) history.Record {
	rng := rand.New(rand.NewPCG(seed, 3))
	h := &history.History{}
	for i := range units {
		h.Begin(int64(i), 0)
		h.Version(int64(i), 0, ingest.Versions{Policy: version(i)})
		h.Add("return", level(i)+rng.NormFloat64())
	}
	return h.Record()
}

func TestLearningIsProposed(t *testing.T) {
	one := func(int) string { return "1" }
	hourly := func(i int) string { return string(rune('a' + i/300)) }
	for _, tt := range []struct {
		name    string
		units   int
		level   func(i int) float64
		version func(i int) string
		given   watch.Learning
		want    string
	}{
		{"it learns", 2000, func(i int) float64 { return float64(i) / 400 }, one, "", "continuous"},
		{"it learns early on", 2000, func(i int) float64 { return 5 * min(1, float64(i)/800) }, one, "", "continuous"},
		{"it learns fast", 2000, func(i int) float64 { return 3 * min(1, max(0, float64(i-600)/300)) }, one, "", "continuous"},
		{"it is changed once", 2000, func(i int) float64 { return 1.5 * float64(i/1000) }, one, "", ""},
		{"it is changed early, by much", 2000, func(i int) float64 { return 8 * float64(min(1, i/450)) }, one, "", ""},
		{"it is changed late", 2000, func(i int) float64 { return 2 * float64(i/1730) }, one, "", ""},
		{"it learns between versions", 2000, func(i int) float64 { return float64(i/300) / 1.5 }, hourly, "", "versions"},
		{"it does not learn", 2000, func(int) float64 { return 3 }, one, "", ""},
		{"new versions that do not learn", 2000, func(int) float64 { return 3 }, hourly, "", ""},
		{"it gets worse", 2000, func(i int) float64 { return -float64(i) / 400 }, one, "", ""},
		{"it rises by too little to matter", 2000, func(i int) float64 { return .25 * float64(i) / 2000 }, one, "", ""},
		{"too few episodes", 150, func(i int) float64 { return float64(i) / 20 }, one, "", ""},
		{"the given mode stays", 2000, func(int) float64 { return 3 }, one, watch.LearningVersions, "versions"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			right := 0
			for seed := range uint64(40) {
				past := pastOf(seed, tt.units, tt.level, tt.version)
				p := PolicyInspection{learned: learnedIn(&past)}
				p.learned.given = tt.given
				s := learningSetting(p)
				if s.Value == tt.want {
					right++
				}
				if s.Value != "" && (s.Key != "learning" || s.Why == "" || strings.Contains(s.Why, "\n")) {
					t.Fatalf("%+v", s)
				}
			}
			if right < 39 {
				t.Errorf("%q in %d of 40 runs", tt.want, right)
			}
		})
	}
}
