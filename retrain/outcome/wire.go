package outcome

import (
	"time"

	"github.com/rewardwatch/rewardwatch/ingest/saved"
	"github.com/rewardwatch/rewardwatch/retrain/expectation"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// The wire form of a follower. Numbers are never reused; package saved has the rules.

// format is the format of a saved follower. In format 1 fields had names.
var format = saved.Format[followerWire]{Version: 2, Before: map[byte]saved.Migration[followerWire]{1: saved.Named[followerWire]}}

type followerWire struct {
	Seen   []seenWire      `cbor:"1,keyasint,omitzero"`
	Open   *retrainingWire `cbor:"2,keyasint,omitzero"`
	Missed *retrainingWire `cbor:"3,keyasint,omitzero"`
}

type seenWire struct {
	Version string    `cbor:"1,keyasint"`
	At      time.Time `cbor:"2,keyasint,omitzero"`
}

type retrainingWire struct {
	Request  string            `cbor:"1,keyasint"`
	Policy   string            `cbor:"2,keyasint"`
	Group    map[string]string `cbor:"3,keyasint,omitzero"`
	Version  string            `cbor:"4,keyasint,omitzero"`
	Ordered  []string          `cbor:"5,keyasint,omitzero"`
	Expected expectedWire      `cbor:"6,keyasint"`
	Since    time.Time         `cbor:"7,keyasint,omitzero"`
	Due      time.Time         `cbor:"8,keyasint,omitzero"`
	Check    *expectation.Wire `cbor:"9,keyasint,omitzero"`
	Before   *expectation.Wire `cbor:"10,keyasint,omitzero"`
	Previous string            `cbor:"11,keyasint,omitzero"`
	News     bool              `cbor:"12,keyasint,omitzero"`
	Reported bool              `cbor:"13,keyasint,omitzero"`
}

type expectedWire struct {
	Text       string       `cbor:"1,keyasint" was:"text"`
	Statistic  string       `cbor:"2,keyasint" was:"statistic"`
	Signal     string       `cbor:"3,keyasint" was:"signal"`
	Comparison string       `cbor:"4,keyasint" was:"comparison"`
	Value      float64      `cbor:"5,keyasint" was:"value"`
	Over       int          `cbor:"6,keyasint" was:"over"`
	Unit       string       `cbor:"7,keyasint" was:"unit"`
	Within     float64      `cbor:"8,keyasint" was:"within_seconds"`
	Relative   relativeWire `cbor:"9,keyasint" was:"relative"`
}

type relativeWire struct {
	Times  float64 `cbor:"1,keyasint" was:"times"`
	Plus   float64 `cbor:"2,keyasint" was:"plus"`
	PlusSD float64 `cbor:"3,keyasint" was:"plus_sd"`
	Level  float64 `cbor:"4,keyasint" was:"level"`
	SD     float64 `cbor:"5,keyasint" was:"sd"`
}

func (f *Follower) wire() *followerWire {
	return &followerWire{
		Seen: saved.Each(f.Seen, func(s seenVersion) seenWire { return seenWire(s) }), Open: f.Open.wire(), Missed: f.Missed.wire(),
	}
}

// live restores the follower from a wire form.
func (f *Follower) live(w *followerWire) {
	f.Seen = saved.Each(w.Seen, func(s seenWire) seenVersion { return seenVersion(s) })
	f.Open, f.Missed = w.Open.live(), w.Missed.live()
}

func (a *Retraining) wire() *retrainingWire {
	if a == nil {
		return nil
	}
	e := a.Expected
	return &retrainingWire{
		Request: a.Request, Policy: a.Policy, Group: a.Group, Version: a.Version, Ordered: a.Ordered,
		Expected: expectedWire{
			Text: e.Text, Statistic: e.Statistic, Signal: e.Signal, Comparison: e.Comparison, Value: e.Value, Over: e.Over, Unit: e.Unit,
			Within: e.Within, Relative: relativeWire(e.Relative),
		},
		Since: a.Since, Due: a.Due, Check: a.Check.Wire(), Before: a.Before.Wire(), Previous: a.Previous, News: a.News, Reported: a.Reported,
	}
}

func (w *retrainingWire) live() *Retraining {
	if w == nil {
		return nil
	}
	e := w.Expected
	return &Retraining{
		Verification: ledger.Verification{
			Request: w.Request, Policy: w.Policy, Group: w.Group, Version: w.Version, Ordered: w.Ordered,
			Expected: recipe.Expected{
				Text: e.Text, Statistic: e.Statistic, Signal: e.Signal, Comparison: e.Comparison, Value: e.Value, Over: e.Over, Unit: e.Unit,
				Within: e.Within, Relative: recipe.Relative(e.Relative),
			},
			Since: w.Since, Due: w.Due, Reported: w.Reported,
		},
		Check: w.Check.Live(), Before: w.Before.Live(), Previous: w.Previous, News: w.News,
	}
}
