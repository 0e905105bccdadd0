package guard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/versions"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Signal is the name of the signal in findings of guards.
const Signal = "guard"

// Label is the last label of the groups in findings of guards. Its value is the name of the guard.
const Label = "guard"

// Set holds the guards of a policy. It is not safe for concurrent use, except for the summaries that it returns.
type Set struct {
	policy   string
	cfg      watch.Guards
	guards   []*guard
	units    int64  // seen
	seq      uint64 // grows with each change of a state
	last     finding.UnitRef
	versions versions.Record // of the units
	changed  bool            // whether anything changed since the set was saved
	urgent   bool            // whether a state of a guard that agents may have read is not saved
	tried    bool            // whether saving that state was tried

	events  []Event  // trips and releases, the newest last; replaced as a whole, never modified
	removed []string // guards that had tripped when they were removed from the configuration
}

// New returns the guards of a policy, which have not seen any units.
func New(policy string, cfg watch.Guards) *Set {
	s := &Set{policy: policy, cfg: cfg}
	for _, l := range cfg.Limits {
		s.guards = append(s.guards, newGuard(l))
	}
	return s
}

// Idle reports whether there are no guards, so that Observe does nothing.
func (s *Set) Idle() bool { return len(s.guards) == 0 && len(s.removed) == 0 }

// Observe adds a unit, which may be a step of an open episode, and returns the findings of guards that tripped or
// were released. Units of shadow policies, and of decisions whose feedback is not complete yet, are ignored.
func (s *Set) Observe(u *ingest.Unit) []finding.Finding {
	if s.Idle() || u.Shadow || u.Group.HasHorizon() {
		return nil
	}
	at := finding.UnitRef{Ordinal: s.units, Agent: u.Agent, Episode: u.Episode, Pos: u.Pos, First: u.First, TS: u.EndTS}
	if u.End != ingest.EndOpen {
		s.units++
	}
	s.last, s.changed = at, true
	s.see(u.Versions, at)
	found := s.retired(at)
	for _, g := range s.guards {
		before := g.state
		tripped, released := g.observe(u, at)
		if g.state != before {
			s.seq++
			s.urgent, s.tried = true, false
		}
		switch {
		case tripped:
			s.note(Event{Guard: g.limit.Name, From: before, To: g.state, At: at, Why: g.trip.Why})
			found = append(found, s.tripped(g))
		case released:
			s.note(Event{Guard: g.limit.Name, From: before, To: g.state, At: at, Why: releasedWords(g.limit.ReleaseAfter)})
			found = append(found, s.ended(g.limit.Name, at)...)
		}
	}
	return found
}

// retired returns the findings that close the incidents of removed guards.
func (s *Set) retired(at finding.UnitRef) (found []finding.Finding) {
	for _, name := range s.removed {
		s.seq++
		s.note(Event{Guard: name, From: s.stateBefore(name), At: at, Why: removedWords})
		found = append(found, s.ended(name, at)...)
	}
	s.removed = nil
	return found
}

// stateBefore returns the state to which a guard last tripped, or Hold if it is unknown.
func (s *Set) stateBefore(name string) State {
	for _, e := range slices.Backward(s.events) {
		if e.Guard == name && e.To != OK {
			return e.To
		}
	}
	return Hold
}

// Release releases a tripped guard. It returns nil if no guard has the name, or if the guard has not tripped.
func (s *Set) Release(name string, by Decision) []finding.Finding {
	for _, g := range s.guards {
		if g.limit.Name != name || !g.tripped {
			continue
		}
		before := g.state
		g.release(s.last)
		s.seq++
		s.note(Event{Guard: name, From: before, To: g.state, At: s.last, By: by.By, Why: by.Why, Decided: by.At})
		s.changed, s.urgent, s.tried = true, true, false
		return s.ended(name, s.last)
	}
	if i := slices.Index(s.removed, name); i >= 0 {
		s.removed = slices.Delete(s.removed, i, i+1)
		s.seq++
		s.note(Event{Guard: name, From: s.stateBefore(name), At: s.last, By: by.By, Why: by.Why, Decided: by.At})
		s.changed = true
		return s.ended(name, s.last)
	}
	return nil
}

// Tripped reports whether a guard has tripped and was not released.
func (s *Set) Tripped() bool {
	return len(s.removed) > 0 || slices.ContainsFunc(s.guards, func(g *guard) bool { return g.tripped })
}

// Of returns the name of the guard that a group of findings stands for, or "" for other groups.
func Of(g ingest.Group) string {
	if labels := g.Labels(); len(labels) == 1 && labels[0].Name == Label {
		return labels[0].Value
	}
	return ""
}

func (s *Set) group(name string) ingest.Group {
	return ingest.NewGroup(s.policy, ingest.Label{Name: Label, Value: name})
}

func (s *Set) tripped(g *guard) finding.Finding {
	t := &g.trip
	before, after, changed, paces := s.around(t)
	return finding.Finding{
		Kind: finding.StreamChanged, Group: s.group(g.limit.Name), Signal: Signal, From: finding.OK, To: finding.Drift, At: t.At,
		Onset: t.Onset, OnsetFrom: t.OnsetFrom, OnsetTo: t.At, Detectors: []string{finding.DetectorGuard}, Score: 1,
		Before: before, After: after, Changed: changed, Paces: paces,
		Guard: &finding.Guard{
			Name: g.limit.Name, State: g.state.String(), Limit: limitWords(&g.limit), Why: t.Why, Cause: t.Cause,
		},
	}
}

// ended returns the findings that resolve the alarm of a guard and close its incident.
func (s *Set) ended(name string, at finding.UnitRef) []finding.Finding {
	return []finding.Finding{
		{Kind: finding.StreamChanged, Group: s.group(name), Signal: Signal, From: finding.Drift, To: finding.OK, At: at},
		{Kind: finding.GroupQuiet, Group: s.group(name), At: at},
	}
}

// Summary is an immutable state of the guards of a policy.
type Summary struct {
	Policy    string
	Seq       uint64
	State     State // worst state of the guards
	Guards    []Verdict
	Events    []Event // the newest trips and releases, oldest first
	MaxAge    time.Duration
	OnSilence string
}

// Verdict is the state of one guard.
type Verdict struct {
	Name     string
	State    State
	Tripped  bool
	Since    finding.UnitRef // zero until the state changes
	Why      string          // why it tripped; "" if it has not
	Limit    string
	Values   float64 // counted since it began, tripped or was released
	Mean     float64 // of the values: the share, or for entropy the mean surprise in nats
	Evidence float64 // at 1/alpha the guard trips
	Alpha    float64
	Invalid  int64 // values left out
}

// Summary returns the current state.
func (s *Set) Summary() *Summary {
	out := &Summary{Policy: s.policy, Seq: s.seq, Events: s.events, MaxAge: time.Duration(s.cfg.MaxAge), OnSilence: s.cfg.OnSilence}
	for _, g := range s.guards {
		of := Verdict{
			Name: g.limit.Name, State: g.state, Tripped: g.tripped, Since: g.since, Limit: limitWords(&g.limit),
			Values: g.n, Evidence: g.evidence(), Alpha: g.limit.Alpha, Invalid: g.invalid,
		}
		if g.n > 0 {
			of.Mean = g.c / g.n
		}
		if g.tripped {
			of.Why = g.trip.Why
		}
		out.State = max(out.State, g.state)
		out.Guards = append(out.Guards, of)
	}
	return out
}

// limitWords describes what a limit allows.
func limitWords(l *watch.GuardLimit) string {
	switch {
	case l.Entropy > 0:
		return fmt.Sprintf("action entropy at least %.3g nats", l.Entropy)
	case l.Share == 0:
		return "no " + one(l)
	}
	return fmt.Sprintf("%s at most %s of %s", many(l), percent(l.Share), unitOf(l))
}

// tripWords describes what a guard had seen when it tripped.
func tripWords(l *watch.GuardLimit, t *Trip) string {
	switch {
	case l.Entropy > 0:
		return fmt.Sprintf("action entropy at most %.3g nats over %.0f steps (minimum %.3g)", t.C/t.N, t.N, l.Entropy)
	case l.Share == 0:
		return fmt.Sprintf("the first %s after %.0f %s", one(l), t.N, unitOf(l))
	}
	return fmt.Sprintf("%s: %s of %.0f %s (limit %s)", many(l), percent(t.C/t.N), t.N, unitOf(l), percent(l.Share))
}

func percent(x float64) string { return fmt.Sprintf("%.3g%%", 100*x) }

func unitOf(l *watch.GuardLimit) string {
	if l.OfEpisodes() {
		return "episodes"
	}
	return "steps"
}

// one names a single thing that a limit counts.
func one(l *watch.GuardLimit) string {
	switch {
	case len(l.Causes) > 0:
		return "incident with cause " + listed(l.Causes)
	case len(l.Actions) > 0:
		return "step with action " + listed(l.Actions)
	case l.Range.Given():
		return "step with " + l.Range.Of() + " " + l.Range.Outside()
	case l.ReturnBelow != "":
		return fmt.Sprintf("episode with a return below %s", l.ReturnBelow)
	case l.LargestShare:
		return "step with the most frequent action"
	}
	return "step with outcome " + l.Outcome
}

// many names the things that a limit counts.
func many(l *watch.GuardLimit) string {
	kind, rest, _ := strings.Cut(one(l), " ")
	return kind + "s " + rest
}

// listed joins names, and counts those beyond a few.
func listed(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, " or ")
	}
	return fmt.Sprintf("%s or %d others", strings.Join(names[:most], ", "), len(names)-most)
}
