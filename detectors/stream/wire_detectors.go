package stream

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/certificate"
	"github.com/rewardwatch/rewardwatch/detectors/rarity"
	"github.com/rewardwatch/rewardwatch/detectors/season"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// RanksWire is the wire form of a detectors.Ranks.
type RanksWire struct {
	Points  detectors.Floats `cbor:"1,keyasint,omitzero"`
	Below   detectors.Counts `cbor:"2,keyasint,omitzero"`
	Uniform bool             `cbor:"3,keyasint,omitzero"`
}

// RanksWireOf returns the wire form of the ranks of a baseline.
func RanksWireOf(x *detectors.Ranks) RanksWire {
	return RanksWire{
		Points: x.Points, Below: x.Below, Uniform: x.Uniform,
	}
}

// Live returns the ranks.
func (w *RanksWire) Live() detectors.Ranks {
	return detectors.Ranks{
		Points: w.Points, Below: w.Below, Uniform: w.Uniform,
	}
}

// SeasonWire is the wire form of a season.Season.
type SeasonWire struct {
	Strata [168]uint8   `cbor:"1,keyasint"`
	Like   []*RanksWire `cbor:"2,keyasint,omitzero"`
	Level  []float64    `cbor:"3,keyasint,omitzero"`
	Ranks  *RanksWire   `cbor:"4,keyasint,omitzero"`
	Course []float64    `cbor:"5,keyasint,omitzero"`
	Rest   *RanksWire   `cbor:"6,keyasint,omitzero"`
	Zone   string       `cbor:"7,keyasint,omitzero"`
}

// SeasonWireOf returns the wire form of a season.
func SeasonWireOf(x *season.Season) SeasonWire {
	return SeasonWire{
		Strata: x.Strata, Like: saved.Each(x.Like, func(e *detectors.Ranks) *RanksWire { return saved.Pointer(e, RanksWireOf) }),
		Level: x.Level, Ranks: saved.Pointer(x.Ranks, RanksWireOf), Course: x.Course, Rest: saved.Pointer(x.Rest, RanksWireOf), Zone: x.Zone,
	}
}

// Live returns the season.
func (w *SeasonWire) Live() season.Season {
	return season.Season{
		Strata: w.Strata, Like: saved.Each(w.Like, func(e *RanksWire) *detectors.Ranks { return saved.Pointer(e, (*RanksWire).Live) }),
		Level: w.Level, Ranks: saved.Pointer(w.Ranks, (*RanksWire).Live), Course: w.Course, Rest: saved.Pointer(w.Rest, (*RanksWire).Live), Zone: w.Zone,
	}
}

type cusumWire struct {
	Walk      float64          `cbor:"1,keyasint"`
	StartedAt int64            `cbor:"2,keyasint,omitzero"`
	Height    float64          `cbor:"3,keyasint"`
	Zeroed    bool             `cbor:"4,keyasint,omitzero"`
	Carries   bool             `cbor:"5,keyasint,omitzero"`
	Family    detectors.Family `cbor:"6,keyasint,omitzero"`
	Param     float64          `cbor:"7,keyasint"`
	C         float64          `cbor:"8,keyasint"`
	Chi       float64          `cbor:"9,keyasint"`
	Info      float64          `cbor:"10,keyasint"`
	LogA      float64          `cbor:"11,keyasint"`
	Kappa     float64          `cbor:"12,keyasint"`
}

func cusumWireOf(x *detectors.CUSUM) cusumWire {
	return cusumWire{
		Walk: x.Walk, StartedAt: x.StartedAt, Height: x.Height, Zeroed: x.Zeroed, Carries: x.Carries,
		Family: x.Family, Param: x.Param, C: x.C, Chi: x.Chi, Info: x.Info, LogA: x.LogA, Kappa: x.Kappa,
	}
}

func (w *cusumWire) live() detectors.CUSUM {
	return detectors.CUSUM{
		Walk: w.Walk, StartedAt: w.StartedAt, Height: w.Height, Zeroed: w.Zeroed, Carries: w.Carries,
		Family: w.Family, Param: w.Param,
		Calibration: detectors.Calibration{C: w.C, Chi: w.Chi, Info: w.Info, LogA: w.LogA}, Kappa: w.Kappa,
	}
}

type rankTestWire struct {
	Units    int         `cbor:"1,keyasint,omitzero"`
	Factor   float64     `cbor:"2,keyasint"`
	Branches []cusumWire `cbor:"3,keyasint,omitzero"`
	// Tolerated is in standard deviations of the baseline. Older builds wrote a shift of the normal scores.
	Tolerated float64 `cbor:"4,keyasint,omitzero"`
}

func rankTestWireOf(x *detectors.RankTest) rankTestWire {
	return rankTestWire{
		Units: x.Units, Factor: x.Factor, Branches: saved.EachOf(x.Branches, cusumWireOf), Tolerated: x.Tolerated,
	}
}

func (w *rankTestWire) live() detectors.RankTest {
	return detectors.RankTest{
		Walks:     detectors.Walks{Units: w.Units, Factor: w.Factor, Branches: saved.EachOf(w.Branches, (*cusumWire).live)},
		Tolerated: w.Tolerated,
	}
}

type frequencyTestWire struct {
	Units    int         `cbor:"1,keyasint,omitzero"`
	Factor   float64     `cbor:"2,keyasint"`
	Branches []cusumWire `cbor:"3,keyasint,omitzero"`
	SD       float64     `cbor:"4,keyasint"`
	Offsets  []float64   `cbor:"5,keyasint,omitzero"`

	Strata []stratumWire `cbor:"6,keyasint,omitzero"` // 7 was used by an older build
}

type stratumWire struct {
	SD      float64   `cbor:"1,keyasint"`
	Offsets []float64 `cbor:"2,keyasint,omitzero"`
}

func frequencyTestWireOf(x *detectors.FrequencyTest) frequencyTestWire {
	return frequencyTestWire{
		Units: x.Units, Factor: x.Factor, Branches: saved.EachOf(x.Branches, cusumWireOf), SD: x.SD,
		Offsets: x.Offsets,
		Strata:  saved.EachOf(x.Strata, func(e *detectors.Stratum) stratumWire { return stratumWire(*e) }),
	}
}

func (w *frequencyTestWire) live() detectors.FrequencyTest {
	return detectors.FrequencyTest{
		Walks:   detectors.Walks{Units: w.Units, Factor: w.Factor, Branches: saved.EachOf(w.Branches, (*cusumWire).live)},
		Stratum: detectors.Stratum{SD: w.SD, Offsets: w.Offsets},
		Strata:  saved.EachOf(w.Strata, func(e *stratumWire) detectors.Stratum { return detectors.Stratum(*e) }),
	}
}

type noveltyWire struct {
	Mode      float64 `cbor:"1,keyasint"`
	Rate      float64 `cbor:"2,keyasint"`
	Up        int     `cbor:"3,keyasint,omitzero"`
	Height    int     `cbor:"4,keyasint,omitzero"`
	Walk      int     `cbor:"5,keyasint,omitzero"`
	Zeroed    bool    `cbor:"6,keyasint,omitzero"`
	StartedAt int64   `cbor:"7,keyasint,omitzero"`
	Side      int     `cbor:"8,keyasint,omitzero"`

	Known []float64 `cbor:"9,keyasint,omitzero"`
}

type rarityWalkWire struct {
	Family    detectors.Family `cbor:"1,keyasint,omitzero"`
	Param     float64          `cbor:"2,keyasint"`
	Rare      int              `cbor:"3,keyasint,omitzero"`
	Usual     int              `cbor:"4,keyasint,omitzero"`
	Height    int              `cbor:"5,keyasint,omitzero"`
	Walk      int              `cbor:"6,keyasint,omitzero"`
	Zeroed    bool             `cbor:"7,keyasint,omitzero"`
	StartedAt int64            `cbor:"8,keyasint,omitzero"`
}

func rarityWalkWireOf(x *rarity.Walk) rarityWalkWire {
	return rarityWalkWire{
		Family: x.Family, Param: x.Param, Rare: x.Rare, Usual: x.Usual, Height: x.Height, Walk: x.Walk,
		Zeroed: x.Zeroed, StartedAt: x.StartedAt,
	}
}

func (w *rarityWalkWire) live() rarity.Walk {
	return rarity.Walk{
		Branch: detectors.Branch{Family: w.Family, Param: w.Param}, Rare: w.Rare, Usual: w.Usual, Height: w.Height,
		Walk: w.Walk, Zeroed: w.Zeroed, StartedAt: w.StartedAt,
	}
}

type rarityTestWire struct {
	Mode      float64          `cbor:"1,keyasint"`
	Factor    float64          `cbor:"2,keyasint"`
	Spend     float64          `cbor:"3,keyasint"`
	Low       float64          `cbor:"4,keyasint"`
	High      float64          `cbor:"5,keyasint"`
	Units     int              `cbor:"6,keyasint,omitzero"`
	Novel     int              `cbor:"7,keyasint,omitzero"`
	More      int              `cbor:"8,keyasint,omitzero"`
	MoreNovel int              `cbor:"9,keyasint,omitzero"`
	Doublings int              `cbor:"10,keyasint,omitzero"`
	Walks     []rarityWalkWire `cbor:"11,keyasint"`
	Side      int              `cbor:"12,keyasint,omitzero"`
}

func rarityTestWireOf(x *rarity.Test) rarityTestWire {
	return rarityTestWire{
		Mode: x.Mode, Factor: x.Factor, Spend: x.Spend, Low: x.Low, High: x.High, Units: x.Units, Novel: x.Novel,
		More: x.More, MoreNovel: x.MoreNovel, Doublings: x.Doublings,
		Walks: saved.EachOf(x.Walks[:], rarityWalkWireOf), Side: x.Side,
	}
}

func (w *rarityTestWire) live() rarity.Test {
	x := rarity.Test{
		Mode: w.Mode, Factor: w.Factor, Spend: w.Spend, Low: w.Low, High: w.High, Units: w.Units, Novel: w.Novel,
		More: w.More, MoreNovel: w.MoreNovel, Doublings: w.Doublings, Side: w.Side,
	}
	copy(x.Walks[:], saved.EachOf(w.Walks, (*rarityWalkWire).live))
	return x
}

// certificateStartWire holds the counts of an older build, or the packed counts of the certificate.
type certificateStartWire struct {
	At     int64            `cbor:"1,keyasint,omitzero"`
	Counts detectors.Counts `cbor:"2,keyasint,omitzero"`
	Packed saved.Lent       `cbor:"3,keyasint,omitzero"`
}

type certificateWire struct {
	Units  int                    `cbor:"1,keyasint,omitzero"`
	Factor float64                `cbor:"2,keyasint"`
	Cuts   detectors.Floats       `cbor:"3,keyasint,omitzero"`
	Base   detectors.Floats       `cbor:"4,keyasint,omitzero"`
	Seen   int64                  `cbor:"5,keyasint,omitzero"`
	Counts detectors.Counts       `cbor:"6,keyasint,omitzero"`
	Starts []certificateStartWire `cbor:"7,keyasint,omitzero"`
}

func certificateWireOf(x *certificate.Bound) certificateWire {
	w := certificateWire{Units: x.Units, Factor: x.Factor, Cuts: x.Cuts, Base: x.Base, Seen: x.Seen, Counts: x.Counts}
	for i := range x.Starts.Len() {
		w.Starts = append(slices.Grow(w.Starts, x.Starts.Len()-i), certificateStartWire{At: x.Starts.At(i), Packed: x.Starts.Packed(i)})
	}
	return w
}

func (w *certificateWire) live() certificate.Bound {
	x := certificate.Bound{Units: w.Units, Factor: w.Factor, Cuts: w.Cuts, Base: w.Base, Seen: w.Seen, Counts: w.Counts}
	for _, s := range w.Starts {
		if len(s.Packed) == 0 {
			s.Packed = certificate.Pack(nil, s.Counts)
		}
		x.AddStart(s.At, s.Packed)
	}
	return x
}

type guaranteedWire struct {
	Mean float64        `cbor:"1,keyasint"`
	N    float64        `cbor:"2,keyasint"`
	Side detectors.Side `cbor:"3,keyasint,omitzero"`
	Up   [8]float64     `cbor:"4,keyasint"`
	Down [8]float64     `cbor:"5,keyasint"`
}

type adwinRowWire struct {
	Buckets  int                 `cbor:"1,keyasint,omitzero"`
	Total    detectors.ADWINSums `cbor:"2,keyasint"`
	Variance detectors.ADWINSums `cbor:"3,keyasint"`
}

type adwinWire struct {
	Delta    float64        `cbor:"1,keyasint"`
	Count    int            `cbor:"2,keyasint,omitzero"`
	Total    float64        `cbor:"3,keyasint"`
	Variance float64        `cbor:"4,keyasint"`
	Top      int            `cbor:"5,keyasint,omitzero"`
	Rows     []adwinRowWire `cbor:"6,keyasint"`
	Drifted  bool           `cbor:"7,keyasint,omitzero"`
}

func adwinWireOf(x *detectors.ADWIN) adwinWire {
	return adwinWire{
		Delta: x.Delta, Count: x.Count, Total: x.Total, Variance: x.Variance, Top: x.Top,
		Rows:    saved.Each(x.Rows[:min(x.Top+1, len(x.Rows))], func(e detectors.ADWINRow) adwinRowWire { return adwinRowWire(e) }),
		Drifted: x.Drifted,
	}
}

func (w *adwinWire) live() detectors.ADWIN {
	rows := w.Rows[:min(w.Top+1, len(w.Rows))] // an older build also saved the empty rows
	return detectors.ADWIN{
		Delta: w.Delta, Count: w.Count, Total: w.Total, Variance: w.Variance, Top: w.Top, Drifted: w.Drifted,
		Rows: saved.Each(rows, func(e adwinRowWire) detectors.ADWINRow { return detectors.ADWINRow(e) }),
	}
}

type pageHinkleyWire struct {
	Count   int     `cbor:"1,keyasint,omitzero"`
	Mean    float64 `cbor:"2,keyasint"`
	Up      float64 `cbor:"3,keyasint"`
	Lowest  float64 `cbor:"4,keyasint"`
	Down    float64 `cbor:"5,keyasint"`
	Highest float64 `cbor:"6,keyasint"`
	Drifted bool    `cbor:"7,keyasint,omitzero"`
}

type arl0Wire struct {
	Mean          float64 `cbor:"1,keyasint"`
	StandardError float64 `cbor:"2,keyasint"`
	Values        int     `cbor:"3,keyasint,omitzero"`
	Alarms        int     `cbor:"4,keyasint,omitzero"`
}

type regressionWire struct {
	Rewards  []float64 `cbor:"1,keyasint,omitzero"`
	Outcomes []float64 `cbor:"2,keyasint,omitzero"`
	Rounding float64   `cbor:"3,keyasint"`
}

type degradationWire struct {
	Mean    []float64 `cbor:"1,keyasint,omitzero"`
	Weights []float64 `cbor:"2,keyasint,omitzero"`
	Shrunk  float64   `cbor:"3,keyasint"`
}

type proofWire struct {
	Units int       `cbor:"1,keyasint,omitzero"`
	Sums  []float64 `cbor:"2,keyasint,omitzero"`
}
