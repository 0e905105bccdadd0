package fault_test

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/faulttest"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// watched is the battery of a group that runs only the fault rules, which is much faster than the whole battery.
type watched struct{ *battery.Battery }

func newWatched() watched {
	tests := battery.New()
	return watched{&tests}
}

// watching learns from units of a sensor and freezes the rules.
func watching(s *faulttest.Sensor, units int) watched { return watchUnits(s.Unit, units) }

func watchUnits(unit func() *ingest.Unit, units int) watched {
	w, warmup := newWatched(), baseline.Warmup{}
	for range units {
		u := unit()
		w.Observe(u)
		for _, st := range w.Streams {
			st.Fault.Learn(st.Signal, u)
		}
		w.Delivery.Learn()
		warmup.Collect(u, 0, u.Pos.Offset)
	}
	for _, st := range w.Streams {
		st.Fault.Freeze(units, units)
	}
	_, usable := warmup.Clock()
	w.Delivery.Freeze(usable)
	return w
}

// start adds a signal.
func (w watched) start(signal string) {
	if i, found := w.Find(signal); !found {
		w.Streams = slices.Insert(w.Streams, i, &stream.Stream{Signal: signal})
	}
}

// Observe returns the rules in force, by signal; "" is for a rule despite which streams are judged.
func (w watched) Observe(u *ingest.Unit) map[string]string {
	for _, r := range w.Readings(u, new(stream.Scratch)) {
		w.start(r.Signal)
	}
	if len(u.Actions) > 0 {
		w.start(signals.Action)
	}
	rules := map[string]string{}
	for i, rule := range w.Faults(u) {
		if rule != "" {
			rules[w.Streams[i].Signal] = rule
		}
	}
	if rule := w.Delivery.StandsBy(); rule != "" {
		rules[""] = rule
	}
	return rules
}
