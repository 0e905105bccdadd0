package bank

import (
	"cmp"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/actions"
	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/blocks"
	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/detectors/offpolicy"
	"github.com/rewardwatch/rewardwatch/detectors/raters"
	"github.com/rewardwatch/rewardwatch/detectors/strata"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/trail"
	"github.com/rewardwatch/rewardwatch/detectors/versions"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// The wire form of a group, in this file and the other wire files. Field numbers are never reused, see package saved.
// If a struct has the fields of the live type in the same order, a plain Go conversion such as pastBaselineWire(v)
// converts it.

type pastBaselineWire struct {
	ID          string        `cbor:"1,keyasint,omitzero"`
	Units       int           `cbor:"2,keyasint,omitzero"`
	Config      string        `cbor:"3,keyasint,omitzero"`
	Provisional bool          `cbor:"4,keyasint,omitzero"`
	Offsets     []saved.Range `cbor:"5,keyasint,omitzero"`
	FrozenAt    time.Time     `cbor:"6,keyasint,omitzero"`
	EndedAt     time.Time     `cbor:"7,keyasint,omitzero"`
	Promoted    string        `cbor:"8,keyasint,omitzero"`
	Why         string        `cbor:"9,keyasint,omitzero"`
}

func pastBaselineWireOf(x *finding.PastBaseline) pastBaselineWire {
	return pastBaselineWire{
		ID: x.ID, Units: x.Units, Config: x.Config, Provisional: x.Provisional,
		Offsets:  saved.RangesOf(x.Offsets),
		FrozenAt: x.FrozenAt, EndedAt: x.EndedAt, Promoted: x.Promoted, Why: x.Why,
	}
}

func (w *pastBaselineWire) live() finding.PastBaseline {
	return finding.PastBaseline{
		BaselineRef: finding.BaselineRef{ID: w.ID, Units: w.Units, Config: w.Config, Provisional: w.Provisional, Offsets: saved.LiveRanges(w.Offsets)},
		FrozenAt:    w.FrozenAt, EndedAt: w.EndedAt, Promoted: w.Promoted, Why: w.Why,
	}
}

type successionWire struct {
	Known       bool       `cbor:"1,keyasint,omitzero"`
	Version     string     `cbor:"2,keyasint,omitzero"`
	Absent      int        `cbor:"3,keyasint,omitzero"`
	Next        *groupWire `cbor:"4,keyasint,omitzero"`
	NextVersion string     `cbor:"5,keyasint,omitzero"`
	NextSeen    int64      `cbor:"6,keyasint,omitzero"`
	Retired     []string   `cbor:"7,keyasint,omitzero"`
	Ignored     int64      `cbor:"8,keyasint,omitzero"`
}

func (x *succession) wire() successionWire {
	return successionWire{
		Known: x.Known, Version: x.Version, Absent: x.Absent, Next: saved.Pointer(x.Next, (*group).wire),
		NextVersion: x.NextVersion, NextSeen: x.NextSeen, Retired: x.Retired, Ignored: x.Ignored,
	}
}

func (w *successionWire) live() succession {
	return succession{
		Known: w.Known, Version: w.Version, Absent: w.Absent, Next: saved.Pointer(w.Next, (*groupWire).live),
		NextVersion: w.NextVersion, NextSeen: w.NextSeen, Retired: w.Retired, Ignored: w.Ignored,
	}
}

type lineWire struct {
	Past     []pastBaselineWire   `cbor:"1,keyasint,omitzero"`
	Before   []quantitySampleWire `cbor:"2,keyasint,omitzero"`
	Promoted string               `cbor:"3,keyasint,omitzero"`
	Versions successionWire       `cbor:"4,keyasint"`
	Live     bool                 `cbor:"5,keyasint,omitzero"`
}

func (x *line) wire() lineWire {
	return lineWire{
		Past:     saved.EachOf(x.Past, pastBaselineWireOf),
		Before:   saved.Each(x.Before, func(e finding.QuantitySample) quantitySampleWire { return quantitySampleWire(e) }),
		Promoted: x.Promoted, Versions: x.Versions.wire(), Live: x.Live,
	}
}

func (w *lineWire) live() line {
	return line{
		Past:     saved.EachOf(w.Past, (*pastBaselineWire).live),
		Before:   saved.Each(w.Before, func(e quantitySampleWire) finding.QuantitySample { return finding.QuantitySample(e) }),
		Promoted: w.Promoted, Versions: w.Versions.live(), Live: w.Live,
	}
}

type probationWire struct {
	On    bool          `cbor:"1,keyasint,omitzero"`
	Since int64         `cbor:"2,keyasint,omitzero"`
	Cycle time.Duration `cbor:"3,keyasint,omitzero"`
	Round int64         `cbor:"4,keyasint,omitzero"`
	First int64         `cbor:"5,keyasint,omitzero"`
	Begun int64         `cbor:"6,keyasint,omitzero"`
	Fresh int           `cbor:"7,keyasint,omitzero"`

	Weekend bool `cbor:"8,keyasint,omitzero"`
}

// groupWire is large because it has a field for each saved field of group.
type groupWire struct {
	Key         ingest.Group             `cbor:"1,keyasint"`
	Number      int                      `cbor:"2,keyasint,omitzero"`
	Streams     []*stream.Wire           `cbor:"3,keyasint,omitzero"`
	Warmup      baseline.Wire            `cbor:"4,keyasint"`
	Seen        int64                    `cbor:"5,keyasint,omitzero"`
	Blocks      blocks.Wire              `cbor:"6,keyasint"`
	Newcomers   battery.NewcomersWire    `cbor:"7,keyasint"`
	LastTS      int64                    `cbor:"8,keyasint,omitzero"`
	Versions    versions.RecordWire      `cbor:"9,keyasint"`
	Trail       trail.Trail              `cbor:"10,keyasint"`
	Baseline    finding.BaselineRefWire  `cbor:"11,keyasint"`
	FrozenAt    time.Time                `cbor:"12,keyasint,omitzero"`
	FrozenTS    int64                    `cbor:"13,keyasint,omitzero"`
	Promise     finding.PromiseWire      `cbor:"14,keyasint"`
	Share       float64                  `cbor:"15,keyasint"`
	ActionKind  ingest.ActionKind        `cbor:"16,keyasint,omitzero"`
	Categories  []string                 `cbor:"17,keyasint,omitzero"`
	BaseActions map[string]int64         `cbor:"18,keyasint,omitzero"`
	Judged      battery.ActionChoiceWire `cbor:"19,keyasint"`
	LastActions trail.ActionsWire        `cbor:"20,keyasint"`
	LikeActions *actions.LikeWire        `cbor:"21,keyasint,omitzero"`
	Explained   int64                    `cbor:"22,keyasint,omitzero"`
	Delivery    fault.DeliveryWire       `cbor:"23,keyasint"`
	Line        lineWire                 `cbor:"24,keyasint"`
	Unjudged    string                   `cbor:"25,keyasint,omitzero"`
	Incident    bool                     `cbor:"26,keyasint,omitzero"`
	Quiet       int                      `cbor:"27,keyasint,omitzero"`
	Probation   probationWire            `cbor:"28,keyasint"`
	Positive    float64                  `cbor:"29,keyasint"`
	Negative    float64                  `cbor:"30,keyasint"`
	Rewards     int64                    `cbor:"31,keyasint,omitzero"`
	OffPolicy   *offpolicy.FollowerWire  `cbor:"32,keyasint,omitzero"`
	Laws        factor.Wire              `cbor:"33,keyasint,omitzero"`
	History     *history.History         `cbor:"34,keyasint,omitzero"` // nil for a version that warms up
	Strata      *strata.Wire             `cbor:"35,keyasint,omitzero"`
	Changes     []history.ChangeWire     `cbor:"36,keyasint,omitzero"` // of versions, for the history
	Onset       int64                    `cbor:"37,keyasint,omitzero"` // ordinal of the onset that the history keeps
	Raters      []raters.Wire            `cbor:"38,keyasint,omitzero"`
	Weekends    int                      `cbor:"39,keyasint,omitzero"` // older checkpoints lack it
}

func (x *group) wire() groupWire {
	return groupWire{
		Key: x.Key, Number: x.Number,
		Streams: saved.Each(x.Streams, func(e *stream.Stream) *stream.Wire { return saved.Pointer(e, (*stream.Stream).Wire) }),
		Warmup:  x.Warmup.Wire(), Seen: x.Seen, Blocks: x.Blocks.Wire(), Newcomers: battery.NewcomersWire(x.Newcomers),
		LastTS: x.LastTS, Versions: x.Versions.Wire(), Trail: x.Trail, Baseline: finding.BaselineRefWireOf(&x.Baseline),
		FrozenAt: x.FrozenAt, FrozenTS: x.FrozenTS, Promise: finding.PromiseWire(x.Promise), Share: x.Share,
		ActionKind: x.ActionKind, Categories: x.Categories, BaseActions: x.BaseActions,
		Judged: battery.ActionChoiceWire(x.Judged), LastActions: x.LastActions.Wire(),
		LikeActions: saved.Pointer(x.LikeActions, (*actions.Like).Wire), Explained: x.Explained,
		Delivery: x.Delivery.Wire(), Line: x.Line.wire(), Unjudged: x.Unjudged, Incident: x.Incident,
		Quiet: x.Quiet, Probation: probationWire(x.Probation), Weekends: x.Weekends, Positive: x.Positive, Negative: x.Negative,
		Rewards: x.Rewards, OffPolicy: saved.Pointer(x.OffPolicy, (*offpolicy.Follower).Wire),
		Laws: x.Laws.Wire(), History: x.History.Unless(x.Number == 0),
		Strata:  saved.Pointer(x.Strata, (*strata.Strata).Wire),
		Changes: saved.Each(x.History.Unless(x.Number == 0).Changes(), history.Change.Wire),
		Onset:   x.History.Unless(x.Number == 0).Kept(),
		Raters:  x.Raters.Wire(),
	}
}

func (w *groupWire) live() group {
	return group{
		Key: w.Key, Number: w.Number,
		Battery: w.battery(), Warmup: w.Warmup.Live(), Seen: w.Seen,
		LastTS: w.LastTS, Versions: w.Versions.Live(), Trail: w.Trail, Baseline: w.Baseline.Live(),
		FrozenAt: w.FrozenAt, FrozenTS: w.FrozenTS, Promise: finding.Promise(w.Promise), Share: w.Share,
		Categories: w.Categories, BaseActions: w.BaseActions,
		LastActions: w.LastActions.Live(),
		LikeActions: saved.Pointer(w.LikeActions, (*actions.LikeWire).Live), Explained: w.Explained,
		Line: w.Line.live(), Unjudged: w.Unjudged, Incident: w.Incident,
		Quiet: w.Quiet, Probation: probation(w.Probation), Weekends: w.Weekends, Positive: w.Positive, Negative: w.Negative,
		Rewards: w.Rewards, OffPolicy: saved.Pointer(w.OffPolicy, (*offpolicy.FollowerWire).Live),
		Laws: w.Laws.Live(), History: w.history(),
		Strata: saved.Pointer(w.Strata, (*strata.Wire).Live), Raters: raters.Live(w.Raters),
	}
}

// history returns the history of the group, with the versions of its last unit.
func (w *groupWire) history() *history.History {
	h, seen := cmp.Or(w.History, &history.History{}), w.Versions.Live()
	return h.Restored(saved.Each(w.Changes, history.ChangeWire.Live), w.Onset, seen.Newest(), w.Seen > 0)
}

// battery returns the part of the group whose wire form is battery.Wire.
func (w *groupWire) battery() battery.Battery {
	b := battery.Wire{
		Streams: w.Streams, Blocks: w.Blocks, Newcomers: w.Newcomers, ActionKind: w.ActionKind, Judged: w.Judged, Delivery: w.Delivery,
	}
	return b.Live()
}
