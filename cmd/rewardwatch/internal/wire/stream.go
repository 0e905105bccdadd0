package wire

import (
	"math"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
)

// Stream is the state of a signal of a group.
//
// It is large because it contains everything that the API returns about a stream.
type Stream struct {
	Policy      string            `json:"policy"`
	Group       map[string]string `json:"group"`
	Signal      string            `json:"signal"`
	State       finding.State     `json:"state"`
	Missing     *string           `json:"missing"`
	Notes       []string          `json:"notes"` // which of its quantities are judged later than the others, or not at all, or within strata of the week, and why
	Fault       *string           `json:"fault"`
	Armed       []string          `json:"armed"`
	Units       int64             `json:"units"` // of the group
	Versions    Versions          `json:"versions"`
	LastUnitTS  *Instant          `json:"last_unit_ts"`
	BaselineID  *string           `json:"baseline_id"`
	Provisional bool              `json:"provisional"`
	Score       *Number           `json:"score"` // largest score; null before a detector is armed
	EffectSize  Number            `json:"effect_size"`
	Factor      Number            `json:"dependence_factor"`
	Quantity    string            `json:"quantity"`
	Baseline    *Distribution     `json:"baseline"`
	Current     *Distribution     `json:"current"`
	Detectors   []Detector        `json:"detectors"`
	Reach       []Reach           `json:"reach"` // of the quantity, in ascending order of units; empty if unknown
	Progress    *Progress         `json:"progress"`
}

// Progress is the recent course of the return of a policy that learns.
type Progress struct {
	State  progress.State `json:"state"`
	Units  int64          `json:"units"`
	Change Number         `json:"change"` // over these units, with a 99% interval
	Low    Number         `json:"low"`
	High   Number         `json:"high"`
	Level  Number         `json:"level"`
	Best   Number         `json:"best"`
}

// progressOf returns nil if the progress is unknown.
func progressOf(p *progress.Progress) *Progress {
	if p == nil {
		return nil
	}
	return &Progress{p.State, p.Units, Number(p.Change), Number(p.Low), Number(p.High), Number(p.Level), Number(p.Best)}
}

// Reach is the smallest change of a quantity that is detected within a number of units in nine out of ten cases.
type Reach struct {
	Units  int     `json:"units"`
	Size   *Number `json:"size"`    // in standard deviations of the baseline without its season; null if no change is detected so soon
	OfRate bool    `json:"of_rate"` // size is instead the fraction by which a rate falls
	Known  int     `json:"known"`   // number of units, including the baseline's, from which on the change is detected; 0 if the baseline is enough
	Others bool    `json:"others"`  // the zeros of the baseline do not shift

	OfAmounts bool `json:"of_amounts"` // amounts shift; size is in their standard deviations
}

// ReachOf returns the reach of a stream in the form of the API.
func ReachOf(reach []finding.Reach) []Reach {
	out := make([]Reach, len(reach))
	for i, r := range reach {
		out[i] = Reach{Units: r.Units, OfRate: r.OfRate, Known: int(r.Known), Others: r.Others, OfAmounts: r.OfAmounts}
		if !math.IsNaN(r.Size) {
			out[i].Size = new(Number(r.Size))
		}
	}
	return out
}

// Detector is the state of one detector of a stream.
type Detector struct {
	Detector  string  `json:"detector"`
	Branch    string  `json:"branch"`
	Score     *Number `json:"score"` // null for a gauge
	Statistic Number  `json:"statistic"`
	Threshold *Number `json:"threshold"` // null for a gauge
	Gauge     *Gauge  `json:"gauge"`     // null unless the detector only serves for comparison
}

// Gauge is a statistic that never raises an alarm.
type Gauge struct {
	Drifts   int64  `json:"drifts"`
	ARL0     Number `json:"arl0_units"`
	MoreThan bool   `json:"more_than"` // arl0_units is a lower limit
}

// Distribution summarizes values of a signal.
type Distribution struct {
	Units     int        `json:"units"`
	Mean      Number     `json:"mean"`
	SD        Number     `json:"sd"`
	Q10       Number     `json:"q10"`
	Q50       Number     `json:"q50"`
	Q90       Number     `json:"q90"`
	Histogram [10]Number `json:"histogram_ratio"` // share of units between the baseline's deciles
}

// AppendStreams appends the streams of a group.
func AppendStreams(out []Stream, g *finding.GroupSummary) []Stream {
	labels := g.Group.Map()
	for i := range g.Streams {
		stream := &g.Streams[i]
		out = append(out, Stream{
			Policy:      g.Group.Policy,
			Group:       labels,
			Signal:      stream.Signal,
			State:       stream.State,
			Missing:     OrNull(stream.Missing),
			Notes:       List(stream.Notes),
			Fault:       OrNull(stream.Fault),
			Armed:       List(stream.Armed),
			Units:       g.Units,
			Versions:    Versions(g.Versions),
			LastUnitTS:  At(g.LastUnitTS),
			BaselineID:  OrNull(g.Baseline.ID),
			Provisional: g.Baseline.Provisional,
			Score:       scoreOf(stream),
			EffectSize:  Number(stream.Effect),
			Factor:      Number(stream.Factor),
			Quantity:    stream.Quantity,
			Baseline:    distributionOf(stream.Baseline),
			Current:     distributionOf(stream.Current),
			Detectors:   detectorsOf(stream),
			Reach:       ReachOf(stream.Reach),
			Progress:    progressOf(stream.Progress),
		})
	}
	return out
}

// scoreOf returns the largest score of the detectors that have one.
func scoreOf(s *finding.StreamSummary) *Number {
	largest, any := words.Score(s)
	if !any {
		return nil
	}
	return new(Number(largest))
}

func detectorsOf(s *finding.StreamSummary) []Detector {
	out := make([]Detector, len(s.Detectors))
	for i, d := range s.Detectors {
		out[i] = Detector{Detector: d.Detector, Branch: d.Branch, Statistic: Number(d.Statistic)}
		if d.Threshold != 0 {
			out[i].Score, out[i].Threshold = new(Number(d.Score)), new(Number(d.Threshold))
		}
		if d.Gauge != nil {
			out[i].Gauge = &Gauge{d.Gauge.Drifts, Number(d.Gauge.ARL0), d.Gauge.MoreThan}
		}
	}
	return out
}

func distributionOf(d finding.Distribution) *Distribution {
	if d.Units == 0 {
		return nil
	}
	out := &Distribution{
		Units: d.Units, Mean: Number(d.Mean), SD: Number(d.SD), Q10: Number(d.Q10), Q50: Number(d.Q50), Q90: Number(d.Q90),
	}
	for i, share := range d.HistogramRatio {
		out.Histogram[i] = Number(share)
	}
	return out
}
