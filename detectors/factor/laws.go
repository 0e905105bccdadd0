package factor

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// maxCategories is the maximum number of actions that a model distinguishes. All others count as unknown.
const maxCategories = 16

// Vocabulary names the components of steps.
type Vocabulary struct {
	Names      []string // of the components of the observation
	Columns    []int32  // indices of the components in a step with additional ones; nil if steps have no others
	Width      int      // number of components of a step, if it has additional ones
	Numbers    int      // number of components of a numeric action
	Categories []string // of the actions, the most common first

	// Kinds holds the numerals of the most common values of each label. Each is a component of the observation, see
	// InContext.
	Kinds [][]float32

	// States holds the sorted observations, one after the other, if they are discrete states; otherwise it is nil.
	States []float32
}

// layout returns the number of components of each kind.
func (v *Vocabulary) layout() Layout {
	return Layout{Observations: len(v.Names), Numbers: v.Numbers, Categories: len(v.Categories)}
}

// Told is what a unit reports about its steps.
type Told struct {
	Steps      *ingest.Steps
	Actions    []ingest.Count // the actions that the categories of the steps refer to
	Terminated bool           // whether the last step ended the episode
	Seed       uint64
}

// Of returns what a unit reports about its steps; the zero value if it has none.
func Of(u *ingest.Unit) Told {
	if u.Steps == nil || !u.Steps.Sound(len(u.Actions)) || len(u.Steps.At) == 0 {
		return Told{}
	}
	h := fnv.New64a()
	for _, s := range []string{u.Agent, "\x00", u.Episode} {
		_, _ = h.Write([]byte(s)) // it never fails
	}
	seed := ingest.Mix(h.Sum64() + uint64(u.EndTS))
	return Told{u.Steps, slices.Clone(u.Actions), u.End == ingest.EndTerminated, seed}
}

// pieceSteps is the number of consecutive steps that are removed together.
const pieceSteps = 4

// Thinned returns t with fewer steps if they take more than the given number of bytes. It removes pieces of consecutive
// steps evenly, but keeps the first and the last one. For these two, 4 KiB suffice for any kind of steps.
func (t Told) Thinned(bytes int) Told {
	s := t.Steps
	if s == nil || s.Bytes() <= bytes {
		return t
	}
	var pieces []int // indices of their first steps
	for i, n := range s.At {
		if i == 0 || n != s.At[i-1]+1 || i-pieces[len(pieces)-1] == pieceSteps {
			pieces = append(pieces, i)
		}
	}
	out := &ingest.Steps{Names: s.Names, Numbers: s.Numbers}
	fixed := out.Bytes()
	size := pieceSteps * (s.Bytes() - fixed) / len(s.At)
	most := max(2, (bytes-fixed)/size)
	if most >= len(pieces) {
		return t
	}
	pieces = append(pieces, len(s.At))
	for p := range most {
		at := p * (len(pieces) - 2) / (most - 1)
		from, to := pieces[at], pieces[at+1]
		out.At = append(out.At, s.At[from:to]...)
		out.Rows = append(out.Rows, s.Rows[from*s.Width():to*s.Width()]...)
		if s.Numbers == 0 {
			out.Actions = append(out.Actions, s.Actions[from:to]...)
		}
	}
	t.Steps = out
	return t
}

// NumericShare is the share of units with a non-integral number above which actions are judged as numbers. A continuous
// action that is clipped is integral most of the time.
const NumericShare = .05

// vocabularyOf returns the vocabulary of most units' steps, without the calendar.
func vocabularyOf(all []Told) Vocabulary {
	names := mostNames(all)
	kinds := kindsOf(names, all)
	v := Vocabulary{Names: withKinds(names, kinds), Kinds: kinds}.withoutCalendar()
	counts, units, numeric := map[string]int64{}, 0, 0
	for i := range all {
		s := all[i].Steps
		if s == nil {
			continue
		}
		if units++; s.Numbers > 0 {
			v.Numbers = cmp.Or(v.Numbers, s.Numbers)
			numeric++
		}
		for _, a := range all[i].Actions {
			counts[a.Name] += a.N
		}
	}
	if float64(numeric) > NumericShare*float64(units) {
		return v
	}
	v.Numbers = 0
	for name := range counts {
		v.Categories = append(v.Categories, name)
	}
	slices.SortFunc(v.Categories, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	v.Categories = v.Categories[:min(len(v.Categories), maxCategories)]
	return v
}

// mostNames returns the components of the observation that most units with steps have, since short episodes can have
// components that the others lack. Units that observe only the calendar do not count.
func mostNames(all []Told) (most []string) {
	units := map[string]int{}
	measures := func(name string) bool { return !ingest.IsCalendar(name) } // none of a decision without observations
	for i := range all {
		s := all[i].Steps
		if s == nil || !slices.ContainsFunc(s.Names, measures) {
			continue
		}
		names := strings.Join(s.Names, "\x00")
		if units[names]++; units[names] > units[strings.Join(most, "\x00")] {
			most = s.Names
		}
	}
	return most
}

// withoutCalendar returns the vocabulary without the components that depend on the date and time: their values differ
// each day.
func (v Vocabulary) withoutCalendar() Vocabulary {
	if !slices.ContainsFunc(v.Names, ingest.IsCalendar) {
		return v
	}
	var columns []int32
	for i, name := range v.Names {
		if !ingest.IsCalendar(name) {
			columns = append(columns, int32(i))
		}
	}
	return v.of(columns)
}

// of returns the vocabulary with only the given components, in order.
func (v Vocabulary) of(components []int32) Vocabulary {
	out := v
	out.Columns, out.Names = make([]int32, len(components)), nil
	if v.Columns == nil {
		out.Width = len(v.Names)
	}
	for i, c := range components {
		out.Names = append(out.Names, v.Names[c])
		if out.Columns[i] = c; v.Columns != nil {
			out.Columns[i] = v.Columns[c]
		}
	}
	return out
}

// episode returns the steps of a unit; nil if they do not match the vocabulary.
func (v *Vocabulary) episode(t Told) Episode {
	s := v.chosen(v.expanded(t.Steps))
	if s == nil || !slices.Equal(s.Names, v.Names) {
		return nil
	}
	if v.Numbers == 1 && s.Numbers == 0 {
		s = withNumbers(s, t.Actions)
	}
	if s == nil || s.Numbers != v.Numbers {
		return nil
	}
	categories := make([]int, len(t.Actions))
	for i, a := range t.Actions {
		categories[i] = slices.Index(v.Categories, a.Name)
	}
	d := len(v.Names)
	e := make(Episode, len(s.At))
	for i := range e {
		row := s.Row(i)
		e[i] = Step{
			Number: s.At[i], Observation: row[:d:d], Action: row[d : d+s.Numbers], Reward: row[d+s.Numbers],
			Key: ingest.Mix(t.Seed + uint64(i)*ingest.MixStep),
		}
		if s.Numbers == 0 {
			e[i].Category = categories[s.Actions[i]]
		}
		if i+1 < len(e) && s.At[i+1] == s.At[i]+1 {
			e[i].Next = s.Row(i + 1)[:d:d]
		}
	}
	e[len(e)-1].Terminated = t.Terminated
	return e
}

// withNumbers returns steps whose categorical actions are replaced by the numbers that they spell; nil if any is not a
// number.
func withNumbers(s *ingest.Steps, actions []ingest.Count) *ingest.Steps {
	out, d := &ingest.Steps{Names: s.Names, Numbers: 1, At: s.At}, len(s.Names)
	out.Rows = make([]float32, 0, len(s.At)*out.Width())
	for i := range s.At {
		x, err := strconv.ParseFloat(actions[s.Actions[i]].Name, 32)
		if err != nil || !ingest.Single(x) {
			return nil
		}
		row := s.Row(i)
		out.Rows = append(append(append(out.Rows, row[:d]...), float32(x)), row[d:]...)
	}
	return out
}

// chosen returns steps with only the components of the vocabulary; nil if the steps have a different number of
// components.
func (v *Vocabulary) chosen(s *ingest.Steps) *ingest.Steps {
	if s == nil || v.Columns == nil {
		return s
	}
	if len(s.Names) != v.Width {
		return nil
	}
	out := &ingest.Steps{Numbers: s.Numbers, At: s.At, Actions: s.Actions}
	for _, c := range v.Columns {
		out.Names = append(out.Names, s.Names[c])
	}
	out.Rows = make([]float32, 0, len(s.At)*out.Width())
	for i := range s.At {
		row := s.Row(i)
		for _, c := range v.Columns {
			out.Rows = append(out.Rows, row[c])
		}
		out.Rows = append(out.Rows, row[v.Width:]...)
	}
	return out
}

// narrowed returns the vocabulary with as many components of the observation as memory and time permit. It prefers
// components whose changes are best explained by the rest of a step, since only these reveal that the dynamics have
// moved.
func (v Vocabulary) narrowed(episodes []Episode, bytes int) Vocabulary {
	l := v.layout()
	for l.Observations > 1 && (keptBytes(l) > bytes*2/3 || l.features() > maxFeatures) {
		l.Observations--
	}
	if l.Observations == len(v.Names) {
		return v
	}
	explained := explainedChanges(v.layout(), episodes)
	order := make([]int32, len(v.Names))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(explained[b], explained[a]) })
	kept := order[:l.Observations]
	slices.Sort(kept)
	return v.of(kept)
}

// Laws holds the laws of a group's steps, and the scores of its most recent units. Exported fields are saved.
type Laws struct {
	Model  *Model // nil until a baseline with steps is frozen; read-only
	Recent []Scored
	Spans  []Span
}

// Scored holds the scores of a unit.
type Scored struct {
	Ordinal      int64
	Mean, Square []float32
	Asked        [Factors]int32
	Supported    [Factors]int32
}

// Span holds the signs of the units from an ordinal on.
type Span struct {
	From  int64
	Signs Signs
}

// The number of recent units that are kept, and the number of units per span.
const (
	recentUnits = 200
	spanUnits   = 10
)

// Freeze learns the laws from the units of a baseline. each is the maximum memory for the steps of a unit, and bytes
// that for the laws together with the scores of later units; 0 means no laws.
func (l *Laws) Freeze(units []Told, each, bytes int) {
	*l = Laws{}
	if bytes == 0 {
		return
	}
	v := vocabularyOf(units)
	episodes := v.episodes(units)
	if narrow := v.narrowed(episodes, bytes); len(narrow.Names) < len(v.Names) {
		v, episodes = narrow, narrow.episodes(units)
	}
	v.States = v.discrete(episodes)
	if l.Model = Learn(v, episodes, bytes); l.Model != nil {
		l.Model.Most = each
	}
}

// episodes returns the steps of the units that match the vocabulary.
func (v *Vocabulary) episodes(units []Told) []Episode {
	var out []Episode
	for i := range units {
		if e := v.episode(units[i]); e != nil {
			out = append(out, e)
		}
	}
	return out
}

// Observe adds the scores of a unit. u is nil if it has none.
func (l *Laws) Observe(u *Unit, ordinal int64) {
	if u == nil {
		return
	}
	if len(l.Recent) == recentUnits {
		l.Recent = slices.Delete(l.Recent, 0, 1)
	}
	l.Recent = append(l.Recent, Scored{ordinal, u.Mean, u.Square, u.Asked, u.Supported})
	if n := len(l.Spans); n == 0 || ordinal >= l.Spans[n-1].From+spanUnits {
		if n == recentUnits/spanUnits {
			l.Spans = slices.Delete(l.Spans, 0, 1)
		}
		l.Spans = append(l.Spans, Span{From: ordinal})
	}
	l.Spans[len(l.Spans)-1].Signs.sum(&u.Signs)
}

// Support returns the share of the most recent steps that a law can judge because the baseline includes similar ones; 1
// until there are enough units.
func (l *Laws) Support(f Factor) float64 {
	const newest, least = 50, 20
	units := l.Recent[max(0, len(l.Recent)-newest):]
	asked, supported := int32(0), int32(0)
	for i := range units {
		asked += units[i].Asked[f]
		supported += units[i].Supported[f]
	}
	if len(units) < least || asked == 0 {
		return 1
	}
	return float64(supported) / float64(asked)
}

// Judge compares the units since an ordinal, at most the most recent 200, with the baseline; nil if there are none.
func (l *Laws) Judge(since int64) *Verdict {
	if l.Model == nil {
		return nil
	}
	var units []Scored
	for i := range l.Recent {
		if l.Recent[i].Ordinal >= since {
			units = append(units, l.Recent[i])
		}
	}
	if len(units) == 0 {
		return nil
	}
	var s Signs
	for i := range l.Spans {
		if l.Spans[i].From >= since || i+1 < len(l.Spans) && l.Spans[i+1].From > since {
			s.sum(&l.Spans[i].Signs)
		}
	}
	v := l.Model.judge(units, &s)
	return &v
}

// Bare returns the laws without the model, which only changes with the baseline.
func (l *Laws) Bare() Laws { return Laws{Recent: l.Recent, Spans: l.Spans} }
