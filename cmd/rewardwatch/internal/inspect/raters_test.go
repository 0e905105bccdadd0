package inspect

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/feedback"
)

// ratedAnswers returns the proposal for answers, some of which are later rated by people.
func ratedAnswers(seed uint64, raters int, levels float64, given watch.Raters, label func(rng *rand.Rand, who int, rating float64) []ingest.Label) string {
	rng := rand.New(rand.NewPCG(seed, 11))
	j := newJoining(feedback.Config{Key: "episode_id", Window: model.Duration(time.Hour)})
	level := make([]float64, raters)
	for i := range level {
		level[i] = levels * rng.NormFloat64()
	}
	for i := range 1000 {
		key := fmt.Sprint("a", i)
		j.see(&ingest.Event{
			EpisodeID: key, TS: int64(i + 1), Action: ingest.Action{Kind: ingest.ActionCategory, Category: "brief"},
			Labels: []ingest.Label{{Name: "plan", Value: fmt.Sprint(rng.IntN(3))}},
		})
		who := rng.IntN(raters)
		rating := math.Round(3 + level[who] + .8*rng.NormFloat64())
		j.see(&ingest.Event{
			EpisodeID: key, TS: int64(i + 2), Outcomes: []ingest.Value{{Name: "rating", X: rating}},
			Labels: append(label(rng, who, rating), ingest.Label{Name: "plan", Value: "pro"}),
		})
	}
	return ratersExample(PolicyInspection{raters: given, ratedBy: j.ratings.propose(nil)})
}

func TestRatersAreProposed(t *testing.T) {
	const runs = 40
	who := func(_ *rand.Rand, who int, _ float64) []ingest.Label {
		return []ingest.Label{{Name: "annotator", Value: fmt.Sprint("r", who)}}
	}
	shuffled := func(rng *rand.Rand, _ int, _ float64) []ingest.Label {
		return []ingest.Label{{Name: "annotator", Value: fmt.Sprint("r", rng.IntN(6))}}
	}
	stars := func(_ *rand.Rand, _ int, rating float64) []ingest.Label {
		return []ingest.Label{{Name: "stars", Value: fmt.Sprint(rating)}}
	}
	one := func(*rand.Rand, int, float64) []ingest.Label { return []ingest.Label{{Name: "annotator", Value: "r"}} }
	for _, tt := range []struct {
		name        string
		raters      int
		levels      float64
		given       watch.Raters
		label       func(*rand.Rand, int, float64) []ingest.Label
		least, most int // of the runs with a proposal
	}{
		{"six raters", 6, .7, nil, who, 38, runs},
		{"equal raters", 6, 0, nil, who, 0, 0},
		{"no raters", 6, .7, nil, shuffled, 0, 0},
		{"what the rating is", 6, .7, nil, stars, 0, 0},
		{"one rater", 6, .7, nil, one, 0, 0},
		{"each user rates once", 1000, .7, nil, who, 0, 0},
		{"given", 6, .7, watch.Raters{"rating": "labels.annotator"}, who, 0, 0},
	} {
		n := 0
		for seed := range uint64(runs) {
			got := ratedAnswers(seed, tt.raters, tt.levels, tt.given, tt.label)
			if got == "" {
				continue
			}
			n++
			if want := `#raters: {"rating": "labels.annotator"} # if this label names the rater: up to 6 raters, whose levels differ by up to `; !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s", tt.name, got)
			}
		}
		t.Logf("%s: proposed in %d of %d runs", tt.name, n, runs)
		if n < tt.least || n > tt.most {
			t.Errorf("%s: proposed in %d of %d runs, want %d to %d", tt.name, n, runs, tt.least, tt.most)
		}
	}
	var j ratings
	for i := range 200 {
		j.see(&ingest.Event{
			Outcomes: []ingest.Value{{Name: "rating", X: float64(i%2) + .3*float64(i%7)}},
			Labels:   []ingest.Label{{Name: "annotator", Value: fmt.Sprint("r", i%2)}},
		})
	}
	if got := j.propose(nil); len(got) != 1 {
		t.Errorf("proposed %+v, want the annotator", got)
	}
	if got := j.propose([]string{"labels.annotator"}); len(got) != 0 {
		t.Errorf("proposed %+v, by which episodes are grouped", got)
	}
	if got := ratersSetting(watch.Raters{"rating": "labels.annotator"}); got.Value != `{"rating": "labels.annotator"}` || got.Why != asInspected {
		t.Errorf("given raters are proposed as %+v", got)
	}
}
