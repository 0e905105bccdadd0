// Package plots draws charts of scores, signals and distributions for the pages of the console and for reports.
package plots

import (
	"math"
	"slices"
	"sync"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Limits on a group's past that is kept: points of the scores, and version changes.
const (
	maxPoints  = 240
	maxChanges = 20
)

// Scores keeps the past scores of all streams in memory only, so a restart loses them. It is safe for concurrent use.
type Scores struct {
	mu       sync.Mutex
	policies map[string]map[ingest.Group]*course
}

// NewScores returns an empty Scores.
func NewScores() *Scores { return &Scores{policies: map[string]map[ingest.Group]*course{}} }

// Observe records the current state of the groups of a policy, and drops groups that no longer exist.
func (s *Scores) Observe(p *finding.Summary) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, now := s.policies[p.Policy], make(map[ingest.Group]*course, len(p.Groups))
	for i := range p.Groups {
		g := &p.Groups[i]
		c := before[g.Group]
		if c == nil {
			c = newCourse()
		}
		c.observe(g)
		now[g.Group] = c
	}
	s.policies[p.Policy] = now
}

// Forget drops the scores of a policy that another instance judges.
func (s *Scores) Forget(policy string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.policies, policy)
}

// Of returns a copy of the course of a group.
func (s *Scores) Of(g ingest.Group) Course {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.policies[g.Policy][g]
	if c == nil {
		return Course{}
	}
	out := Course{At: slices.Clone(c.at), Scores: make(map[string][]float32, len(c.scores)), Changes: slices.Clone(c.changes)}
	for signal, scores := range c.scores {
		out.Scores[signal] = slices.Clone(scores)
	}
	return out
}

// Course contains the past scores of a group.
type Course struct {
	At      []Moment
	Scores  map[string][]float32 // by signal, one for each moment; NaN if the stream had no score
	Changes []Change
}

// Moment is a point in the course of a group.
type Moment struct {
	Unit int64 // number of units that the group had seen
	TS   int64 // of the last unit, in Unix nanoseconds, 0 without a clock
}

// Change is a change of the versions of a group.
type Change struct {
	Moment
	From, To ingest.Versions
}

// course keeps a point for every step samples. When it is full, it merges the points in pairs and doubles step.
type course struct {
	units    int64 // at the last sample; -1 before the first
	step     int   // samples per point
	filled   int   // samples in the last point; 0 if it is complete
	at       []Moment
	scores   map[string][]float32
	versions ingest.Versions
	changes  []Change
}

func newCourse() *course { return &course{step: 1, units: -1, scores: map[string][]float32{}} }

func (c *course) observe(g *finding.GroupSummary) {
	if g.Units == c.units {
		return
	}
	here := Moment{g.Units, g.LastUnitTS}
	if c.units >= 0 && g.Versions != c.versions {
		c.changes = append(c.changes, Change{here, c.versions, g.Versions})
		c.changes = c.changes[max(0, len(c.changes)-maxChanges):]
	}
	c.units, c.versions = g.Units, g.Versions
	if c.filled == 0 {
		c.begin()
	}
	last := len(c.at) - 1
	c.at[last] = here
	for i := range g.Streams {
		if score, any := words.Score(&g.Streams[i]); any {
			scores := c.of(g.Streams[i].Signal)
			scores[last] = larger(scores[last], float32(score))
		}
	}
	c.filled = (c.filled + 1) % c.step
}

// begin makes room for another point.
func (c *course) begin() {
	if len(c.at) == maxPoints {
		c.halve()
	}
	c.at = append(c.at, Moment{})
	for signal := range c.scores {
		c.scores[signal] = append(c.scores[signal], float32(math.NaN()))
	}
}

// of returns the scores of a signal, one for each point.
func (c *course) of(signal string) []float32 {
	scores, known := c.scores[signal]
	if !known {
		scores = slices.Repeat([]float32{float32(math.NaN())}, len(c.at))
		c.scores[signal] = scores
	}
	return scores
}

// halve merges points in pairs and keeps the larger score, so that no excursion is lost.
func (c *course) halve() {
	for i := range len(c.at) / 2 {
		c.at[i] = c.at[2*i+1]
		for _, scores := range c.scores {
			scores[i] = larger(scores[2*i], scores[2*i+1])
		}
	}
	c.at = c.at[:len(c.at)/2]
	for signal := range c.scores {
		c.scores[signal] = c.scores[signal][:len(c.at)]
	}
	c.step *= 2
}

// larger returns the larger of the arguments that are numbers.
func larger(a, b float32) float32 {
	if b > a || math.IsNaN(float64(a)) {
		return b
	}
	return a
}

// Courses records the scores of the groups of a replay.
type Courses map[ingest.Group]*course

// Observe records the state of a group after a unit.
func (c Courses) Observe(g finding.GroupSummary) {
	if c[g.Group] == nil {
		c[g.Group] = newCourse()
	}
	c[g.Group].observe(&g)
}

// Of returns the course of a group.
func (c Courses) Of(g ingest.Group) Course {
	if c[g] == nil {
		return Course{}
	}
	return Course{At: c[g].at, Scores: c[g].scores, Changes: c[g].changes}
}
