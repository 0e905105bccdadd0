// Package propose recognizes the fields of records that are not telemetry version 1, and proposes a mapping for them.
package propose

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// The limits of a table.
const (
	maxPlaces   = 2000  // places in the records
	maxDistinct = 20000 // distinct values of a place
	maxDepth    = 8     // nesting depth of places
)

// place contains statistics of the values at one path.
//
// It is large because it counts values of each kind.
type place struct {
	names []string // of the members that lead to the place
	path  string   // as in a mapping; for a key or a header, a description
	n     int      // records that have a value at the place

	numbers, truths, texts, objects, lists, numberLists, objectLists, textLists, emptyLists int

	min, max float64
	zeroOne  bool // whether all numbers are 0 or 1
	whole    bool // whether all numbers are whole
	times    int  // texts in RFC 3339 format
	elements int  // elements of all lists

	isColumn  bool // whether its values come from an array, which may have a plural name
	wholeList bool // whether the first numbers of all lists are whole and not negative
	values    map[string]int
	order     []string // distinct values by first appearance
	upwards   int      // values that are not less than the previous value, compared as text or as numbers
	before    string   // previous value
	beforeX   float64
}

// table contains the places of records of one type.
type table struct {
	records int
	places  map[string]*place
	order   []*place
}

func newTable(records []any) *table {
	t := &table{records: len(records), places: map[string]*place{}}
	for _, r := range records {
		t.add(nil, r)
	}
	return t
}

// The members that parse adds to records.
const (
	ofKey     = "\x00key"
	ofHeaders = "\x00headers"
)

// source returns the source of the place in a mapping.
func (p *place) source() mapping.Source {
	switch {
	case p.names[0] == ofKey && len(p.names) == 1:
		return mapping.Source{Key: json.RawMessage("true")}
	case p.names[0] == ofKey:
		return mapping.Source{Key: text(pathOf(p.names[1:]))}
	case p.names[0] == ofHeaders:
		return mapping.Source{Header: p.names[1]}
	}
	return mapping.Source{Path: p.path}
}

// readable describes a place to people.
func readable(names []string) string {
	switch {
	case names[0] == ofKey && len(names) == 1:
		return "the key"
	case names[0] == ofKey:
		return pathOf(names[1:]) + " of the key"
	case names[0] == ofHeaders && len(names) == 2:
		return "the header " + names[1]
	}
	return pathOf(names)
}

// add adds a value and the values within it.
func (t *table) add(names []string, value any) {
	if len(names) > 0 && value != nil && (len(names) > 1 || names[0] != ofHeaders) {
		if p := t.place(names); p != nil {
			p.add(value)
		}
	}
	object, ok := value.(map[string]any)
	if !ok || len(names) >= maxDepth {
		return
	}
	for _, name := range sortedKeys(object) {
		t.add(append(names[:len(names):len(names)], name), object[name])
	}
}

// lastName returns the last name of a place, normalized by plain.
func lastName(p *place) string { return plain(p.names[len(p.names)-1]) }

// isIn reports whether a place is within the value at another place.
func (p *place) isIn(of *place) bool {
	return len(p.names) > len(of.names) && slices.Equal(p.names[:len(of.names)], of.names)
}

// same returns the place of t with the same path as a place of another table, or nil.
func (t *table) same(p *place) *place { return t.places[strings.Join(p.names, "\x00")] }

// without returns a copy of the table without the given places.
func (t *table) without(places ...*place) *table {
	out := &table{records: t.records, places: map[string]*place{}}
	for _, p := range t.order {
		if !slices.Contains(places, p) {
			out.places[strings.Join(p.names, "\x00")] = p
			out.order = append(out.order, p)
		}
	}
	return out
}

// beside returns the first place in the same object that has one of the given names, or nil.
func (t *table) beside(p *place, names ...string) *place {
	for _, name := range names {
		of := append(slices.Clone(p.names[:len(p.names)-1]), name)
		if q := t.places[strings.Join(of, "\x00")]; q != nil {
			return q
		}
	}
	return nil
}

func (t *table) place(names []string) *place {
	key := strings.Join(names, "\x00")
	p := t.places[key]
	if p == nil && len(t.places) < maxPlaces {
		p = &place{names: names, path: readable(names), min: math.Inf(1), max: math.Inf(-1), zeroOne: true, whole: true, wholeList: true, values: map[string]int{}}
		t.places[key] = p
		t.order = append(t.order, p)
	}
	return p
}

func (p *place) add(value any) {
	p.n++
	switch v := value.(type) {
	case json.Number:
		p.numbers++
		x, _ := v.Float64()
		p.min, p.max = min(p.min, x), max(p.max, x)
		p.zeroOne = p.zeroOne && (x == 0 || x == 1)
		p.whole = p.whole && x == math.Trunc(x)
		if x >= p.beforeX {
			p.upwards++
		}
		p.beforeX = x
		p.count(v.String())
	case bool:
		p.truths++
		p.count(strconv.FormatBool(v))
	case string:
		p.texts++
		if _, ok := parseAny(v, rfc3339); ok {
			p.times++
		}
		if v >= p.before {
			p.upwards++
		}
		p.before = v
		p.count(v)
	case map[string]any:
		p.objects++
	case []any:
		p.list(v)
	}
}

// list adds a list. Only lists of numbers, texts or objects are useful.
func (p *place) list(v []any) {
	p.lists++
	p.elements += len(v)
	if len(v) == 0 {
		p.emptyLists++
		return
	}
	switch first := v[0].(type) {
	case json.Number:
		p.numberLists++
		x, err := first.Int64()
		p.wholeList = p.wholeList && err == nil && x >= 0
	case string:
		p.textLists++
	case map[string]any:
		p.objectLists++
	}
}

func (p *place) count(text string) {
	if _, known := p.values[text]; !known {
		if len(p.values) == maxDistinct {
			return
		}
		p.order = append(p.order, text)
	}
	p.values[text]++
}

// kind returns the type of nearly all values of the place.
func (p *place) kind() kind {
	most := p.n * 9 / 10
	switch {
	case p.numbers > most:
		return isNumber
	case p.truths > most:
		return isTruth
	case p.texts > most:
		return isText
	case p.objects > most:
		return isObject
	case p.numberLists > most:
		return isNumberList
	case p.objectLists > most:
		return isObjectList
	case p.textLists > most:
		return isTextList
	}
	return isMixed
}

type kind int

const (
	isMixed kind = iota
	isNumber
	isTruth
	isText
	isObject
	isNumberList
	isObjectList
	isTextList
)

func (k kind) String() string {
	return [...]string{"mixed types", "numbers", "booleans", "text", "objects", "lists of numbers", "lists of objects", "lists of strings"}[k]
}

// facts summarizes the values of a place for people.
func (t *table) facts(p *place) string {
	out := fmt.Sprintf("%s in %d%% of %d", p.kind(), 100*p.n/max(1, t.records), t.records)
	switch p.kind() {
	case isNumber:
		out += fmt.Sprintf(", %s to %s", short(p.min), short(p.max))
	case isText:
		out += fmt.Sprintf(", %d distinct, such as %s", len(p.values), example(p.order[0]))
	}
	return out
}

func short(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

func example(text string) string {
	if r := []rune(text); len(r) > 30 {
		text = string(r[:30]) + "..."
	}
	return strconv.Quote(text)
}

// pathOf returns names as a path in a mapping.
func pathOf(names []string) string {
	var b strings.Builder
	for i, name := range names {
		odd := name == "" || name == "$" && i == 0 || strings.ContainsFunc(name, func(r rune) bool {
			return strings.ContainsRune(`.[]"'\`, r) || unicode.IsSpace(r) || unicode.IsControl(r)
		})
		switch {
		case odd:
			quoted, _ := json.Marshal(name) // cannot fail for a string
			b.WriteString("[" + string(quoted) + "]")
		case i > 0:
			b.WriteString("." + name)
		default:
			b.WriteString(name)
		}
	}
	return b.String()
}

// plain returns a name in lower case, without accents, and without characters other than letters and digits.
func plain(name string) string {
	const accented, bare = "áàâäãéèêëíìîïóòôöõúùûüñç", "aaaaaeeeeiiiiooooouuuunc"
	accents := []rune(accented)
	return strings.Map(func(r rune) rune {
		r = unicode.ToLower(r)
		if i := slices.Index(accents, r); i >= 0 {
			return rune(bare[i])
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name)
}
