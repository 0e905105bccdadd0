package assemble

import (
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// The wire form of a snapshot. Field numbers are never reused; see package saved for the rules. Structures that occur
// once per episode do not omit empty fields, because encoding them is faster.

// stateFormat is the format of a saved assembler. In format 5, fields had names or were in the order of these structs.
var stateFormat = saved.Format[stateWire]{Version: 6, Before: map[byte]saved.Migration[stateWire]{5: saved.Named[stateWire]}}

type stateWire struct {
	Policies []*policyWire `cbor:"1,keyasint,omitempty"` // by name
	Groups   []*groupWire  `cbor:"2,keyasint,omitempty"` // by key
	Agents   []agentWire   `cbor:"3,keyasint,omitempty"`
	Recent   []endedWire   `cbor:"4,keyasint,omitempty"` // oldest first
	Episodes []episodeWire `cbor:"5,keyasint,omitempty"` // in the order in which they began
	Rests    []int         `cbor:"6,keyasint,omitempty"` // indices of the episodes without a beginning
	Lost     []*lostWire   `cbor:"7,keyasint,omitempty"` // by policy, oldest first
	Events   int64         `cbor:"8,keyasint,omitempty"`
	Searched int64         `cbor:"9,keyasint,omitempty"`
	Parts    []*partWire   `cbor:"10,keyasint,omitempty"` // of a Divided
}

type policyWire struct {
	Name      string      `cbor:"1,keyasint"`
	Quiet     int64       `cbor:"2,keyasint,omitempty"`
	Longest   int64       `cbor:"3,keyasint,omitempty"`
	Blocks    bool        `cbor:"4,keyasint,omitempty"`
	Mixed     bool        `cbor:"5,keyasint,omitempty"`
	Round     int64       `cbor:"6,keyasint,omitempty"`
	Steps     int64       `cbor:"7,keyasint,omitempty"`
	Lost      int64       `cbor:"8,keyasint,omitempty"`
	InShadow  *policyWire `cbor:"9,keyasint,omitempty"`
	Least     int64       `cbor:"10,keyasint,omitempty"`
	AtLeast   int64       `cbor:"11,keyasint,omitempty"`
	Begun     int64       `cbor:"12,keyasint,omitempty"`
	Forgetful bool        `cbor:"13,keyasint,omitempty"`
	Since     int64       `cbor:"14,keyasint,omitempty"`
}

type groupWire struct {
	Key       string       `cbor:"1,keyasint"`
	Group     ingest.Group `cbor:"2,keyasint"`
	Shadow    bool         `cbor:"3,keyasint,omitempty"`
	Lengths   []int64      `cbor:"4,keyasint,omitempty"`
	Longest   int64        `cbor:"5,keyasint,omitempty"`
	LeftOut   leftOutWire  `cbor:"6,keyasint,omitzero"`
	Abandoned int64        `cbor:"7,keyasint,omitempty"`
	Used      int64        `cbor:"8,keyasint,omitempty"`
	Block     *tallyWire   `cbor:"9,keyasint,omitempty"`
	Endings   endingsWire  `cbor:"10,keyasint,omitzero"`
}

type leftOutWire struct {
	Duplicates int64 `cbor:"1,keyasint"`
	Late       int64 `cbor:"2,keyasint"`
}

type endingsWire struct {
	Events     int64   `cbor:"1,keyasint,omitempty"`
	Waits      []int64 `cbor:"2,keyasint,omitempty"`
	Next       int     `cbor:"3,keyasint,omitempty"`
	Patient    int64   `cbor:"4,keyasint,omitempty"`
	SettledAt  int64   `cbor:"5,keyasint,omitempty"`
	Unfinished int64   `cbor:"6,keyasint,omitempty"`
}

type agentWire struct {
	Group  int        `cbor:"1,keyasint,omitempty"` // index in Groups
	ID     string     `cbor:"2,keyasint,omitempty"`
	Events int64      `cbor:"3,keyasint,omitempty"`
	Most   int64      `cbor:"4,keyasint,omitempty"`
	Block  *tallyWire `cbor:"5,keyasint,omitempty"`
	Round  int64      `cbor:"6,keyasint,omitempty"`
}

type endedWire struct {
	Key    uint64      `cbor:"1,keyasint"`
	Step   int64       `cbor:"2,keyasint,omitempty"`
	Came   arrivedWire `cbor:"3,keyasint,omitzero"`
	TS     int64       `cbor:"4,keyasint,omitempty"`
	Owed   bool        `cbor:"5,keyasint,omitempty"`
	Summed bool        `cbor:"6,keyasint,omitempty"`
	Gone   bool        `cbor:"7,keyasint,omitempty"`
}

type arrivedWire struct {
	First int64   `cbor:"1,keyasint"`
	Gaps  bool    `cbor:"2,keyasint"`
	Bits  *window `cbor:"3,keyasint"`
}

type lostWire struct {
	Key    uint64 `cbor:"1,keyasint"`
	Step   int64  `cbor:"2,keyasint,omitempty"`
	TS     int64  `cbor:"3,keyasint,omitempty"`
	Policy string `cbor:"4,keyasint,omitempty"`
	Shadow bool   `cbor:"5,keyasint,omitempty"`
}

type episodeWire struct {
	Agent  int         `cbor:"1,keyasint"` // index in Agents
	ID     string      `cbor:"2,keyasint"`
	Step   int64       `cbor:"3,keyasint"`
	Seen   int64       `cbor:"4,keyasint"`
	Ending endingWire  `cbor:"5,keyasint"`
	Came   arrivedWire `cbor:"6,keyasint"`
	Tally  *tallyWire  `cbor:"7,keyasint"`
}

type endingWire struct {
	Turn    int64 `cbor:"1,keyasint"`
	Wait    int64 `cbor:"2,keyasint"`
	Overdue bool  `cbor:"3,keyasint"`
	Counted bool  `cbor:"4,keyasint"`
}

// tallyWire is large because it has a field for each field of tally.
type tallyWire struct {
	First      saved.Position    `cbor:"1,keyasint"`
	Last       saved.Position    `cbor:"2,keyasint"`
	StartTS    int64             `cbor:"3,keyasint"`
	EndTS      int64             `cbor:"4,keyasint"`
	Versions   saved.Versions    `cbor:"5,keyasint"`
	Events     int64             `cbor:"6,keyasint"`
	Backwards  int64             `cbor:"7,keyasint"`
	LeftOut    leftOutWire       `cbor:"8,keyasint"`
	Early      bool              `cbor:"9,keyasint"`
	Steps      int64             `cbor:"10,keyasint"`
	Return     float64           `cbor:"11,keyasint"`
	Length     int64             `cbor:"12,keyasint"`
	HasSummary bool              `cbor:"13,keyasint"`
	Reward     saved.Moments     `cbor:"14,keyasint"`
	Rewards    sampleWire        `cbor:"15,keyasint"`
	Profile    profileWire       `cbor:"16,keyasint"`
	Previous   float64           `cbor:"17,keyasint"`
	Run        int64             `cbor:"18,keyasint"`
	LongestRun int64             `cbor:"19,keyasint"`
	LongestAt  float64           `cbor:"20,keyasint"`
	ActionKind ingest.ActionKind `cbor:"21,keyasint"`
	Words      bool              `cbor:"22,keyasint"`
	Actions    []actionWire      `cbor:"23,keyasint"`
	Numeric    []signalWire      `cbor:"24,keyasint"`
	Propensity *saved.Propensity `cbor:"25,keyasint,omitempty"` // only if steps have probabilities
	Keeper     *keeperWire       `cbor:"26,keyasint,omitempty"` // only if steps have observations
}

type sampleWire struct {
	Kept   []float64 `cbor:"1,keyasint"`
	Stride int64     `cbor:"2,keyasint"`
	Seen   int64     `cbor:"3,keyasint"`
}

type profileWire struct {
	Sums  []float64 `cbor:"1,keyasint"`
	Steps int64     `cbor:"2,keyasint"`
	Sum   float64   `cbor:"3,keyasint"`
	Held  int64     `cbor:"4,keyasint"`
}

type actionWire struct {
	Name   string  `cbor:"1,keyasint"`
	N      int64   `cbor:"2,keyasint"`
	Reward float64 `cbor:"3,keyasint"`
}

// signalWire contains the moments of a signal. Its quantiles are computed from its values.
type signalWire struct {
	Signal    string     `cbor:"1,keyasint"`
	N         int64      `cbor:"2,keyasint"`
	NonFinite int64      `cbor:"3,keyasint"`
	Mean      float64    `cbor:"4,keyasint"`
	M2        float64    `cbor:"5,keyasint"`
	Min       float64    `cbor:"6,keyasint"`
	Max       float64    `cbor:"7,keyasint"`
	Positive  float64    `cbor:"8,keyasint"`
	Negative  float64    `cbor:"9,keyasint"`
	Q10       float64    `cbor:"-"` // always 0, only in format 5
	Q90       float64    `cbor:"-"`
	Values    sampleWire `cbor:"10,keyasint"`
}

func (p *policy) wire() *policyWire {
	if p == nil {
		return nil
	}
	return &policyWire{
		Name: p.Name, Quiet: p.Quiet, Longest: p.Longest, Blocks: p.Blocks, Mixed: p.Mixed, Round: p.Round, Steps: p.Steps, Lost: p.Lost,
		InShadow: p.InShadow.wire(), Least: p.Least, AtLeast: p.AtLeast, Begun: p.Begun, Forgetful: p.Forgetful, Since: p.Since,
	}
}

func (w *policyWire) live() *policy {
	if w == nil {
		return nil
	}
	return &policy{
		Name: w.Name, Quiet: w.Quiet, Longest: w.Longest, Blocks: w.Blocks, Mixed: w.Mixed, Round: w.Round, Steps: w.Steps, Lost: w.Lost,
		InShadow: w.InShadow.live(), Least: w.Least, AtLeast: w.AtLeast, Begun: w.Begun, Forgetful: w.Forgetful, Since: w.Since,
	}
}

func (g *group) wire() *groupWire {
	n := &g.Endings
	return &groupWire{
		Key: g.Key, Group: g.Group, Shadow: g.Shadow, Lengths: g.Lengths, Longest: g.Longest, LeftOut: leftOutWire(g.LeftOut),
		Abandoned: g.Abandoned, Used: g.Used, Block: g.Block.wire(),
		Endings: endingsWire{
			Events: n.Events, Waits: n.Waits, Next: n.Next, Patient: n.Patient, SettledAt: n.SettledAt, Unfinished: n.Unfinished,
		},
	}
}

func (w *groupWire) live() *group {
	n := &w.Endings
	return &group{
		Key: w.Key, Group: w.Group, Shadow: w.Shadow, Lengths: w.Lengths, Longest: w.Longest, LeftOut: leftOut(w.LeftOut),
		Abandoned: w.Abandoned, Used: w.Used, Block: w.Block.live(),
		Endings: endings{
			Events: n.Events, Waits: n.Waits, Next: n.Next, Patient: n.Patient, SettledAt: n.SettledAt, Unfinished: n.Unfinished,
			idle: list{which: byTurn},
		},
	}
}

func (ag *agent) wire(group int) agentWire {
	return agentWire{Group: group, ID: ag.id, Events: ag.events, Most: ag.most, Block: ag.block.wire(), Round: ag.round}
}

func (w agentWire) live(g *group) *agent {
	key := string(appendPart([]byte(g.Key), w.ID))
	return &agent{
		key: key, id: key[len(key)-len(w.ID):], group: g, events: w.Events, most: w.Most,
		idle: list{which: byUse}, block: w.Block.live(), round: w.Round,
	}
}

func wireOfEnded(e ended) endedWire {
	if e.Step < 0 { // Came then belongs to an earlier episode in the same memory
		e.Came = arrived{}
	}
	return endedWire{Key: e.Key, Step: e.Step, Came: arrivedWire(e.Came), TS: e.TS, Owed: e.Owed, Summed: e.Summed, Gone: e.Gone}
}

func (w endedWire) live() ended {
	return ended{Key: w.Key, Step: w.Step, Came: arrived(w.Came), TS: w.TS, Owed: w.Owed, Summed: w.Summed, Gone: w.Gone}
}

func (ep *episode) wire(agent int) episodeWire {
	return episodeWire{
		Agent: agent, ID: ep.id, Step: ep.step, Seen: ep.seen, Ending: endingWire(ep.ending), Came: arrivedWire(ep.came.kept()),
		Tally: ep.tally.wire(),
	}
}

func (t *tally) wire() *tallyWire {
	if t == nil {
		return nil
	}
	return &tallyWire{
		First: saved.Position(t.First), Last: saved.Position(t.Last), StartTS: t.StartTS, EndTS: t.EndTS,
		Versions: saved.Versions(t.Versions), Events: t.Events, Backwards: t.Backwards, LeftOut: leftOutWire(t.LeftOut), Early: t.Early,
		Steps: t.Steps, Return: t.Return, Length: t.Length, HasSummary: t.HasSummary, Reward: saved.Moments(t.Reward),
		Rewards: t.Rewards.wire(), Profile: t.Profile.wire(), Previous: t.Previous, Run: t.Run, LongestRun: t.LongestRun,
		LongestAt: t.LongestAt, ActionKind: t.ActionKind, Words: t.Words,
		Actions: saved.Each(orNil(t.Actions), wireOfAction), Numeric: saved.Each(orNil(t.Numeric), wireOfSignal),
		Propensity: saved.Pointer(t.propensities(), saved.PropensityOf), Keeper: t.Keeper.wire(),
	}
}

func (w *tallyWire) live() *tally {
	if w == nil {
		return nil
	}
	return &tally{
		First: ingest.Position(w.First), Last: ingest.Position(w.Last), StartTS: w.StartTS, EndTS: w.EndTS,
		Versions: ingest.Versions(w.Versions), Events: w.Events, Backwards: w.Backwards, LeftOut: leftOut(w.LeftOut), Early: w.Early,
		Steps: w.Steps, Return: w.Return, Length: w.Length, HasSummary: w.HasSummary, Reward: ingest.Moments(w.Reward),
		Rewards: sample(w.Rewards), Profile: profile(w.Profile), Previous: w.Previous, Run: w.Run, LongestRun: w.LongestRun,
		LongestAt: w.LongestAt, ActionKind: w.ActionKind, Words: w.Words,
		Actions: saved.Each(w.Actions, actionWire.live), Numeric: saved.Each(w.Numeric, signalWire.live),
		Propensity: saved.Pointer(w.Propensity, (*saved.Propensity).Live), Keeper: w.Keeper.live(),
	}
}

func (s *sample) wire() sampleWire {
	return sampleWire{Kept: orNil(s.Kept), Stride: s.Stride, Seen: s.Seen}
}

func (p *profile) wire() profileWire {
	return profileWire{Sums: orNil(p.Sums), Steps: p.Steps, Sum: p.Sum, Held: p.Held}
}

// orNil returns nil for an empty list. A snapshot must not depend on whether the list's memory was reused.
func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

func wireOfAction(c ingest.Count) actionWire {
	return actionWire{Name: c.Name, N: c.N, Reward: c.Reward}
}

func (w actionWire) live() ingest.Count { return ingest.Count{Name: w.Name, N: w.N, Reward: w.Reward} }

func wireOfSignal(s signal) signalWire {
	return signalWire{
		Signal: s.Signal, N: s.N, NonFinite: s.NonFinite, Mean: s.Mean, M2: s.M2, Min: s.Min, Max: s.Max,
		Positive: s.Positive, Negative: s.Negative, Values: s.Values.wire(),
	}
}

func (w signalWire) live() signal {
	m := ingest.Moments{
		N: w.N, NonFinite: w.NonFinite, Mean: w.Mean, M2: w.M2, Min: w.Min, Max: w.Max, Positive: w.Positive, Negative: w.Negative,
	}
	return signal{NamedMoments: ingest.NamedMoments{Signal: w.Signal, Moments: m}, Values: sample(w.Values)}
}
