// Package propose recognizes what is in records that are not telemetry version 1, and proposes a mapping for them.
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

// The limits of what is told apart.
const (
	maxPlaces   = 2000  // of values in the records
	maxDistinct = 20000 // values of a place
	maxDepth    = 8     // of places
)

// place is what was seen at one path.
//
// It is large because it counts values of each kind.
type place struct {
	names []string // of the members on the way
	path  string   // as a mapping writes it; of a key or a header, for people
	n     int      // records that have a value there

	numbers, truths, texts, objects, lists, numberLists, objectLists, textLists, emptyLists int

	min, max float64
	zeroOne  bool // all numbers are 0 or 1
	whole    bool // all numbers are whole
	times    int  // texts that are RFC 3339
	elements int  // of all lists

	isColumn  bool // its values come from an array of them, whose name may be in the plural
	wholeList bool // all first numbers of lists are whole, and not below 0
	values    map[string]int
	order     []string // of values, by first appearance
	upwards   int      // values that are not below the one before, as texts or as numbers
	before    string   // the value before
	beforeX   float64
}

// table is what was seen in records of one kind.
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

// source returns where a mapping finds the place.
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

// readable returns the place for people.
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

// add adds a value and the values in it.
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

// lastName returns the last name of a place, as names are compared.
func lastName(p *place) string { return plain(p.names[len(p.names)-1]) }

// isIn reports whether a place is in the value at another place.
func (p *place) isIn(of *place) bool {
	return len(p.names) > len(of.names) && slices.Equal(p.names[:len(of.names)], of.names)
}

// same returns the place of the table that is at the path of another table's place, nil if there is none.
func (t *table) same(p *place) *place { return t.places[strings.Join(p.names, "\x00")] }

// without returns the table without some of its places.
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

// beside returns the place of one of some names in the same object, nil if there is none.
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

// list adds a list of numbers, of texts or of objects. Others are of no use.
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

// kind returns what nearly all values of the place are.
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

// facts describes a place in a few words.
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

// pathOf writes the names as the path of a mapping.
func pathOf(names []string) string {
	var b strings.Builder
	for i, name := range names {
		odd := name == "" || name == "$" && i == 0 || strings.ContainsFunc(name, func(r rune) bool {
			return strings.ContainsRune(`.[]"'\`, r) || unicode.IsSpace(r) || unicode.IsControl(r)
		})
		switch {
		case odd:
			quoted, _ := json.Marshal(name) // a string, which cannot fail
			b.WriteString("[" + string(quoted) + "]")
		case i > 0:
			b.WriteString("." + name)
		default:
			b.WriteString(name)
		}
	}
	return b.String()
}

// plain returns a name in lower case, without accents and anything else but letters and digits.
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
