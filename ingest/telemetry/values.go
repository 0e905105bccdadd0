package telemetry

import (
	"math"
	"slices"
	"strconv"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// The functions in this file read the values of members by type. They follow the conventions of json.go.

// text reads a string, or a number as written. The text is valid until the next string is read.
func (d *decoder) text() (text []byte, ok bool) {
	start := d.at
	switch {
	case d.peek() == '"':
		if text, ok = d.str(); !ok {
			return nil, false
		}
	case d.atNumeral():
		n, ok := d.numeral()
		if !ok {
			return nil, false
		}
		text, d.nul = n.text, false
	default:
		return nil, d.wrongType("a string or a number")
	}
	return text, d.keepable(start, text)
}

// keepable reports whether the last string read may be part of an event.
func (d *decoder) keepable(start int, text []byte) bool {
	switch {
	case len(text) > ingest.MaxString:
		return d.fail(ingest.ReasonStringTooLong, start, "a string is longer than "+strconv.Itoa(ingest.MaxString)+" bytes")
	case d.nul:
		return d.fail(ingest.ReasonNUL, start, `a string contains \u0000`)
	}
	return true
}

func (d *decoder) name(dst *string) bool {
	text, ok := d.text()
	if ok {
		*dst = d.names.Get(text)
	}
	return ok
}

func (d *decoder) id(dst *string) bool {
	text, ok := d.text()
	if ok {
		*dst = d.arena.Hold(text)
	}
	return ok
}

// memberName reads the name of a member that becomes part of the event.
func (d *decoder) memberName() (name string, ok bool) {
	start := d.at
	text, ok := d.key()
	if !ok || !d.keepable(start, text) {
		return "", false
	}
	return d.names.Get(text), true
}

// partName reads the name of a member of a named value, and prepends the name of that value and a dot. kept is false if
// the result is too long or contains a NUL.
func (d *decoder) partName(within string) (name string, kept, ok bool) {
	text, ok := d.key()
	if !ok || d.nul || len(within)+1+len(text) > ingest.MaxString {
		return "", false, ok
	}
	return d.names.Get(joined(d, within, text)), true, true
}

// joined returns the name of a part of a named value. It is valid until the next call.
func joined[text string | []byte](d *decoder, within string, part text) []byte {
	d.path = append(append(append(d.path[:0], within...), '.'), part...)
	return d.path
}

func (d *decoder) boolean(dst *bool) bool {
	switch {
	case d.peek() == 't' && d.literal("true"):
		*dst = true
		return true
	case d.peek() == 'f' && d.literal("false"):
		*dst = false
		return true
	}
	return d.wrongType("true or false")
}

// count reads a non-negative integer.
func (d *decoder) count(dst *int64) bool {
	start := d.at
	if !d.atNumeral() {
		return d.wrongType("a whole number")
	}
	n, ok := d.numeral()
	if !ok {
		return false
	}
	i, ok := n.int()
	if x := n.float(); !ok && x != math.Trunc(x) {
		return d.fail(ingest.ReasonWrongType, start, "expected a whole number")
	}
	if !ok || i < 0 {
		return d.fail(ingest.ReasonOutOfRange, start, "expected a whole number from 0 to 2^63-1")
	}
	*dst = i
	return true
}

// number reads a number, NaN or an infinity. The latter two may be quoted.
func (d *decoder) number(dst *float64) bool {
	isNumber, ok := d.tryNumber(dst)
	return ok && (isNumber || d.wrongType("a number"))
}

// tryNumber reads a number if one comes next, and nothing otherwise.
func (d *decoder) tryNumber(dst *float64) (isNumber, ok bool) {
	switch {
	case d.atNumeral():
		n, ok := d.numeral()
		if ok {
			*dst = n.float()
		}
		return true, ok
	case d.peek() == '"':
		return d.quotedWord(dst)
	}
	x, isWord := d.word()
	if isWord {
		*dst = x
	}
	return isWord, true
}

// quotedWord reads a quoted NaN or infinity. It reads nothing if the string is something else.
func (d *decoder) quotedWord(dst *float64) (isNumber, ok bool) {
	start := d.at
	text, ok := d.str()
	if !ok {
		return false, false
	}
	x, isWord := nonFinite(text)
	if !isWord {
		d.at = start
		return false, true
	}
	*dst = x
	return true, true
}

// component reads a number, or a boolean as 1 or 0. Other values are skipped if ignoring is set, and refused otherwise.
func (d *decoder) component(dst *float64, ignoring bool) (isNumber, ok bool) {
	switch {
	case d.peek() == 't' && d.literal("true"):
		*dst = 1
		return true, true
	case d.peek() == 'f' && d.literal("false"):
		*dst = 0
		return true, true
	}
	if isNumber, ok = d.tryNumber(dst); isNumber || !ok {
		return isNumber, ok
	}
	if ignoring {
		return false, d.skip()
	}
	return false, d.wrongType("a number")
}

// counted counts a number towards MaxValues.
func (d *decoder) counted() bool {
	if d.values == ingest.MaxValues {
		return d.fail(ingest.ReasonTooManyValues, d.at, "more than "+strconv.Itoa(ingest.MaxValues)+" numbers")
	}
	d.values++
	return true
}

// components reads an object of numbers. In an observation, values may be nested, and values that are not numbers are
// skipped.
func (d *decoder) components(dst *[]ingest.Value, observation bool) bool {
	if d.peek() != '{' {
		return d.wrongType("an object of numbers")
	}
	d.begin(dst)
	return d.numbers(dst, observation)
}

// begin empties a list, unless the mapping sets some of its values.
func (d *decoder) begin(list *[]ingest.Value) {
	if d.own == nil {
		*list = (*list)[:0]
	}
	clear(d.index)
}

// numbers reads an object of numbers.
func (d *decoder) numbers(dst *[]ingest.Value, observation bool) bool {
	if !d.enter() {
		return false
	}
	for first := true; ; first = false {
		more, ok := d.next(first, '}')
		if !more {
			return ok
		}
		name, ok := d.memberName()
		if !ok {
			return false
		}
		if d.null() {
			continue
		}
		switch c := d.peek(); {
		case slices.Contains(d.own, name):
			ok = d.skip()
		case observation && c == '{':
			ok = d.membersOf(dst, name)
		case observation && c == '[' && d.sizeOf(d.at) == isSmall:
			ok = d.elements(dst, name, 1)
		default:
			ok = d.namedComponent(dst, name, observation)
		}
		if !ok {
			return false
		}
	}
}

func (d *decoder) namedComponent(dst *[]ingest.Value, name string, ignoring bool) bool {
	var x float64
	start := d.at
	isNumber, ok := d.component(&x, ignoring)
	if !ok || !isNumber {
		return ok
	}
	if !d.counted() {
		return false
	}
	d.noteComponent(dst, d.put(dst, name, x), start)
	return true
}

// mostParts is the maximum number of numbers that are read from objects and arrays within an observation. The others
// are skipped.
const mostParts = 512

// membersOf reads an object within an observation. The names of its numbers begin with within.
func (d *decoder) membersOf(dst *[]ingest.Value, within string) bool {
	if !d.enter() {
		return false
	}
	for first := true; ; first = false {
		more, ok := d.next(first, '}')
		if !more {
			return ok
		}
		name, kept, ok := d.partName(within)
		switch {
		case !ok:
			return false
		case d.null():
			continue
		case !kept:
			ok = d.skip()
		case d.peek() == '[' && d.sizeOf(d.at) == isLarge:
			ok = d.skip()
		default:
			ok = d.part(dst, name, 0)
		}
		if !ok {
			return false
		}
	}
}

// elements reads a small array within an observation. level is 1, or 2 if it is within another array.
func (d *decoder) elements(dst *[]ingest.Value, within string, level int) bool {
	if !d.enter() {
		return false
	}
	for place := 0; ; place++ {
		more, ok := d.next(place == 0, ']')
		switch {
		case !more:
			return ok
		case len(within)+1+len(d.places[place]) > ingest.MaxString:
			ok = d.skip()
		default:
			ok = d.part(dst, d.names.Get(joined(d, within, d.places[place])), level)
		}
		if !ok {
			return false
		}
	}
}

// part reads a nested value of an observation. level is that of the array that contains it, or 0 for an object. Arrays
// at a third level, as in images, are skipped.
func (d *decoder) part(dst *[]ingest.Value, name string, level int) bool {
	switch c := d.peek(); {
	case slices.Contains(d.own, name), c == '[' && level == 2:
		return d.skip()
	case c == '{':
		return d.membersOf(dst, name)
	case c == '[':
		return d.elements(dst, name, level+1)
	}
	start, x := d.at, math.NaN()
	if !d.null() {
		if isNumber, ok := d.component(&x, true); !isNumber || !ok {
			return ok
		}
	}
	if d.deep == mostParts {
		return true
	}
	d.deep++
	f := observed // null is NaN
	if level == 0 {
		f = observations // null is ignored
	}
	return d.note(f, d.put(dst, name, x), start)
}

// maxElements is the maximum number of elements of an array within an observation, including those of nested arrays.
// Larger arrays, such as images and embeddings, are skipped.
const maxElements = 256

// size says whether an array has at most maxElements elements.
type size int

const (
	unknownSize size = iota
	isSmall
	isLarge
)

// sizeOf returns the size of the array that starts at start.
func (d *decoder) sizeOf(start int) size {
	at, depth, lesson := d.at, d.depth, d.lesson
	d.at, d.lesson = start, nil // the array is read or skipped later
	n := 0
	d.countElements(&n) // a fault is found again when the array is read
	d.at, d.depth, d.lesson = at, depth, lesson
	if n > maxElements {
		return isLarge
	}
	return isSmall
}

// countElements skips a value. If it is an array, its number of elements, including those of nested arrays, is added to
// n. Counting stops at maxElements+1.
func (d *decoder) countElements(n *int) bool {
	if d.peek() != '[' {
		return d.skip()
	}
	if !d.enter() {
		return false
	}
	for first := true; ; first = false {
		more, ok := d.next(first, ']')
		if !more {
			return ok
		}
		if *n++; *n > maxElements || !d.countElements(n) {
			return false
		}
	}
}

// put sets the value for a name, and returns its index.
func (d *decoder) put(dst *[]ingest.Value, name string, x float64) int {
	i := d.indexOf(dst, name)
	if i >= 0 {
		(*dst)[i].X = x
		return i
	}
	*dst = append(*dst, ingest.Value{Name: name, X: x})
	return len(*dst) - 1
}

// shortObject is the number of names from which a map is faster than a linear search.
const shortObject = 32

// indexOf returns the index of a name, or -1 if it is new. d.index contains the names of the first len(d.index) values
// in the list d.indexed.
func (d *decoder) indexOf(list *[]ingest.Value, name string) int {
	vs := *list
	if len(vs) < shortObject {
		for i := range vs {
			if vs[i].Name == name {
				return i
			}
		}
		return -1
	}
	if d.indexed != list {
		clear(d.index)
		d.indexed = list
	}
	for i := len(d.index); i < len(vs); i++ {
		d.index[vs[i].Name] = i
	}
	if i, ok := d.index[name]; ok {
		return i
	}
	return -1
}

// observation reads an object, an array, or the single number of a discrete space, which becomes the component "0". The
// numbers in nested objects and arrays have names with dots, such as joint.0. Strings and large arrays are skipped,
// without changing the names of later values.
func (d *decoder) observation(ev *ingest.Event) bool {
	switch d.peek() {
	case '{':
		return d.components(&ev.Observation, true)
	case '[':
		return d.observedArray(&ev.Observation)
	}
	var x float64
	if isNumber, ok := d.component(&x, false); !isNumber || !ok || !d.counted() {
		return false
	}
	d.begin(&ev.Observation)
	if name := d.places[0]; !slices.Contains(d.own, name) {
		d.put(&ev.Observation, name, x)
	}
	return true
}

func (d *decoder) observedArray(dst *[]ingest.Value) bool {
	start, large := d.at, unknownSize
	if !d.enter() {
		return false
	}
	d.begin(dst)
	for place := 0; ; place++ {
		more, ok := d.next(place == 0, ']')
		if !more {
			return ok
		}
		if large == unknownSize && d.peek() == '[' {
			large = d.sizeOf(start)
		}
		if !d.counted() || !d.observedElement(dst, place, large == isLarge) {
			return false
		}
	}
}

// observedElement reads an element of an array.
func (d *decoder) observedElement(dst *[]ingest.Value, place int, large bool) bool {
	start, name, x := d.at, d.places[place], math.NaN()
	switch c := d.peek(); {
	case slices.Contains(d.own, name), c == '[' && large:
		return d.skip()
	case c == '{':
		return d.membersOf(dst, name)
	case c == '[':
		return d.elements(dst, name, 2)
	case !d.null():
		if isNumber, ok := d.component(&x, true); !isNumber || !ok {
			return ok
		}
	}
	i := len(*dst)
	if d.own == nil {
		*dst = append(*dst, ingest.Value{Name: name, X: x})
	} else {
		i = d.put(dst, name, x)
	}
	return d.note(observed, i, start)
}

// nextObservation checks that next_observation is a valid observation, and skips it.
func (d *decoder) nextObservation() bool {
	if c := d.peek(); c == '{' || c == '[' {
		return d.skip()
	}
	var unused float64
	_, ok := d.component(&unused, false)
	return ok
}

// action reads a category, a number, or an array of numbers. An empty array means no action.
func (d *decoder) action(a *ingest.Action) bool {
	*a = ingest.Action{Values: a.Values[:0]}
	switch c := d.peek(); {
	case c == '[':
		return d.actionArray(a)
	case c == '"':
		return d.category(a)
	case c == 't' && d.literal("true"):
		a.Kind, a.Category = ingest.ActionCategory, "true"
		return true
	case c == 'f' && d.literal("false"):
		a.Kind, a.Category = ingest.ActionCategory, "false"
		return true
	}
	if x, ok := d.word(); ok {
		setNumber(a, x)
		return true
	}
	if !d.atNumeral() {
		return d.wrongType("a string, a boolean, a number or an array of numbers")
	}
	return d.actionNumber(a)
}

func (d *decoder) category(a *ingest.Action) bool {
	a.Kind = ingest.ActionCategory
	return d.name(&a.Category)
}

func setNumber(a *ingest.Action, x float64) {
	a.Kind, a.Scalar, a.Values = ingest.ActionNumeric, true, append(a.Values, x)
}

func (d *decoder) actionNumber(a *ingest.Action) bool {
	n, ok := d.numeral()
	if !ok {
		return false
	}
	i, integral := n.int()
	if !integral {
		setNumber(a, n.float())
		return d.counted()
	}
	d.scratch = strconv.AppendInt(d.scratch[:0], i, 10)
	setNumber(a, float64(i)) // it may also be an integer among the values of a continuous action
	a.Kind, a.Category = ingest.ActionCategory, d.names.Get(d.scratch)
	return true
}

func (d *decoder) actionArray(a *ingest.Action) bool {
	if !d.enter() {
		return false
	}
	for first := true; ; first = false {
		more, ok := d.next(first, ']')
		if !more {
			return ok
		}
		if !d.counted() {
			return false
		}
		start, x := d.at, math.NaN()
		if !d.null() {
			if _, ok := d.component(&x, false); !ok {
				return false
			}
		}
		a.Kind, a.Values = ingest.ActionNumeric, append(a.Values, x)
		d.note(actionElement, len(a.Values)-1, start)
	}
}

func (d *decoder) labels(ev *ingest.Event) bool {
	if d.peek() != '{' {
		return d.wrongType("an object of strings")
	}
	if !d.enter() {
		return false
	}
	if d.own == nil {
		ev.Labels = ev.Labels[:0]
	}
	for first := true; ; first = false {
		more, ok := d.next(first, '}')
		if !more {
			return ok
		}
		name, ok := d.memberName()
		if !ok {
			return false
		}
		if d.null() {
			continue
		}
		if slices.Contains(d.own, name) {
			ok = d.skip()
		} else {
			ok = d.label(ev, name)
		}
		if !ok {
			return false
		}
	}
}

func (d *decoder) label(ev *ingest.Event, name string) bool {
	start := d.at
	value, ok := d.labelValue()
	if !ok {
		return false
	}
	for i := range ev.Labels {
		if ev.Labels[i].Name == name {
			ev.Labels[i].Value = value
			return d.note(labels, i, start)
		}
	}
	if len(ev.Labels) == ingest.MaxLabels {
		return d.fail(ingest.ReasonTooManyValues, d.at, "more than "+strconv.Itoa(ingest.MaxLabels)+" labels")
	}
	ev.Labels = append(ev.Labels, ingest.Label{Name: name, Value: value})
	return d.note(labels, len(ev.Labels)-1, start)
}

func (d *decoder) labelValue() (value string, ok bool) {
	switch {
	case d.peek() == 't' && d.literal("true"):
		return "true", true
	case d.peek() == 'f' && d.literal("false"):
		return "false", true
	}
	text, ok := d.text()
	if !ok {
		return "", false
	}
	return d.arena.Hold(text), true
}

// episode reads the summary {"r": return, "l": length}.
func (d *decoder) episode(ev *ingest.Event) bool {
	start := d.at
	if d.peek() != '{' {
		return d.wrongType("an object with r and l")
	}
	if !d.enter() {
		return false
	}
	ev.HasEpisode, ev.Return, ev.Length = false, 0, -1
	for first := true; ; first = false {
		more, ok := d.next(first, '}')
		switch {
		case !ok:
			return false
		case !more:
			return ev.HasEpisode || d.fail(ingest.ReasonMissingReturn, start, "an episode must have r")
		}
		key, ok := d.key()
		if !ok || !d.null() && !d.episodeMember(ev, key) {
			return false
		}
	}
}

func (d *decoder) episodeMember(ev *ingest.Event, key []byte) bool {
	start := d.at
	switch string(key) {
	case "r":
		ev.HasEpisode = true
		return d.number(&ev.Return) && d.note(episodeReturn, 0, start)
	case "l":
		return d.count(&ev.Length) && d.note(episodeLength, 0, start)
	}
	return d.skip()
}
