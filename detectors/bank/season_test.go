package bank

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

const day = int64(24 * time.Hour)

// meanSD is the standard deviation of the mean reward of a simulation's episodes, which have 20 steps on average.
const meanSD = .2265

// weekly returns a simulation that makes m units over a number of weeks, whose rewards follow a season, in standard
// deviations of an episode's mean reward.
func weekly(m int, weeks float64, season func(ts int64) float64, seed, stream uint64) *simulation {
	s := newSimulation(laws()[0], seed, stream)
	s.every = time.Duration(weeks * 7 * float64(day) / float64(m))
	s.now = 1_800_000_000e9
	s.season = func(ts int64) float64 { return meanSD * season(ts) }
	return s
}

// weekend is a season that is higher by 1 on weekends.
func weekend(ts int64) float64 {
	if (ts/day+3)%7 >= 5 {
		return 1
	}
	return 0
}

func rewardMean(p *Policy) *stream.Quantity {
	i, _ := p.groups[0].Find("reward")
	return p.groups[0].Streams[i].Find("mean")
}

// If weekends differ by a standard deviation, false alarms stay within the budget, and a shift of the same size is
// found.
func TestSimSeasonIsRankedWithinStrata(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const m, weeks, n, baselines = 500, 6, 2000, 5
	s := weekly(m, weeks, weekend, 230, 0)
	pool := weekly(m, weeks, weekend, 230, 1).sample(20_000)
	changed := weekly(m, weeks, weekend, 230, 2)
	changed.shift = meanSD
	after := changed.sample(5_000)
	var ratios, delays []float64
	for range baselines {
		p := s.frozen(m, n)
		q := rewardMean(p)
		if q.Season == nil || len(q.Season.Like) != 2 || q.Rank().Factor > 2 || shapeOf(q) != nil || q.Certificate != nil {
			t.Fatalf("season %+v, factor %.2f; want two strata, little dependence, no sliding test", q.Season, q.Rank().Factor)
		}
		j := battery.NewJudge(&p.groups[0].Battery, pool.Columns)
		ratios = append(ratios, runLength(j, pool, s.rng, n)/n)
		took, _ := delayOf(j, pool, after, s.rng, 10, 5000)
		delays = append(delays, took)
	}
	slices.Sort(ratios)
	if keeping(ratios) < .8 { // promised for nine of ten
		t.Errorf("ARL0/N %.2f: too many false alarms", ratios)
	}
	if got, se := mean(delays); got > 45+3*se { // without a season, it is 31 at ten times the budget
		t.Errorf("a shift by a standard deviation took %.1f ± %.1f units", got, se)
	}
}

// A restored bank raises the same alarm, including that of a weekend, and reports values with the season removed.
func TestSimSeasonSurvivesARestart(t *testing.T) {
	s := weekly(500, 6, weekend, 231, 0)
	p := s.frozen(500, 2000)
	for range 40 {
		p.Observe(s.unit(), time.Time{})
	}
	again := restored(t, p)
	s.shift = -2 * meanSD
	var found finding.Finding
	for range 100 {
		u := s.unit()
		want, got := p.Observe(u, time.Time{}), again.Observe(u, time.Time{})
		if !sameFindings(want, got) {
			t.Fatalf("unit %d: findings %+v of the restored bank, want %+v", u.Pos.Offset, got, want)
		}
		for _, f := range want {
			if f.Signal == "reward" && f.To == finding.Drift {
				found = f
			}
		}
	}
	if found.Signal == "" {
		t.Fatal("no alarm of the reward")
	}
	e := found.Effect
	if se := meanSD / math.Sqrt(float64(e.CurrentUnits)); math.Abs(e.MeanShift+2*meanSD) > 4*se {
		t.Errorf("mean shift %.3f over %d units, want %.3f", e.MeanShift, e.CurrentUnits, -2*meanSD)
	}
	if off := found.Onset.Ordinal - 540; off < -10 || off > 10 {
		t.Errorf("onset at unit %d, want about 540", found.Onset.Ordinal)
	}
}

// A unit without a time is ranked among all units.
func TestSimSeasonOfAUnitWithoutATime(t *testing.T) {
	s := weekly(500, 6, weekend, 232, 0)
	p := s.frozen(500, 2000)
	q := rewardMean(p)
	if notes := stateOf(t, p, "reward").Notes; !slices.Contains(notes, "mean: ranked within 2 strata of the week") {
		t.Errorf("notes %q", notes)
	}
	median := q.Ranks.Sample()[250]
	if u := q.AsJudged(median, 0); math.Abs(u-.5) > .01 {
		t.Errorf("the median has rank %.3f among all", u)
	}
	const saturday = 2 * day // 3 January 1970
	if u := q.AsJudged(median, saturday+1); u > .4 {
		t.Errorf("the median has rank %.3f on a Saturday, which lies higher", u)
	}
}

// Days that each have their own random level, regardless of the weekday, are not a season: strata that seem to explain
// part of it by chance leave the factor above 4.
func TestSimDifferentDaysAreNoSeason(t *testing.T) {
	for seed := range uint64(5) {
		levels := newSimulation(laws()[0], 233, seed).rng
		s := weekly(500, 3, nil, 234, seed)
		today, level := int64(0), 0.0
		s.season = func(ts int64) float64 {
			if ts/day != today {
				today, level = ts/day, meanSD*levels.NormFloat64()
			}
			return level
		}
		if q := rewardMean(s.frozen(500, 2000)); !q.Rank().TooDependent() {
			t.Errorf("factor %.2f, want one above 4", q.Rank().Factor)
		}
	}
}

func sameFindings(a, b []finding.Finding) bool {
	return slices.EqualFunc(a, b, func(x, y finding.Finding) bool {
		return x.Signal == y.Signal && x.To == y.To && x.At == y.At && x.Score == y.Score && x.Onset == y.Onset &&
			x.Effect == y.Effect && slices.Equal(x.Shifts, y.Shifts)
	})
}

// A numeric outcome has a season as other signals do.
func TestSimOutcomesHaveASeason(t *testing.T) {
	s, p := weekly(500, 6, weekend, 235, 0), newBank(episodes(2000))
	feed := func(n int) (found []finding.Finding) {
		for range n {
			u := s.unit()
			sales := ingest.NamedMoments{Signal: "outcome.sales"}
			sales.Add(2*weekend(u.EndTS) + s.rng.NormFloat64())
			u.Numeric = []ingest.NamedMoments{sales}
			found = append(found, p.Observe(u, time.Time{})...)
		}
		return found
	}
	feed(500)
	q := p.groups[0].stream("outcome.sales").Find("mean")
	if q.Season == nil || len(q.Season.Like) != 2 {
		t.Fatalf("season %+v, want two strata", q.Season)
	}
	if alarms := alarmsIn(feed(300)); len(alarms) > 0 {
		t.Errorf("alarms of %q of units as before", alarms)
	}
	sum := 0.0
	values, _ := q.JudgedSince(0)
	for _, u := range values {
		sum += math.Abs(u - .5)
	}
	if got := sum / float64(len(values)); math.Abs(got-.25) > .03 {
		t.Errorf("ranks lie %.3f from the middle on average, want .25 of even ones", got)
	}
}
