package alerts

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

var prod = ingest.NewGroup("checkout", ingest.Label{Name: "env", Value: "prod"})

// unit returns the nth unit of a group. Its offsets depend on shift, the position of the telemetry in the topic.
func unit(n, shift int64) finding.UnitRef {
	return finding.UnitRef{
		Ordinal: n, Agent: "a-1", Episode: fmt.Sprintf("e-%d", n), TS: 1_800_000_000e9 + n*1e9,
		Pos: ingest.Position{Partition: ingest.Partition(shift), Offset: 10*n + 9 + shift}, First: ingest.Position{Offset: 10*n + shift},
	}
}

// drift returns a finding for a stream that starts to drift at a unit, with the onset 8 units earlier.
func drift(signal string, n int64) finding.Finding {
	return finding.Finding{
		Kind: finding.StreamChanged, Group: prod, Signal: signal, From: finding.OK, To: finding.Drift, At: unit(n, 0),
		Detectors: []string{finding.DetectorLocation}, Score: 1.02, Onset: unit(n-8, 0),
		Effect: finding.Effect{
			Quantity: "return", BaselineMean: 21.5, CurrentMean: 12.25, MeanShift: -9.25, BaselineSD: 5, CurrentSD: 5,
			StandardShift: -1.85, CurrentUnits: 9,
		},
		Baseline: finding.BaselineRef{ID: "b1", Units: 500},
		Before:   ingest.Versions{Policy: "p1", Env: "41", Reward: "r7"},
		After:    ingest.Versions{Policy: "p1", Env: "41", Reward: "r7"},
		Offsets:  []ingest.Range{{Partition: 0, First: 10 * (n - 8), Last: 10*n + 9}},
	}
}

// goes returns a finding for a stream that changes its state at a unit.
func goes(signal string, from, to finding.State, n int64) finding.Finding {
	f := drift(signal, n)
	f.From, f.To = from, to
	return f
}

// faulty returns a finding for a stream with a new telemetry fault.
func faulty(signal, rule string, n int64) finding.Finding {
	return finding.Finding{
		Kind: finding.StreamChanged, Group: prod, Signal: signal, From: finding.OK, To: finding.TelemetryFault, Reason: rule, At: unit(n, 0),
	}
}

func quiet(n int64) finding.Finding {
	return finding.Finding{Kind: finding.GroupQuiet, Group: prod, At: unit(n, 0)}
}

// applied applies findings to a tracker and returns all changes.
func applied(b *Tracker, findings ...finding.Finding) []Change {
	var out []Change
	for _, f := range findings {
		out = append(out, b.Apply(f)...)
	}
	return out
}

// told describes changes in a few words.
func told(changes []Change) []string {
	var out []string
	for _, c := range changes {
		switch {
		case c.Fault != nil:
			out = append(out, fmt.Sprintf("fault %s ended=%t", c.Fault.streams(), c.Fault.Ended))
		case c.Alarm == nil:
			out = append(out, fmt.Sprintf("incident closed=%t cause=%s", c.Incident.Closed, c.Incident.Cause))
		default:
			out = append(out, fmt.Sprintf("%s fired=%t resolved=%t cause=%s firing=%d/%d",
				c.Alarm.Signal, c.Fired, c.Alarm.Resolved, c.Alarm.Cause, c.Incident.Firing(), len(c.Incident.Alarms)))
		}
	}
	return out
}

func TestTrackerFollowsStates(t *testing.T) {
	updated := drift("return", 130)
	updated.Kind, updated.Score = finding.StreamUpdated, 1.5
	for name, test := range map[string]struct {
		findings []finding.Finding
		want     []string
	}{
		"an alarm opens an incident, resolves and the incident closes": {
			findings: []finding.Finding{drift("return", 100), updated, goes("return", finding.Drift, finding.OK, 150), quiet(171)},
			want: []string{
				"return fired=true resolved=false cause=unknown firing=1/1",
				"return fired=false resolved=false cause=unknown firing=1/1",
				"return fired=false resolved=true cause=unknown firing=0/1",
				"incident closed=true cause=unknown",
			},
		},
		"later alarms join, one of the same signal too": {
			findings: []finding.Finding{
				drift("return", 100), drift("reward", 105), goes("return", finding.Drift, finding.OK, 150), drift("return", 160),
			},
			want: []string{
				"return fired=true resolved=false cause=unknown firing=1/1",
				"reward fired=true resolved=false cause=unknown firing=2/2",
				"return fired=false resolved=true cause=unknown firing=1/2",
				"return fired=true resolved=false cause=unknown firing=2/3",
			},
		},
		"a telemetry fault does not resolve, and the stream comes back into the same alarm": {
			findings: []finding.Finding{
				drift("return", 100), goes("return", finding.Drift, finding.TelemetryFault, 110),
				goes("return", finding.TelemetryFault, finding.Drift, 140), goes("return", finding.Drift, finding.OK, 170),
			},
			want: []string{
				"return fired=true resolved=false cause=unknown firing=1/1",
				"fault return () ended=false",
				"return fired=false resolved=false cause=telemetry firing=1/1",
				"fault return () ended=true",
				"return fired=false resolved=false cause=telemetry firing=1/1",
				"return fired=false resolved=true cause=telemetry firing=0/1",
			},
		},
		"a stream that leaves its fault without drift resolves": {
			findings: []finding.Finding{
				drift("return", 100), faulty("return", fault.Constant, 110), goes("return", finding.TelemetryFault, finding.OK, 140),
			},
			want: []string{
				"return fired=true resolved=false cause=unknown firing=1/1",
				"fault return (constant) ended=false",
				"return fired=false resolved=false cause=telemetry firing=1/1",
				"fault return (constant) ended=true",
				"return fired=false resolved=true cause=telemetry firing=0/1",
			},
		},
		"a stream that starts again with a new baseline resolves": {
			findings: []finding.Finding{drift("return", 100), goes("return", finding.Drift, finding.WarmingUp, 110)},
			want: []string{
				"return fired=true resolved=false cause=unknown firing=1/1",
				"return fired=false resolved=true cause=unknown firing=0/1",
			},
		},
		"the fault of a group grows, shrinks and ends": {
			findings: []finding.Finding{
				faulty("reward", fault.NonFinite, 10), faulty("return", fault.Constant, 12),
				goes("reward", finding.TelemetryFault, finding.OK, 40), goes("return", finding.TelemetryFault, finding.OK, 50),
			},
			want: []string{
				"fault reward (non_finite) ended=false",
				"fault return (constant), reward (non_finite) ended=false",
				"fault return (constant) ended=false",
				"fault return (constant) ended=true",
			},
		},
		"a fault that goes over to another rule is told, and blamed, by that": {
			findings: []finding.Finding{
				drift("return", 100), faulty("return", fault.Constant, 110), faulty("return", fault.Missing, 140),
				goes("return", finding.TelemetryFault, finding.OK, 170),
			},
			want: []string{
				"return fired=true resolved=false cause=unknown firing=1/1",
				"fault return (constant) ended=false",
				"return fired=false resolved=false cause=telemetry firing=1/1",
				"fault return (missing) ended=false",
				"return fired=false resolved=false cause=telemetry firing=1/1",
				"fault return (missing) ended=true",
				"return fired=false resolved=true cause=telemetry firing=0/1",
			},
		},
		"an incident that closes resolves what still fires": {
			findings: []finding.Finding{drift("return", 100), quiet(200)},
			want: []string{
				"return fired=true resolved=false cause=unknown firing=1/1",
				"return fired=false resolved=true cause=unknown firing=0/1",
				"incident closed=true cause=unknown",
			},
		},
		"nothing comes of findings without an alarm": {
			findings: []finding.Finding{updated, goes("return", finding.WarmingUp, finding.OK, 10), quiet(20)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := told(applied(NewTracker(), test.findings...)); !slices.Equal(got, test.want) {
				t.Errorf("got:\n%q\nwant:\n%q", got, test.want)
			}
		})
	}
}

func TestRenewedAlarmKeepsItsHighestScore(t *testing.T) {
	b := NewTracker()
	first := applied(b, drift("return", 100))[0].Alarm
	for _, score := range []float64{1.7, 1.3} {
		f := drift("return", 150)
		f.Kind, f.Score, f.Detectors = finding.StreamUpdated, score, []string{finding.DetectorWilcoxon, finding.DetectorLocation}
		f.Effect.CurrentUnits, f.Onset = 51, unit(120, 0)
		b.Apply(f)
	}
	a := b.Alarms()[0]
	if a.Score != 1.7 || a.Effect.CurrentUnits != 51 || len(a.Detectors) != 2 || a.Offsets[0].Last != 1509 {
		t.Errorf("not renewed: %+v", a)
	}
	if a.Onset != first.Onset || a.ID != first.ID || a.At != first.At {
		t.Errorf("the alarm became another one: %+v", a)
	}
	if first.Score != 1.02 || len(first.Detectors) != 1 {
		t.Errorf("what had been handed out changed: %+v", first)
	}
}

func TestSeverityIsFixedAtOpening(t *testing.T) {
	for _, test := range []struct {
		signal      string
		provisional bool
		want        Severity
	}{
		{"return", false, Critical},
		{"reward", false, Critical},
		{"episode_length", false, Critical},
		{"action", false, Critical},
		{"action.3", false, Critical},
		{"outcome.conversion", false, Critical},
		{"observation.basket", false, Warning},
		{"reward_component.click", false, Warning},
		{"actions", false, Warning},
		{"return", true, Info},
		{"observation.basket", true, Info},
	} {
		f := drift(test.signal, 100)
		f.Provisional = test.provisional
		b := NewTracker()
		applied(b, f, drift("reward", 101))
		i := b.Incidents()[0]
		if i.Severity != test.want || i.Provisional != test.provisional {
			t.Errorf("%s: got %s provisional=%t, want %s", test.signal, i.Severity, i.Provisional, test.want)
		}
	}
}

// better returns a drift of a signal in its better direction.
func better(signal string, n int64) finding.Finding {
	f := drift(signal, n)
	f.Improvement = true
	return f
}

// An incident is an improvement, and info, as long as all of its alarms are. Once one is not, the incident gets the
// severity of that alarm and keeps it.
func TestImprovement(t *testing.T) {
	worse := drift("return", 120)
	worse.Kind = finding.StreamUpdated
	mixed := better("return", 130)
	mixed.Kind = finding.StreamUpdated
	for name, c := range map[string]struct {
		findings []finding.Finding
		want     Severity
	}{
		"alone":                         {[]finding.Finding{better("return", 100)}, Info},
		"with another":                  {[]finding.Finding{better("return", 100), better("reward", 101)}, Info},
		"with actions that drift":       {[]finding.Finding{better("return", 100), drift("action", 101)}, Critical},
		"after actions that drift":      {[]finding.Finding{drift("action", 100), better("return", 101)}, Critical},
		"with an observation":           {[]finding.Finding{better("return", 100), drift("observation.x", 101)}, Warning},
		"no longer":                     {[]finding.Finding{better("return", 100), worse}, Critical},
		"no longer, and again":          {[]finding.Finding{better("return", 100), worse, mixed}, Critical},
		"of an observation, by request": {[]finding.Finding{better("observation.x", 100)}, Info},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewTracker()
			applied(b, c.findings...)
			i := b.Incidents()[0]
			if i.Severity != c.want || i.Improvement != (c.want == Info) {
				t.Errorf("severity %s, improvement %t, want %s", i.Severity, i.Improvement, c.want)
			}
			if told := strings.Contains(i.summary(), "better than the baseline"); told != i.Improvement {
				t.Errorf("summary %q", i.summary())
			}
		})
	}
}

func TestGroupsHaveIncidentsOfTheirOwn(t *testing.T) {
	b := NewTracker()
	other := drift("return", 100)
	other.Group = ingest.NewGroup("checkout", ingest.Label{Name: "env", Value: "test"})
	applied(b, drift("return", 100), other)
	got := b.Incidents()
	if len(got) != 2 || got[0].ID == got[1].ID || got[0].Group != prod || got[1].Group != other.Group {
		t.Errorf("got %+v", got)
	}
	if alarms := b.Alarms(); len(alarms) != 2 || alarms[0].Incident != got[0].ID || alarms[1].Incident != got[1].ID {
		t.Errorf("got %+v", alarms)
	}
}

func TestFaultsAreThoseThatHold(t *testing.T) {
	b := NewTracker()
	applied(b, faulty("reward", fault.NonFinite, 10), faulty("return", fault.Constant, 12),
		goes("reward", finding.TelemetryFault, finding.OK, 40))
	want := []Fault{{Group: prod, Since: unit(10, 0), Streams: map[string]string{"return": fault.Constant}}}
	if got := b.Faults(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	applied(b, goes("return", finding.TelemetryFault, finding.OK, 50))
	if got := b.Faults(); got != nil {
		t.Errorf("got %+v", got)
	}
}

func TestTrackerIsBounded(t *testing.T) {
	b := NewTracker()
	applied(b, drift("reward", 1))
	n := int64(10)
	for range keptAlarms + 50 {
		applied(b, drift("return", n), goes("return", finding.Drift, finding.OK, n+1))
		n += 10
	}
	i := b.Incidents()[0]
	if len(i.Alarms) != keptAlarms || i.Omitted != 51 || i.Alarms[0].Signal != "reward" || i.Firing() != 1 {
		t.Errorf("%d alarms, %d omitted, first %s, %d firing", len(i.Alarms), i.Omitted, i.Alarms[0].Signal, i.Firing())
	}
	applied(b, quiet(n))
	var last string
	for range keptIncidents + 20 {
		n += 10
		last = applied(b, faulty("reward", fault.Constant, n), goes("reward", finding.TelemetryFault, finding.OK, n+1),
			drift("return", n+2), quiet(n+5))[2].Incident.ID
	}
	got := b.Incidents()
	if len(got) != keptIncidents || got[len(got)-1].ID != last || len(b.groups[prod].PastFaults) != keptFaults {
		t.Errorf("%d incidents, %d faults", len(got), len(b.groups[prod].PastFaults))
	}
}

// TestBookGoesOnFromASnapshot interrupts a sequence of findings at every position.
func TestTrackerGoesOnFromASnapshot(t *testing.T) {
	changed := drift("return", 300)
	changed.Changed = []string{"policy"}
	course := []finding.Finding{
		drift("return", 100), drift("reward", 105), faulty("reward", fault.NonFinite, 110),
		goes("reward", finding.TelemetryFault, finding.OK, 140), goes("return", finding.Drift, finding.OK, 150), quiet(171), changed,
		faulty("observation.x", fault.Constant, 310), goes("return", finding.Drift, finding.OK, 400), quiet(430),
	}
	whole := NewTracker()
	want := applied(whole, course...)
	for cut := range course {
		before, after := NewTracker(), NewTracker()
		got := applied(before, course[:cut]...)
		resumed(t, before, after)
		got = append(got, applied(after, course[cut:]...)...)
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(after.Incidents(), whole.Incidents()) {
			t.Errorf("cut after %d findings:\n%q\nwant:\n%q", cut, told(got), told(want))
		}
	}
}

func TestResumeRefusesDamage(t *testing.T) {
	b := NewTracker()
	applied(b, drift("return", 100))
	parts, err := b.Changes()
	if err != nil {
		t.Fatal(err)
	}
	good := parts["book/0"]
	newer := append([]byte{groupFormat.Version + 1}, good[1:]...)
	for name, test := range map[string]struct {
		parts ingest.Parts
		want  string
	}{
		"nothing in a part": {ingest.Parts{"book/0": nil}, "part book/0: it is missing"},
		"a part is missing": {ingest.Parts{"book/1": good}, "part book/0: it is missing"},
		"cut in the head":   {ingest.Parts{"book/0": good[:5]}, "EOF"},
		"cut in the body":   {ingest.Parts{"book/0": good[:len(good)-10]}, "EOF"},
		"a newer version":   {ingest.Parts{"book/0": newer}, "it was written by a newer build: its format is 7"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := NewTracker().Resume(test.parts); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// Only groups that have changed are written.
func TestTrackerWritesWhatChanged(t *testing.T) {
	b := NewTracker()
	wants := func(what string, want ...string) {
		t.Helper()
		parts, err := b.Changes()
		if got := slices.Sorted(maps.Keys(parts)); err != nil || !slices.Equal(got, want) || b.Changed() != (len(want) > 0) {
			t.Errorf("%s: %q, %v, want %q", what, got, err, want)
		}
	}
	wants("at first")
	second := drift("return", 120)
	second.Group = ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "other"})
	applied(b, drift("return", 100), second)
	wants("two groups", "book/0", "book/1")
	wants("not saved yet", "book/0", "book/1")
	b.Saved()
	wants("saved")
	id := b.Incidents()[1].ID
	b.Mute(id, Decision{Kind: Muted, Until: time.Unix(10, 0)})
	wants("muted", "book/1")
	b.Saved()
	b.EndMutes(time.Unix(20, 0))
	wants("the mute has ended", "book/1")
	b.Saved()
	b.End(b.Incidents()[0].ID, Decision{Kind: Accepted})
	wants("accepted", "book/0")
	b.Lost()
	wants("lost", "book/0", "book/1")
}

func FuzzResume(f *testing.F) {
	b := NewTracker()
	applied(b, drift("return", 100), faulty("reward", fault.Constant, 110))
	parts, err := b.Changes()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(parts["book/0"])
	f.Add([]byte{groupFormat.Version})
	f.Fuzz(func(t *testing.T, part []byte) {
		b := NewTracker()
		if err := b.Resume(ingest.Parts{"book/0": part}); err == nil {
			b.Incidents()
		}
	})
}

// resumed restores the state of a tracker in a new one.
func resumed(t *testing.T, from, to *Tracker) {
	t.Helper()
	from.Lost()
	parts, err := from.Changes()
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Resume(parts); err != nil {
		t.Fatal(err)
	}
}

// reread returns a tracker that has read what another one saved.
func reread(t *testing.T, b *Tracker) *Tracker {
	t.Helper()
	parts, err := b.Changes()
	if err != nil {
		t.Fatal(err)
	}
	next := NewTracker()
	if err := next.Resume(parts); err != nil {
		t.Fatal(err)
	}
	return next
}

// An alarm that has resolved says how far the signal had moved before it began to return, also after a restart.
func TestResolvedAlarmKeepsTheEffectOfItsDrift(t *testing.T) {
	update := func(n int64, score, mean float64) finding.Finding {
		f := drift("return", n)
		f.Kind, f.Score, f.Effect.CurrentMean = finding.StreamUpdated, score, mean
		f.Histogram = &finding.Histogram{Low: mean}
		return f
	}
	over := goes("return", finding.Drift, finding.OK, 400)
	over.Score, over.Effect.CurrentMean = .4, 17
	b := NewTracker()
	applied(b, drift("return", 100), update(120, 2, 11), update(150, 3, 9.5), update(200, 2.5, 10), update(300, 2, 15))
	if now := b.Alarms()[0].Effect.CurrentMean; now != 15 {
		t.Errorf("while it fires, the mean is %v, want the newest, 15", now)
	}
	b = reread(t, b)
	applied(b, update(350, 1.2, 16), over)
	b = reread(t, b)
	applied(b, quiet(430))
	a := b.Incidents()[0].Alarms[0]
	if a.Effect.CurrentMean != 10 || a.Histogram.Low != 10 {
		t.Errorf("after it has resolved, the mean is %v and the histogram begins at %v, want 10", a.Effect.CurrentMean, a.Histogram.Low)
	}
	if words := a.ForemostClause(); !strings.HasPrefix(words, "mean return fell from 21.5 in the baseline to 10 (") {
		t.Errorf("it says %q", words)
	}
}

// An alarm that turns from an improvement into a deterioration forgets the height of the improvement, even if the score was
// higher then.
func TestHeightIsThatOfTheNewestDrift(t *testing.T) {
	b := NewTracker()
	better := drift("return", 100)
	better.Improvement, better.Score = true, 9
	applied(b, better)
	worse := drift("return", 200)
	worse.Kind, worse.Score, worse.Effect.CurrentMean = finding.StreamUpdated, 2, 3
	applied(b, worse)
	applied(b, goes("return", finding.Drift, finding.OK, 250))
	if a := b.Incidents()[0].Alarms[0]; a.Improvement || a.Effect.CurrentMean != 3 {
		t.Errorf("improvement %t, mean %v, want 3", a.Improvement, a.Effect.CurrentMean)
	}
}

// An alarm that an earlier build saved while it was firing keeps its last effect.
func TestAlarmWithoutAHeightResolves(t *testing.T) {
	b := NewTracker()
	applied(b, drift("return", 100))
	b.order[0].Open.Alarms[0].Height = finding.Effect{}
	b = reread(t, b)
	applied(b, goes("return", finding.Drift, finding.OK, 150))
	if a := b.Incidents()[0].Alarms[0]; a.Effect != drift("return", 100).Effect {
		t.Errorf("effect %+v", a.Effect)
	}
}
