package bank

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/faulttest"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Each fault is found within 20 units, with its own rule and signal, and ends with the 20th unit without it.
func TestSimFaultsComeAndGo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	unit := func(f func(*ingest.Unit)) func(*faulttest.Sensor) { return func(s *faulttest.Sensor) { s.Edit = f } }
	shared := budget.NewCalibrations() // all begin with the same baselines
	for _, c := range []struct {
		name, rule string
		signals    []string // with the fault
		begin      func(*faulttest.Sensor)
	}{
		{"rewards stuck within an episode", fault.Constant, []string{"return", "reward"}, func(s *faulttest.Sensor) { s.Stuck = 30 }},
		{"rewards clipped above", fault.Clipped, []string{"return", "reward"}, func(s *faulttest.Sensor) { s.High = -1.5 }},
		{"rewards clipped on both sides", fault.Clipped, []string{"return", "reward"}, func(s *faulttest.Sensor) { s.Low, s.High = -2.5, -1.5 }},
		{"a unit of measurement 100 times smaller", fault.Scale, []string{"observation.speed", "return", "reward"}, func(s *faulttest.Sensor) { s.Factor = 100 }},
		{"one ten times larger", fault.Scale, []string{"observation.speed", "return", "reward"}, func(s *faulttest.Sensor) { s.Factor = .1 }},
		{"NaN rewards", fault.NonFinite, []string{"reward"}, unit(func(u *ingest.Unit) { u.Reward.Add(math.NaN()) })},
		{"a component vanishes", fault.Missing, []string{"observation.speed"}, unit(func(u *ingest.Unit) { u.Numeric = nil })},
		{"numbers for categories", fault.ActionKind, []string{"action"}, unit(func(u *ingest.Unit) { u.ActionKind, u.Actions = ingest.ActionNumeric, nil })},
		{"every tenth event twice", fault.Duplicates, []string{"action", "episode_length", "observation.speed", "return", "reward"}, unit(func(u *ingest.Unit) { u.Duplicates = u.Events/10 + 1 })},
		{"every tenth step after its end", fault.Late, []string{"action", "episode_length", "observation.speed", "return", "reward"}, unit(func(u *ingest.Unit) { u.Late = u.Events/10 + 1 })},
		{"clocks that run backwards", fault.ClockSkew, []string{"action", "episode_length", "observation.speed", "return", "reward"}, unit(func(u *ingest.Unit) { u.Backwards = 1 })},
		{"one of two clocks is ahead", fault.ClockSkew, []string{"action", "episode_length", "observation.speed", "return", "reward"}, unit(func(u *ingest.Unit) { u.EndTS += (1 - u.Pos.Offset%2) * 2 * int64(time.Hour) })},
		{"half of the episodes abandoned", fault.Abandoned, []string{"action", "episode_length", "observation.speed", "return", "reward"}, unit(func(u *ingest.Unit) { u.Abandoned = 1 })},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newBank(episodes(1e9))
			p.Share(shared)
			s := faulttest.NewSensor(60, faulttest.Normal(-2, .7))
			feed := func() map[string]string {
				p.Observe(s.Unit(), time.Time{})
				p.Publish()
				faulty := map[string]string{}
				for _, st := range p.Summary().Groups[0].Streams {
					if st.State == finding.TelemetryFault {
						faulty[st.Signal] = st.Fault
					}
				}
				return faulty
			}
			for range 600 {
				feed()
			}
			sound := *s
			c.begin(s)
			var faulty map[string]string
			for range 20 {
				faulty = feed()
			}
			want := map[string]string{}
			for _, signal := range c.signals {
				want[signal] = c.rule
			}
			if !reflect.DeepEqual(faulty, want) {
				t.Fatalf("after 20 units the faults are %v, want %v", faulty, want)
			}
			sound.Made = s.Made
			*s = sound
			for range 19 {
				faulty = feed()
			}
			for _, signal := range c.signals {
				if faulty[signal] != c.rule {
					t.Errorf("%s: the fault ended before 20 units without it: %v", signal, faulty)
				}
			}
			if faulty = feed(); len(faulty) > 0 {
				t.Errorf("after 20 units without it the faults are %v", faulty)
			}
		})
	}
}

// A fault that leaves the values correct does not hide a drift, whose findings are the same.
func TestSimFaultsThatStandByHideNoDrift(t *testing.T) {
	run := func(faulty bool) (alarms, states []string) {
		p := newBank(episodes(20_000))
		s := faulttest.NewSensor(90, faulttest.Normal(-2, .7))
		for i := range 1500 {
			if i == 700 {
				s.Reward = faulttest.Normal(-1.2, .7)
			}
			if i == 900 {
				s.Reward = faulttest.Normal(-2, .7)
			}
			u := s.Unit()
			if faulty && i >= 600 {
				u.Duplicates = u.Events
			}
			for _, f := range p.Observe(u, time.Time{}) {
				if f.To == finding.Drift || f.From == finding.Drift {
					alarms = append(alarms, fmt.Sprint(f.At.Ordinal, f.Kind, f.Signal, f.To, f.Score))
				}
				states = append(states, f.Signal+" "+f.To.String()+" "+f.Reason)
			}
		}
		return alarms, states
	}
	want, _ := run(false)
	got, states := run(true)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%d findings of drift with duplicates, want the %d without", len(got), len(want))
	}
	if !slices.Contains(states, "reward telemetry_fault duplicates") {
		t.Errorf("the duplicates were not told: %v", states)
	}
}

// Faults survive a restart at any time.
func TestSimFaultsAreInTheSnapshot(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	changes := []func(*faulttest.Sensor){
		func(s *faulttest.Sensor) { s.High = -1.5 }, func(s *faulttest.Sensor) { s.Factor = 100 }, func(s *faulttest.Sensor) { s.Stuck = 30 },
		func(s *faulttest.Sensor) {
			s.Edit = func(u *ingest.Unit) { u.Abandoned, u.Duplicates, u.Backwards = 1, 100, 1 }
		},
	}
	shared := budget.NewCalibrations() // all begin with the same baselines
	for i, change := range changes {
		straight, s := newBank(episodes(1e9)), faulttest.NewSensor(95, faulttest.Normal(-2, .7))
		straight.Share(shared)
		for range 600 {
			straight.Observe(s.Unit(), time.Time{})
		}
		change(s)
		restarted := straight
		var got, want []finding.Finding
		for range 30 {
			var state bytes.Buffer
			if err := restarted.Snapshot(&state); err != nil {
				t.Fatal(err)
			}
			restarted = newBank(episodes(1e9))
			if err := restarted.Restore(&state, time.Time{}); err != nil {
				t.Fatal(err)
			}
			u := s.Unit()
			want = append(want, straight.Observe(u, time.Time{})...)
			got = append(got, restarted.Observe(u, time.Time{})...)
		}
		if len(want) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("change %d: %d findings with restarts, %d without", i, len(got), len(want))
		}
	}
}
