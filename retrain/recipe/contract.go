package recipe

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/expectation"
)

// Contract is the purpose of a retraining, and how it is judged.
type Contract struct {
	Objective  string   `json:"objective"`  // what the policy should achieve
	Hypothesis string   `json:"hypothesis"` // why retraining should help
	Expected   Expected `json:"expected"`   // what the new version must show
	Owner      string   `json:"owner"`      // who is responsible
}

func contractKeys() []string { return []string{"objective", "hypothesis", "expected", "owner"} }

// Expected is a condition on a signal of the new version, such as "mean return > 480 over 200 episodes within 24h".
// It is true if the statistic of that many units of the new version, which must arrive within the time, compares to
// the value as stated.
type Expected struct {
	Text       string  `json:"text"`       // as written in the recipe
	Statistic  string  `json:"statistic"`  // mean, median, sd, q10 or q90
	Signal     string  `json:"signal"`     // such as return or outcome.conversion
	Comparison string  `json:"comparison"` // >, >=, < or <=
	Value      float64 `json:"value"`
	Over       int     `json:"over"`           // units
	Unit       string  `json:"unit"`           // episodes, or units if there may be no episodes
	Within     float64 `json:"within_seconds"` // from the start of the new version
	// Relative is how Value derives from the baseline; zero for a constant.
	Relative Relative `json:"relative,omitzero"`
}

// Relative is a value relative to the same statistic of the same signal in the baseline: Times * baseline + Plus + PlusSD * sd.
type Relative struct {
	Times  float64 `json:"times"` // 0 only in the zero Relative
	Plus   float64 `json:"plus"`
	PlusSD float64 `json:"plus_sd"` // in standard deviations of the signal in the baseline

	// Known once the request is opened.
	Level float64 `json:"level"` // the statistic of the baseline
	SD    float64 `json:"sd"`
}

func (r Relative) is() bool { return r.Times != 0 }

// Levels returns the baseline distribution of a signal in a group. group is nil for a policy with a single group.
// Without such a baseline, the error says what is missing.
type Levels func(policy string, group *ingest.Group, signal string) (finding.Distribution, error)

// resolve computes the value from the baseline. A constant stays as it is.
func (e Expected) resolve(level func(signal string) (finding.Distribution, error)) (Expected, error) {
	if !e.Relative.is() {
		return e, nil
	}
	d, err := level(e.Signal)
	if err != nil {
		return e, fmt.Errorf("resolve %q: %w", e.Text, err)
	}
	r := &e.Relative
	r.Level, r.SD = map[string]float64{"mean": d.Mean, "median": d.Q50, "sd": d.SD, "q10": d.Q10, "q90": d.Q90}[e.Statistic], d.SD
	e.Value = r.Times*r.Level + r.Plus + r.PlusSD*r.SD
	if math.IsNaN(e.Value) || math.IsInf(e.Value, 0) {
		return e, fmt.Errorf("resolve %q: the value is not finite, because the baseline %s of %s is %g", e.Text, e.Statistic, e.Signal, r.Level)
	}
	return e, nil
}

// resolved describes the value of a relative condition at the opening of the request, "" for a constant.
func (e Expected) resolved() string {
	if !e.Relative.is() {
		return ""
	}
	return fmt.Sprintf("%s %s, because the baseline's %s is %s",
		e.Comparison, detectors.Figure(e.Value, 6), e.Statistic, detectors.Figure(e.Relative.Level, 6))
}

// Told returns the condition for people: as in the recipe, with its resolved value.
func (e Expected) Told() string {
	if r := e.resolved(); r != "" {
		return e.Text + " (" + r + ")"
	}
	return e.Text
}

// Duration returns the time within which the units must arrive.
func (e Expected) Duration() time.Duration { return time.Duration(e.Within * float64(time.Second)) }

// maxOver bounds the number of units in a condition.
const maxOver = 1_000_000

func statistics() []string  { return []string{"mean", "median", "sd", "q10", "q90"} }
func comparisons() []string { return []string{">", ">=", "<", "<="} }

// ParseExpected parses a condition: STATISTIC SIGNAL COMPARISON VALUE over N episodes|units within DURATION. A signal
// name with spaces must be in double quotes. VALUE is NUMBER or [NUMBER *] baseline [+|- NUMBER [* sd]].
func ParseExpected(text string) (Expected, error) {
	p := &expectedParser{words: splitWords(text), end: len(text)}
	e := Expected{Text: text}
	e.Statistic = p.oneOf("a statistic", statistics())
	e.Signal = p.signal()
	e.Comparison = p.oneOf("a comparison", comparisons())
	e.Value, e.Relative = p.value()
	p.oneOf("the number of units", []string{"over"})
	e.Over = p.count(expectation.Least(e.Statistic))
	e.Unit = p.oneOf("a unit", []string{"episodes", "units"})
	p.oneOf("the time", []string{"within"})
	e.Within = p.duration()
	if extra, more := p.next(); more {
		p.fail(extra, "unexpected %q after the time", extra.text)
	}
	if p.err != nil {
		return Expected{}, p.err
	}
	return e, nil
}

// String returns the condition in its canonical form, which parses to the same.
func (e Expected) String() string {
	signal := e.Signal
	if strings.ContainsFunc(signal, isBlankOrQuote) {
		signal = strconv.Quote(signal)
	}
	within := model.Duration(math.Round(e.Within*1000) * float64(time.Millisecond))
	return fmt.Sprintf("%s %s %s %s over %d %s within %s", e.Statistic, signal, e.Comparison, e.value(), e.Over, e.Unit, within)
}

// value returns the right side of the comparison.
func (e Expected) value() string {
	if !e.Relative.is() {
		return plainNumber(e.Value)
	}
	out := baselineWord
	if e.Relative.Times != 1 {
		out = plainNumber(e.Relative.Times) + " * " + out
	}
	plus, unit := e.Relative.Plus, ""
	if e.Relative.PlusSD != 0 {
		plus, unit = e.Relative.PlusSD, " * "+sdWord
	}
	switch {
	case plus > 0:
		out += " + " + plainNumber(plus) + unit
	case plus < 0:
		out += " - " + plainNumber(-plus) + unit
	}
	return out
}

func plainNumber(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func isBlankOrQuote(r rune) bool { return strings.ContainsRune(" \t\r\n\"", r) }

// word is a word of a condition and its byte offset.
type word struct {
	text string
	at   int
}

var wordPattern = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[^ \t\r\n]+`)

func splitWords(text string) []word {
	var out []word
	for _, span := range wordPattern.FindAllStringIndex(text, -1) {
		out = append(out, word{text[span[0]:span[1]], span[0]})
	}
	return out
}

// expectedParser parses word by word and keeps the first error.
type expectedParser struct {
	words []word
	end   int // of the text
	err   error
}

func (p *expectedParser) fail(at word, format string, args ...any) {
	if p.err == nil {
		p.err = &textError{at.at, fmt.Sprintf(format, args...)}
	}
}

func (p *expectedParser) next() (word, bool) {
	if len(p.words) == 0 {
		return word{at: p.end}, false
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w, true
}

// wanted returns the next word, and reports an error if there is none.
func (p *expectedParser) wanted(what string) (word, bool) {
	w, more := p.next()
	if !more {
		p.fail(w, "incomplete: expected %s, as in \"mean return > 480 over 200 episodes within 24h\"", what)
	}
	return w, more && p.err == nil
}

func (p *expectedParser) oneOf(what string, words []string) string {
	w, ok := p.wanted(what)
	if ok && !slices.Contains(words, w.text) {
		p.fail(w, "expected %s (%s), not %q", what, strings.Join(words, ", "), w.text)
	}
	return w.text
}

func (p *expectedParser) signal() string {
	w, ok := p.wanted("a signal")
	if !ok {
		return ""
	}
	if strings.HasPrefix(w.text, `"`) {
		name, err := strconv.Unquote(w.text)
		if err != nil {
			p.fail(w, "%s is not a signal in double quotes", w.text)
		}
		w.text = name
	}
	if p.err == nil && (!signals.IsSignal(w.text) || signals.IsLaw(w.text)) { // a version has no laws before its own baseline
		p.fail(w, "unknown signal %q; must be return, reward, episode_length, action, action.<i>, outcome.<name>, "+
			"reward_component.<name> or observation.<name>", w.text)
	}
	return w.text
}

var decimal = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// The words of a value that is relative to the baseline.
const (
	baselineWord = "baseline"
	sdWord       = "sd"
)

// value parses a number, or a value relative to the baseline.
func (p *expectedParser) value() (float64, Relative) {
	r := Relative{Times: 1}
	if p.takes(baselineWord) {
		return 0, p.distance(r)
	}
	at := p.at()
	x := p.number()
	if !p.takes("*") {
		return x, Relative{}
	}
	if r.Times = x; x == 0 && p.err == nil {
		p.fail(at, "0 times the baseline is 0: write 0")
	}
	p.oneOf("the baseline", []string{baselineWord})
	return 0, p.distance(r)
}

// distance parses the distance from the baseline.
func (p *expectedParser) distance(r Relative) Relative {
	sign := 1.
	switch {
	case p.takes("+"):
	case p.takes("-"):
		sign = -1
	default:
		return r
	}
	at := p.at()
	x := p.number()
	if x <= 0 {
		p.fail(at, "expected a number greater than 0, not %q", at.text)
	}
	if p.takes("*") {
		p.oneOf("the baseline's standard deviation", []string{sdWord})
		r.PlusSD = sign * x
	} else {
		r.Plus = sign * x
	}
	return r
}

// takes consumes the next word if it is text.
func (p *expectedParser) takes(text string) bool {
	if p.err != nil || len(p.words) == 0 || p.words[0].text != text {
		return false
	}
	p.words = p.words[1:]
	return true
}

// at returns the next word without consuming it.
func (p *expectedParser) at() word {
	if len(p.words) == 0 {
		return word{at: p.end}
	}
	return p.words[0]
}

func (p *expectedParser) number() float64 {
	w, ok := p.wanted("a number")
	if !ok {
		return 0
	}
	x, err := strconv.ParseFloat(w.text, 64)
	if err != nil || !decimal.MatchString(w.text) {
		p.fail(w, "expected a number, or a multiple of the baseline as in \"0.95 * baseline\", not %q", w.text)
	}
	return x
}

func (p *expectedParser) count(least int) int {
	w, ok := p.wanted("a number of units")
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(w.text, 10, 32)
	if err != nil || int(n) < least || n > maxOver {
		p.fail(w, "expected a whole number from %d to %d, not %q", least, maxOver, w.text)
	}
	return int(n)
}

func (p *expectedParser) duration() float64 {
	w, ok := p.wanted("a duration")
	if !ok {
		return 0
	}
	d, err := model.ParseDuration(w.text)
	if err != nil || d <= 0 {
		p.fail(w, "expected a duration such as 24h or 7d, not %q", w.text)
	}
	return time.Duration(d).Seconds()
}
