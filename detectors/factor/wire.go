package factor

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// The wire forms. Field numbers are never reused, see package saved.

type nodeWire struct {
	_       struct{} `cbor:",toarray"`
	Feature int16
	Next    int16
	At      float32
}

type leafWire struct {
	Beta    []float32 `cbor:"1,keyasint,omitzero"`
	Mean    []float32 `cbor:"2,keyasint,omitzero"`
	Inverse []float32 `cbor:"3,keyasint,omitzero"`
	Radius  float32   `cbor:"4,keyasint"`
	Law     []float32 `cbor:"5,keyasint,omitzero"`
}

type regressionWire struct {
	Part       uint8      `cbor:"1,keyasint,omitzero"`
	P          int        `cbor:"2,keyasint,omitzero"`
	Q          int        `cbor:"3,keyasint,omitzero"`
	Categories bool       `cbor:"4,keyasint,omitzero"`
	Scale      []float32  `cbor:"5,keyasint,omitzero"`
	Tolerance  float32    `cbor:"6,keyasint"`
	Nodes      []nodeWire `cbor:"7,keyasint,omitzero"`
	Leaves     []leafWire `cbor:"8,keyasint,omitzero"`
	Cells      *cellsWire `cbor:"9,keyasint,omitzero"`
}

type cellWire struct {
	_    struct{} `cbor:",toarray"`
	Key  uint64
	From int32
	N    int32
	Mean float32
}

type resultWire struct {
	_    struct{} `cbor:",toarray"`
	What int32
	N    int32
}

type cellsWire struct {
	All     []cellWire   `cbor:"1,keyasint,omitzero"`
	Results []resultWire `cbor:"2,keyasint,omitzero"`
	Values  []float32    `cbor:"3,keyasint,omitzero"`
}

func (c *cells) wire() cellsWire {
	return cellsWire{
		saved.Each(c.all, func(c cell) cellWire { return cellWire{Key: c.key, From: c.from, N: c.n, Mean: c.mean} }),
		saved.Each(c.results, func(o result) resultWire { return resultWire{What: o.what, N: o.n} }), c.values,
	}
}

// valid reports whether all indices into the cells of a part are in range, as scoring requires.
func (w *cellsWire) valid(r *regressionWire) bool {
	from := int32(0)
	for _, c := range w.All {
		if c.N < leastCell || c.From < from || int(c.From) >= len(w.Results) {
			return false
		}
		from = c.From
	}
	told := slices.ContainsFunc(w.Results, func(o resultWire) bool { return r.Categories && int(o.What) >= r.Q })
	return len(r.Leaves) == 2*sizes && !told
}

func (w *cellsWire) live() cells {
	return cells{
		saved.Each(w.All, func(c cellWire) cell { return cell{c.Key, c.From, c.N, c.Mean} }),
		saved.Each(w.Results, func(o resultWire) result { return result{o.What, o.N} }), w.Values,
	}
}

func (r *regression) wire() regressionWire {
	return regressionWire{
		Part: uint8(r.part), P: r.p, Q: r.q, Categories: r.categories, Scale: r.scale, Tolerance: r.tolerance,
		Nodes:  saved.Each(r.nodes, func(n node) nodeWire { return nodeWire{Feature: n.feature, Next: n.next, At: n.at} }),
		Leaves: saved.Each(r.leaves, r.leafWire),
		Cells:  saved.Pointer(r.cells, (*cells).wire),
	}
}

func (r *regression) leafWire(l leaf) leafWire {
	w := leafWire{Mean: l.mean, Radius: l.radius, Law: saved.Each(uprooted(l.law, int(l.size)), number)}
	if r.cells == nil {
		w.Beta, w.Inverse = r.betas().numbers(l.beta), triangleOf(r.triangle().numbers(l.inverse))
	}
	return w
}

func (w *regressionWire) live() regression {
	r := regression{
		part: part(w.Part), p: w.P, q: w.Q, categories: w.Categories, scale: w.Scale, tolerance: w.Tolerance,
		nodes: saved.Each(w.Nodes, func(n nodeWire) node { return node{n.Feature, n.Next, n.At} }),
		cells: saved.Pointer(w.Cells, (*cellsWire).live),
	}
	r.leaves = saved.Each(w.Leaves, r.leaf)
	return r
}

func (r *regression) leaf(w leafWire) leaf {
	l, laws := leaf{mean: w.Mean, radius: w.Radius}, max(1, r.laws())
	if size := len(w.Law) / laws; size > 0 {
		l.law, l.size = planted(keys(w.Law[:laws*size]), size), int32(size)
	}
	if r.cells == nil {
		l.beta, l.inverse = r.betas().strips(w.Beta), r.triangle().strips(around(w.Mean, w.Inverse))
	}
	return l.packed()
}

type columnWire struct {
	Mean   float64   `cbor:"1,keyasint"`
	SD     float64   `cbor:"2,keyasint"`
	Sorted []float32 `cbor:"3,keyasint,omitzero"`
	Spread float64   `cbor:"4,keyasint"`
	N      int       `cbor:"5,keyasint"`
}

type pairWire struct {
	_                     struct{} `cbor:",toarray"`
	N, Sum, Square, Cross float32
	Now, Before           float32
	Steps, Changed        float32
}

type meanWire struct {
	_                   struct{} `cbor:",toarray"`
	N, Expected, Actual float32
}

// SignsWire is the wire form of Signs.
type SignsWire struct {
	Pairs    []pairWire `cbor:"1,keyasint,omitzero"`
	Begun    int32      `cbor:"2,keyasint,omitzero"`
	Repeated int32      `cbor:"3,keyasint,omitzero"`
	Means    []meanWire `cbor:"4,keyasint,omitzero"`
}

func (s *Signs) wire() SignsWire {
	return SignsWire{saved.Each(s.Pairs, func(p Pair) pairWire {
		return pairWire{N: p.N, Sum: p.Sum, Square: p.Square, Cross: p.Cross, Now: p.Now, Before: p.Before, Steps: p.Steps, Changed: p.Changed}
	}), s.Begun, s.Repeated, saved.Each(s.Means, func(m Mean) meanWire { return meanWire{N: m.N, Expected: m.Expected, Actual: m.Actual} })}
}

func (w *SignsWire) live() Signs {
	return Signs{saved.Each(w.Pairs, func(p pairWire) Pair {
		return Pair{N: p.N, Sum: p.Sum, Square: p.Square, Cross: p.Cross, Now: p.Now, Before: p.Before, Steps: p.Steps, Changed: p.Changed}
	}), w.Begun, w.Repeated, saved.Each(w.Means, func(m meanWire) Mean { return Mean{m.N, m.Expected, m.Actual} })}
}

// ModelWire is the wire form of a Model.
type ModelWire struct {
	Names       []string         `cbor:"1,keyasint,omitzero"`
	Numbers     int              `cbor:"2,keyasint,omitzero"`
	Categories  []string         `cbor:"3,keyasint,omitzero"`
	Centre      []float32        `cbor:"4,keyasint,omitzero"`
	Inverse     []float32        `cbor:"5,keyasint,omitzero"`
	Regressions []regressionWire `cbor:"6,keyasint,omitzero"`
	Scores      []columnWire     `cbor:"7,keyasint,omitzero"`
	Signs       SignsWire        `cbor:"8,keyasint"`
	Columns     []int32          `cbor:"10,keyasint,omitzero"`
	Width       int              `cbor:"11,keyasint,omitzero"`
	Most        int              `cbor:"12,keyasint,omitzero"`
	States      []float32        `cbor:"13,keyasint,omitzero"`
	Kinds       [][]float32      `cbor:"14,keyasint,omitzero"`
}

// WiresOf returns the wire form of a model of numbers or of discrete states; the other one is nil, and both are nil if
// m is. They are separate so that a build without discrete states can ignore the latter.
func WiresOf(m *Model) (numbers, states *ModelWire) {
	w := saved.Pointer(m, (*Model).Wire)
	if w != nil && m.Vocabulary.tabular() {
		return nil, w
	}
	return w, nil
}

// LiveOf is the inverse of WiresOf.
func LiveOf(numbers, states *ModelWire) *Model {
	if states != nil {
		numbers = states
	}
	return saved.Pointer(numbers, (*ModelWire).Live)
}

// Wire returns the wire form of the model.
func (m *Model) Wire() ModelWire {
	return ModelWire{
		Names: m.Vocabulary.Names, Numbers: m.Vocabulary.Numbers, Categories: m.Vocabulary.Categories,
		Centre: m.centre, Inverse: m.inverse, Regressions: saved.EachOf(m.regressions, (*regression).wire),
		Columns: m.Vocabulary.Columns, Width: m.Vocabulary.Width, Most: m.Most,
		Scores: saved.Each(m.baseline.columns, func(c column) columnWire { return columnWire{c.mean, c.sd, c.sorted, c.spread, c.n} }),
		Signs:  m.baseline.signs.wire(), States: m.Vocabulary.States, Kinds: m.Vocabulary.Kinds,
	}
}

// Live returns the model. It panics if the cells are invalid.
func (w *ModelWire) Live() Model {
	for i := range w.Regressions {
		if r := &w.Regressions[i]; r.Cells != nil && (!r.Cells.valid(r) || len(w.Names) == 0 && (w.States != nil || len(w.Categories) == 0)) {
			panic("factor: cells that belong to no model")
		}
	}
	m := Model{
		Vocabulary: Vocabulary{Names: w.Names, Columns: w.Columns, Width: w.Width, Numbers: w.Numbers, Categories: w.Categories, Kinds: w.Kinds, States: w.States},
		Most:       w.Most, centre: w.Centre, inverse: w.Inverse, regressions: saved.EachOf(w.Regressions, (*regressionWire).live),
	}
	m.layout = m.Vocabulary.layout()
	m.names = m.coordinates()
	m.names = m.names[:min(len(m.names), len(w.Scores)/2)] // older builds did not learn preferences
	m.baseline.columns = saved.Each(w.Scores, func(c columnWire) column { return column{c.N, c.Mean, c.SD, c.Sorted, c.Spread} })
	m.baseline.signs = w.Signs.live()
	return m
}

type scoredWire struct {
	Ordinal   int64     `cbor:"1,keyasint,omitzero"`
	Mean      []float32 `cbor:"2,keyasint,omitzero"`
	Square    []float32 `cbor:"3,keyasint,omitzero"`
	Asked     []int32   `cbor:"4,keyasint,omitzero"`
	Supported []int32   `cbor:"5,keyasint,omitzero"`
}

type spanWire struct {
	From  int64     `cbor:"1,keyasint,omitzero"`
	Signs SignsWire `cbor:"2,keyasint"`
}

// Wire is the wire form of Laws. Bare laws have no model.
type Wire struct {
	Recent []scoredWire `cbor:"1,keyasint,omitzero"`
	Spans  []spanWire   `cbor:"2,keyasint,omitzero"`
	Model  *ModelWire   `cbor:"3,keyasint,omitzero"`
}

// Wire returns the wire form of the laws.
func (l *Laws) Wire() Wire {
	return Wire{
		saved.Each(l.Recent, func(s Scored) scoredWire {
			return scoredWire{s.Ordinal, s.Mean, s.Square, s.Asked[:], s.Supported[:]}
		}),
		saved.Each(l.Spans, func(s Span) spanWire { return spanWire{s.From, s.Signs.wire()} }),
		saved.Pointer(l.Model, (*Model).Wire),
	}
}

// Live returns the laws.
func (w *Wire) Live() Laws {
	return Laws{
		Recent: saved.Each(w.Recent, func(s scoredWire) Scored {
			out := Scored{Ordinal: s.Ordinal, Mean: s.Mean, Square: s.Square}
			copy(out.Asked[:], s.Asked)
			copy(out.Supported[:], s.Supported)
			return out
		}),
		Spans: saved.Each(w.Spans, func(s spanWire) Span { return Span{s.From, s.Signs.live()} }),
		Model: saved.Pointer(w.Model, (*ModelWire).Live),
	}
}

// ToldWire is the wire form of Told.
type ToldWire struct {
	Steps      *ingest.WireSteps `cbor:"1,keyasint,omitzero"`
	Actions    []saved.Count     `cbor:"2,keyasint,omitzero"`
	Terminated bool              `cbor:"3,keyasint,omitzero"`
	Seed       uint64            `cbor:"4,keyasint,omitzero"`
}

// Wire returns the wire form; nil without steps.
func (t *Told) Wire() *ToldWire {
	if t.Steps == nil {
		return nil
	}
	return &ToldWire{(*ingest.WireSteps)(t.Steps), saved.EachOf(t.Actions, saved.CountOf), t.Terminated, t.Seed}
}

// Live returns what the unit reports about its steps.
func (w *ToldWire) Live() Told {
	if w == nil {
		return Told{}
	}
	return Told{(*ingest.Steps)(w.Steps), saved.EachOf(w.Actions, (*saved.Count).Live), w.Terminated, w.Seed}
}
