package telemetry

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Prediction: a producer writes the same members in the same order again and again, and only some of the values change.
// So the predictor keeps templates of records that the decoder has read. A template alternates between runs of bytes,
// which a record must repeat exactly, and values, which may differ. A record that fits needs no look-up of keys, no
// interning of names, and no checks of what the bytes of a run mean.
//
// The decoder stays as it is: it reads every record that fits no template, and is what the predictor is compared with.
// What makes both agree is how a template comes about. While the decoder reads a record, it notes in a lesson which
// bytes were which value; these become the values of the template, and all other bytes its runs. A run may hold
// anything the decoder has accepted: white space, null, members that are not wanted. A value is read by the method that
// the decoder would call there, or by a faster one for the most common notations. If one of them fails, or a run
// differs, nothing is concluded about the record: the decoder reads it from its beginning, and accepts or refuses it.
//
// Strings and truth values begin as part of a run. When a record differs from a template in such values only, they
// become values of the template that may differ from then on.
//
// Where a record departs from one template, it may follow another that has been the same up to there: reading goes on
// in that one. This works because an event after so many bytes of a record depends on these bytes alone.
//
// Of a mapped record, a template stands for the walk, with the fields that have a value; what is not in the record, such
// as defaults, follows in both cases.

// The bounds of what a predictor keeps.
const (
	maxTemplates      = 16
	maxTemplateRecord = 1 << 13 // bytes of a record that becomes a template
	maxTemplateValues = 512     // of a record, also those that it does not note; far below MaxValues, so that no record that fits has too many
)

// predictor reads records that fit a template. It allocates nothing but for what it learns. It takes 2 MiB at most, and
// 100 kB with 16 templates of 25 values.
type predictor struct {
	templates []template
	shared    [maxTemplates][maxTemplates]int // how many steps two templates have in common at their beginnings
	last      int                             // template of the record before
	oldest    int                             // template to replace
	governor  governor
	lesson    lesson
	minute    minute
}

// template is a record with values that may differ.
type template struct {
	record []byte  // as learned
	values []noted // of the record, in order
	steps  []step  // made of them
	next   int     // template of the record that followed this one the last time

	seen, decided []bool // of a mapped record: fields that have a value, and conditions that are met
}

// step is a run of bytes and the value that follows it. The last step has no value: its run ends the record.
type step struct {
	run      []byte  // part of the record of the template
	repeated []noted // values in the run
	noted
	last string // value of the record before, if the field is a name that was written without escapes
}

// next appends the event of the record of d to dst, if a template fits. If not, it leaves dst as it is, and may have d
// note a lesson.
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

// wanted reports whether to predict the record of d.
func (p *predictor) wanted(d *decoder) bool {
	return p.governor.on() && len(d.rec) <= d.options.MaxRecord
}

// predict reads the record of d into an empty event, if a template fits. If not, the event has to be emptied again, and
// d may note a lesson.
func (p *predictor) predict(d *decoder, ev *ingest.Event) (fits bool) {
	fits = p.read(d, ev)
	p.governor.count(fits)
	if !fits && len(d.rec) <= maxTemplateRecord {
		p.lesson.begin(ev)
		d.lesson = &p.lesson
	}
	return fits
}

// read reads the record by the template that followed last time, and by others from where it departs from that.
func (p *predictor) read(d *decoder, ev *ingest.Event) bool {
	if len(p.templates) == 0 {
		return false
	}
	i := p.templates[p.last].next
	d.at, d.depth, d.values, d.deep = 0, 0, 0, 0
	departed := 0 // set of templates that the record has departed from
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

// alike returns a template that has the first k steps in common with i, or -1.
func (p *predictor) alike(i, k, departed int) int {
	for j := range p.templates {
		if departed&(1<<j) == 0 && p.shared[i][j] >= k {
			return j
		}
	}
	return -1
}

// step reads a run and its value. After a failure, the event may have values of the run: whichever template fits has
// the same bytes, and so the same values.
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

// follow remembers that a record of the template followed the one before.
func (p *predictor) follow(i int) {
	p.templates[p.last].next = i
	p.last = i
}

// learn ends the lesson of a record that the decoder has read as ev, nil if it was refused. It makes a template of the
// record, or lets one fit that differs only in values, and returns it; nil if the record cannot be one.
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

// common returns how many steps are the same at the beginnings of two templates.
func common(a, b []step) int {
	for k := range min(len(a), len(b)) {
		x, y := &a[k], &b[k]
		if x.field != y.field || x.index != y.index || x.name != y.name || string(x.run) != string(y.run) {
			return k
		}
	}
	return min(len(a), len(b))
}

// make makes the template that of a record. It reuses the memory of the template.
func (t *template) make(rec []byte, values []noted, ev *ingest.Event) {
	t.record, t.values = append(t.record[:0], rec...), append(t.values[:0], values...)
	for i := range t.values {
		t.values[i].keep(ev)
	}
	t.compile()
}

// compile makes the steps of the values that may differ.
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

// sameBut reports whether a record differs from that of the template in values only.
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

// widen lets the template fit a record that differs from it in values only.
func (t *template) widen(rec []byte, values []noted) {
	for i := range values {
		a, b := &t.values[i], &values[i]
		a.varies = a.varies || string(t.record[a.from:a.to]) != string(rec[b.from:b.to])
	}
	t.compile()
}

// lesson is what the decoder notes about a record that fits no template.
type lesson struct {
	ev      *ingest.Event // that is read into
	values  []noted
	members uint32 // set of the fields that are members and were read
	spoiled bool   // the record must not become a template
}

// noted is a value of a record.
type noted struct {
	from, to int // in the record
	index    int // in the list of the field; of a time in a unit, the exponent of that
	field    field
	scale    float64 // of a mapping, for a number; 0 for none
	varies   bool    // from record to record
	truth    bool    // in a template: the value, if it is one
	name     string  // in a template: of the component or label
	text     string  // in a template: the value, if it is a string that may repeat
}

func (l *lesson) begin(ev *ingest.Event) {
	*l = lesson{ev: ev, values: l.values[:0]}
}

// member notes that a member of the record was read. It returns true.
func (l *lesson) member(f field, rec []byte, from, to int) bool {
	if f == unknown {
		return true // its parts were noted
	}
	if l.members&(1<<f) != 0 {
		l.spoiled = true // a repeated member: what it had in common with the first is not known
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

// has reports whether a name was repeated: places in a list grow, if not. Values of one list follow one another.
func (l *lesson) has(f field, index int) bool {
	for _, v := range slices.Backward(l.values) {
		if v.field == f {
			return index <= v.index
		}
	}
	return false
}

// note adds a value of the record, which ends where the decoder is, to a lesson. It returns true.
func (d *decoder) note(f field, index, from int) bool {
	if d.lesson != nil {
		d.lesson.add(f, index, from, d.at)
	}
	return true
}

// noteScale adds to the value noted last what it is multiplied by.
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

// The governor tries templates on governed records at a time, and then pauses if fewer than enough of them fit: to try
// and to learn costs more than it saves where records have many shapes, or members in random order.
const (
	governed  = 256
	enough    = governed * 3 / 4
	minPause  = 1 << 11
	pauseMost = 1 << 16
)

// governor decides whether to predict.
type governor struct {
	tried, fitted int
	paused        int // records still to leave to the decoder
	pause         int // length of the last pause, 0 if enough records have fitted since
}

// on reports whether to predict the next record.
func (g *governor) on() bool {
	if g.paused > 0 {
		g.paused--
		return false
	}
	return true
}

// discount takes back the last result: it was of a record to leave out, which no template can fit.
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
