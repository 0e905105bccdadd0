package telemetry

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Prediction: a producer writes the same members in the same order in every record, and only some of the values change.
// Therefore, the predictor keeps templates of records that the decoder has read. A template alternates between runs of
// bytes, which a record must repeat exactly, and values, which may differ. A record that fits needs no lookup of keys,
// no interning of names, and no parsing of the bytes in a run.
//
// The decoder reads every record that fits no template, and is the reference for the predictor. Both agree because of
// how a template is made. While the decoder reads a record, it notes in a lesson which bytes were which value. These
// bytes become the values of the template, and all other bytes its runs. A run may contain anything that the decoder
// has accepted: white space, null, or members that are not used. A value is read by the same method that the decoder
// would call, or by a faster one for the most common notations. If reading a value fails, or a run differs, this says
// nothing about the record: the decoder reads it from its beginning, and accepts or refuses it.
//
// Strings and booleans are part of a run at first. When a record differs from a template only in such values, they
// become values of the template that may differ from then on.
//
// If a record departs from a template, it may fit another one that is the same up to this point. Reading then continues
// with that template. This works because the state of an event depends only on the bytes of the record that have been
// read.
//
// For a mapped record, a template replaces the walk, including which fields have a value. Values that are not in the
// record, such as defaults, are added in both cases.

// The limits of a predictor.
const (
	maxTemplates      = 16
	maxTemplateRecord = 1 << 13 // maximum number of bytes of a record that becomes a template
	maxTemplateValues = 512     // values of such a record, including unnoted ones; far below MaxValues, so no record that fits can exceed it
)

// predictor reads records that fit a template. It allocates only when it learns. It takes at most 2 MiB, and 100 kB
// with 16 templates of 25 values.
type predictor struct {
	templates []template
	shared    [maxTemplates][maxTemplates]int // number of leading steps that two templates have in common
	last      int                             // template of the previous record
	oldest    int                             // template to replace next
	governor  governor
	lesson    lesson
	minute    minute
}

// template is a record in which some values may differ.
type template struct {
	record []byte  // as learned
	values []noted // of the record, in order
	steps  []step  // compiled from values
	next   int     // template of the record that last followed a record of this one

	seen, decided []bool // for a mapped record: the fields that have a value, and the conditions that have been tested
}

// step is a run of bytes followed by a value. The last step has no value, because its run ends the record.
type step struct {
	run      []byte  // part of the template's record
	repeated []noted // values within the run
	noted
	last string // value in the previous record, if the field is interned and was written without escapes
}

// next appends the event of d's record to dst if a template fits. Otherwise, it leaves dst unchanged, and may start a
// lesson in d.
func (p *predictor) next(d *decoder, dst []ingest.Event, pos ingest.Position) (events []ingest.Event, fits bool) {
	if !p.wanted(d) {
		return dst, false
	}
	events, ev := ingest.NextEvent(dst, pos)
	if p.predict(d, ev) {
		return events, true
	}
	return events[:len(events)-1], false
}

// wanted reports whether to try prediction for d's record.
func (p *predictor) wanted(d *decoder) bool {
	return p.governor.on() && len(d.rec) <= d.options.MaxRecord
}

// predict reads d's record into an empty event if a template fits. Otherwise, the caller must reset the event, and d
// may have a lesson.
func (p *predictor) predict(d *decoder, ev *ingest.Event) (fits bool) {
	fits = p.read(d, ev)
	p.governor.count(fits)
	if !fits && len(d.rec) <= maxTemplateRecord {
		p.lesson.begin(ev)
		d.lesson = &p.lesson
	}
	return fits
}

// read reads the record with the template that followed last time. Where the record departs from it, read continues
// with other templates.
func (p *predictor) read(d *decoder, ev *ingest.Event) bool {
	if len(p.templates) == 0 {
		return false
	}
	i := p.templates[p.last].next
	d.at, d.depth, d.values, d.deep = 0, 0, 0, 0
	departed := 0 // bit set of the templates from which the record has departed
	for k := 0; ; {
		t := &p.templates[i]
		at := d.at
		for ; k < len(t.steps) && p.step(d, ev, &t.steps[k]); k++ {
			at = d.at
		}
		if k == len(t.steps) {
			break
		}
		d.at = at
		departed |= 1 << i
		if i = p.alike(i, k, departed); i < 0 {
			return false
		}
	}
	if d.at != len(d.rec) {
		return false
	}
	p.follow(i)
	return true
}

// alike returns a template that has its first k steps in common with template i, or -1.
func (p *predictor) alike(i, k, departed int) int {
	for j := range p.templates {
		if departed&(1<<j) == 0 && p.shared[i][j] >= k {
			return j
		}
	}
	return -1
}

// step reads a run and its value. After a failure, the event may have values from the run. This does no harm, because
// any template that fits has the same bytes there, and therefore the same values.
func (p *predictor) step(d *decoder, ev *ingest.Event, s *step) bool {
	end := d.at + len(s.run)
	if end > len(d.rec) || string(d.rec[d.at:end]) != string(s.run) {
		return false
	}
	d.at = end
	for k := range s.repeated {
		s.repeated[k].set(ev)
	}
	return p.value(d, ev, s)
}

// follow records that a record of template i followed the previous record.
func (p *predictor) follow(i int) {
	p.templates[p.last].next = i
	p.last = i
}

// learn ends the lesson for a record that the decoder has read as ev, or refused if ev is nil. It makes a template from
// the record, or extends one that differs from it only in values, and returns this template. It returns nil if the
// record is not suitable.
func (p *predictor) learn(d *decoder, ev *ingest.Event) *template {
	l := d.lesson
	d.lesson, l.ev = nil, nil // the batch may be freed before the next lesson
	if ev == nil || l.spoiled || d.values > maxTemplateValues {
		return nil
	}
	i := slices.IndexFunc(p.templates, func(t template) bool { return t.sameBut(d.rec, l.values) })
	switch {
	case i >= 0:
		p.templates[i].widen(d.rec, l.values)
	case len(p.templates) < maxTemplates:
		i = len(p.templates)
		p.templates = append(p.templates, template{})
		p.templates[i].make(d.rec, l.values, ev)
	default:
		i = p.oldest
		p.oldest = (i + 1) % maxTemplates
		p.templates[i].make(d.rec, l.values, ev)
	}
	for j := range p.templates {
		n := common(p.templates[i].steps, p.templates[j].steps)
		p.shared[i][j], p.shared[j][i] = n, n
	}
	p.follow(i)
	return &p.templates[i]
}

// common returns the number of leading steps that two templates have in common.
func common(a, b []step) int {
	for k := range min(len(a), len(b)) {
		x, y := &a[k], &b[k]
		if x.field != y.field || x.index != y.index || x.name != y.name || string(x.run) != string(y.run) {
			return k
		}
	}
	return min(len(a), len(b))
}

// make sets the template to that of a record. It reuses the template's memory.
func (t *template) make(rec []byte, values []noted, ev *ingest.Event) {
	t.record, t.values = append(t.record[:0], rec...), append(t.values[:0], values...)
	for i := range t.values {
		t.values[i].keep(ev)
	}
	t.compile()
}

// compile builds the steps from the values that may differ.
func (t *template) compile() {
	t.steps = t.steps[:0]
	at, first := 0, 0
	for i := range t.values {
		if v := &t.values[i]; v.varies {
			t.steps = append(t.steps, step{run: t.record[at:v.from], repeated: t.values[first:i], noted: *v})
			at, first = v.to, i+1
		}
	}
	t.steps = append(t.steps, step{run: t.record[at:], repeated: t.values[first:]})
}

// sameBut reports whether a record differs from the template's record only in values.
func (t *template) sameBut(rec []byte, values []noted) bool {
	if len(values) != len(t.values) {
		return false
	}
	mine, its := 0, 0
	for i := range values {
		a, b := &t.values[i], &values[i]
		if a.field != b.field || a.index != b.index || string(t.record[mine:a.from]) != string(rec[its:b.from]) {
			return false
		}
		mine, its = a.to, b.to
	}
	return string(t.record[mine:]) == string(rec[its:])
}

// widen changes the template so that it also fits a record that differs only in values.
func (t *template) widen(rec []byte, values []noted) {
	for i := range values {
		a, b := &t.values[i], &values[i]
		a.varies = a.varies || string(t.record[a.from:a.to]) != string(rec[b.from:b.to])
	}
	t.compile()
}

// lesson contains the decoder's notes about a record that fits no template.
type lesson struct {
	ev      *ingest.Event // event being filled
	values  []noted
	members uint32 // bit set of the members that have been read
	spoiled bool   // whether the record must not become a template
}

// noted is a value of a record.
type noted struct {
	from, to int // in the record
	index    int // position in the field's list; for a time in a unit, the unit's exponent
	field    field
	scale    float64 // factor from a mapping; 0 if there is none
	varies   bool    // whether it may differ between records
	truth    bool    // in a template: the value of a boolean
	name     string  // in a template: name of the component or label
	text     string  // in a template: the value of a string that may repeat
}

func (l *lesson) begin(ev *ingest.Event) {
	*l = lesson{ev: ev, values: l.values[:0]}
}

// member notes that a member of the record was read. It always returns true.
func (l *lesson) member(f field, rec []byte, from, to int) bool {
	if f == unknown {
		return true // its parts have been noted
	}
	if l.members&(1<<f) != 0 {
		l.spoiled = true // repeated member, whose effect on the first one is unknown
	}
	l.members |= 1 << f
	if c := rec[from]; c != '{' && c != '[' {
		l.add(f, 0, from, to)
	}
	return true
}

// add notes a value.
func (l *lesson) add(f field, index, from, to int) {
	n := len(l.values)
	if n == maxTemplateValues || n > 0 && from < l.values[n-1].to || f.listed() && l.has(f, index) {
		l.spoiled = true
		return
	}
	l.values = append(l.values, noted{from: from, to: to, field: f, index: index, varies: !f.constant()})
}

// has reports whether a name in a list was repeated. Without repetitions, positions increase. The values of a list are
// consecutive.
func (l *lesson) has(f field, index int) bool {
	for _, v := range slices.Backward(l.values) {
		if v.field == f {
			return index <= v.index
		}
	}
	return false
}

// note adds a value of the record, which starts at from and ends at the current position, to the lesson. It always
// returns true.
func (d *decoder) note(f field, index, from int) bool {
	if d.lesson != nil {
		d.lesson.add(f, index, from, d.at)
	}
	return true
}

// noteScale sets the scale of the last noted value.
func (d *decoder) noteScale(scale float64) {
	if d.lesson == nil || scale == 1 || len(d.lesson.values) == 0 {
		return
	}
	d.lesson.values[len(d.lesson.values)-1].scale = scale
}

// noteComponent notes the component that was last added to or changed in a list.
func (d *decoder) noteComponent(list *[]ingest.Value, index, from int) {
	if d.lesson == nil {
		return
	}
	switch ev := d.lesson.ev; list {
	case &ev.Observation:
		d.note(observations, index, from)
	case &ev.RewardComponents:
		d.note(rewardComponents, index, from)
	case &ev.Outcomes:
		d.note(outcomes, index, from)
	}
}

// The governor tries templates on governed records, and then pauses if fewer than enough of them fit. If records have
// many different structures, or members in random order, trying and learning take more time than they save.
const (
	governed  = 256
	enough    = governed * 3 / 4
	minPause  = 1 << 11
	pauseMost = 1 << 16
)

// governor decides whether to use prediction.
type governor struct {
	tried, fitted int
	paused        int // number of records that are still left to the decoder
	pause         int // length of the last pause; 0 if enough records have fitted since
}

// on reports whether to predict the next record.
func (g *governor) on() bool {
	if g.paused > 0 {
		g.paused--
		return false
	}
	return true
}

// discount ignores the last result. It was for a skipped record, which cannot fit a template.
func (g *governor) discount() { g.tried = max(g.tried-1, 0) }

// count adds the result of a prediction.
func (g *governor) count(fits bool) {
	if g.tried++; fits {
		g.fitted++
	}
	if g.tried < governed {
		return
	}
	if g.fitted >= enough {
		g.pause = 0
	} else {
		g.pause = min(max(2*g.pause, minPause), pauseMost)
	}
	g.paused, g.tried, g.fitted = g.pause, 0, 0
}
