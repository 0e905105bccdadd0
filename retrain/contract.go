package retrain

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
)

// Contract says what a retraining is for, and by what it will be judged.
type Contract struct {
	Objective  string   `json:"objective"`  // what the policy is to achieve
	Hypothesis string   `json:"hypothesis"` // why retraining should help
	Expected   Expected `json:"expected"`   // what the new version must show
	Owner      string   `json:"owner"`      // who answers for it
}

func contractKeys() []string { return []string{"objective", "hypothesis", "expected", "owner"} }

// Expected is a condition on a signal of the new version, such as "mean return > 480 over 200 episodes within 24h". It
// holds where the statistic of so many units of the new version, which must come within the time, compares so to the value.
type Expected struct {
	Text       string  `json:"text"`       // as the recipe has it
	Statistic  string  `json:"statistic"`  // mean, median, sd, q10 or q90
	Signal     string  `json:"signal"`     // such as return or outcome.conversion
	Comparison string  `json:"comparison"` // >, >=, < or <=
	Value      float64 `json:"value"`
	Over       int     `json:"over"`           // units
	Unit       string  `json:"unit"`           // episodes, or units where there may be none
	Within     float64 `json:"within_seconds"` // from the start of the new version
}

// within is the time in which the units must come.
func (e Expected) within() time.Duration { return time.Duration(e.Within * float64(time.Second)) }

// maxOver bounds the units that a condition may ask for.
const maxOver = 1_000_000

func statistics() []string  { return []string{"mean", "median", "sd", "q10", "q90"} }
func comparisons() []string { return []string{">", ">=", "<", "<="} }

// ParseExpected reads a condition: STATISTIC SIGNAL COMPARISON NUMBER over N episodes|units within DURATION. A signal whose
// name has spaces is put in double quotes.
func ParseExpected(text string) (Expected, error) {
	p := &expectedParser{words: splitWords(text), end: len(text)}
	e := Expected{Text: text}
	e.Statistic = p.oneOf("a statistic", statistics())
	e.Signal = p.signal()
	e.Comparison = p.oneOf("a comparison", comparisons())
	e.Value = p.number()
	p.oneOf("the number of units", []string{"over"})
	e.Over = p.count()
	e.Unit = p.oneOf("a unit", []string{"episodes", "units"})
	p.oneOf("the time", []string{"within"})
	e.Within = p.duration()
	if extra, more := p.next(); more {
		p.fail(extra, "nothing follows the time, but here is %q", extra.text)
	}
	if p.err != nil {
		return Expected{}, p.err
	}
	return e, nil
}

// String gives the condition in its plainest form, which is read as the same.
func (e Expected) String() string {
	signal := e.Signal
	if strings.ContainsFunc(signal, isBlankOrQuote) {
		signal = strconv.Quote(signal)
	}
	within := model.Duration(math.Round(e.Within*1000) * float64(time.Millisecond))
	return fmt.Sprintf("%s %s %s %s over %d %s within %s",
		e.Statistic, signal, e.Comparison, strconv.FormatFloat(e.Value, 'g', -1, 64), e.Over, e.Unit, within)
}

func isBlankOrQuote(r rune) bool { return strings.ContainsRune(" \t\r\n\"", r) }

// word is a word of a condition and the byte that it begins at.
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

// expectedParser reads one word after the other and keeps the first error.
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

// wanted gives the next word, and reports that there is none.
func (p *expectedParser) wanted(what string) (word, bool) {
	w, more := p.next()
	if !more {
		p.fail(w, "ends where %s should stand; it is written as in \"mean return > 480 over 200 episodes within 24h\"", what)
	}
	return w, more && p.err == nil
}

func (p *expectedParser) oneOf(what string, words []string) string {
	w, ok := p.wanted(what)
	if ok && !slices.Contains(words, w.text) {
		p.fail(w, "%s should stand here (%s), not %q", what, strings.Join(words, ", "), w.text)
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
	if p.err == nil && !bank.IsSignal(w.text) {
		p.fail(w, "%q is no signal; there are return, reward, episode_length, action, action.<i>, outcome.<name>, "+
			"reward_component.<name> and observation.<name>", w.text)
	}
	return w.text
}

var decimal = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func (p *expectedParser) number() float64 {
	w, ok := p.wanted("a number")
	if !ok {
		return 0
	}
	x, err := strconv.ParseFloat(w.text, 64)
	if err != nil || !decimal.MatchString(w.text) {
		p.fail(w, "a number should stand here, not %q", w.text)
	}
	return x
}

func (p *expectedParser) count() int {
	w, ok := p.wanted("a number of units")
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(w.text, 10, 32)
	if err != nil || n < 1 || n > maxOver {
		p.fail(w, "a whole number from 1 to %d should stand here, not %q", maxOver, w.text)
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
		p.fail(w, "a duration such as 24h or 7d should stand here, not %q", w.text)
	}
	return time.Duration(d).Seconds()
}
