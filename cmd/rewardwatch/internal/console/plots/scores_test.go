package plots

import (
	"math"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// scored returns a group after a number of units, with a stream for each score.
func scored(units int64, scores map[string]float64) *finding.Summary {
	g := finding.GroupSummary{Group: ingest.NewGroup("p"), Units: units, LastUnitTS: units * 1e9}
	for signal, score := range scores {
		g.Streams = append(g.Streams, finding.StreamSummary{Signal: signal, Detectors: []finding.DetectorSummary{{Score: score, Threshold: 12}}})
	}
	return &finding.Summary{Policy: "p", Groups: []finding.GroupSummary{g}}
}

func TestScoresAreBoundedAndKeepTheLargest(t *testing.T) {
	const samples = 10_007
	s := NewScores()
	for n := range int64(samples) {
		x := .1
		if n == 5000 {
			x = 3
		}
		s.Observe(scored(n, map[string]float64{"return": x}))
		s.Observe(scored(n, map[string]float64{"return": 9})) // nothing has been judged since, so there is no sample
		c := s.Of(ingest.NewGroup("p"))
		if len(c.At) > maxPoints || len(c.Scores["return"]) != len(c.At) || c.At[len(c.At)-1] != (Moment{n, n * 1e9}) {
			t.Fatalf("after %d samples: %d points, %d scores, the last at %v", n+1, len(c.At), len(c.Scores["return"]), c.At[len(c.At)-1])
		}
	}
	c := s.Of(ingest.NewGroup("p"))
	high := slices.Index(c.Scores["return"], slices.Max(c.Scores["return"]))
	if len(c.At) < maxPoints/2 || c.Scores["return"][high] != 3 || c.At[high].Unit < 5000 || c.At[high].Unit > 5000+samples/(maxPoints/2) {
		t.Errorf("%d points, the highest is %v at %v", len(c.At), c.Scores["return"][high], c.At[high])
	}
	if !slices.IsSortedFunc(c.At, func(a, b Moment) int { return int(a.Unit - b.Unit) }) {
		t.Errorf("not in order: %v", c.At)
	}
}

func TestScoresOfStreamsThatComeLater(t *testing.T) {
	s := NewScores()
	s.Observe(scored(1, nil))
	s.Observe(scored(2, map[string]float64{"return": .5}))
	s.Observe(scored(3, nil))
	got := s.Of(ingest.NewGroup("p")).Scores["return"]
	if len(got) != 3 || !math.IsNaN(float64(got[0])) || got[1] != .5 || !math.IsNaN(float64(got[2])) {
		t.Errorf("%v", got)
	}
}

func TestScoresNoteVersionsAndForget(t *testing.T) {
	s := NewScores()
	of := func(units int64, version string) *finding.Summary {
		p := scored(units, nil)
		p.Groups[0].Versions.Policy = version
		return p
	}
	for n := range int64(2 * maxChanges) {
		s.Observe(of(3*n, "a"))
		s.Observe(of(3*n+1, "b"))
		s.Observe(of(3*n+2, "b"))
	}
	changes := s.Of(ingest.NewGroup("p")).Changes
	last := changes[len(changes)-1]
	if len(changes) != maxChanges || last.From.Policy != "a" || last.To.Policy != "b" || last.Unit != 3*(2*maxChanges-1)+1 {
		t.Errorf("%d changes, the last is %+v", len(changes), last)
	}
	s.Observe(&finding.Summary{Policy: "p"}) // the group is gone
	if c := s.Of(ingest.NewGroup("p")); len(c.At) != 0 {
		t.Errorf("of a group that is gone it keeps %d points", len(c.At))
	}
	s.Observe(of(1, "a"))
	s.Forget("p")
	if c := s.Of(ingest.NewGroup("p")); len(c.At) != 0 {
		t.Errorf("of a policy that is gone it keeps %d points", len(c.At))
	}
}
