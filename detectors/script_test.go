package detectors

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Scripts under testdata describe in plain text how a detector responds to a stream:
//
//	test <title>                       begins a test, up to the next one
//	seeds <n>                          number of seeds to run it with, 10 by default; it must pass with each
//	detector <name> [setting=value]    see scriptDetectors
//	baseline <n> <law>                 draws the baseline of detectors that have one, before the first feed
//	feed <n> <law>                     draws values and passes them to the detector
//	expect none                        no alarm in that feed
//	expect none before <n>             no alarm with its first n-1 values
//	expect alarm within <n>            an alarm with its first n values
//
// A law is one of scriptLaws with its numbers, and then "x2" to double its spread around its center and "+1" or
// "-1" to shift it. "#" begins a comment.

// observer passes a value to a detector and reports whether it raises an alarm.
type observer func(x float64) (alarm bool)

// scriptDetectors creates a detector by its name in scripts, from its baseline, nil if none was drawn, and its
// settings.
var scriptDetectors = map[string]func(baseline []float64, s *settings) (observer, error){
	"adwin": func(_ []float64, s *settings) (observer, error) {
		return NewADWIN(s.get("delta", ADWINDelta)).Add, nil
	},
	"page-hinkley": func([]float64, *settings) (observer, error) {
		return NewPageHinkley().Add, nil
	},
	"ks": func(baseline []float64, s *settings) (observer, error) {
		window, limit := s.get("window", 200), s.get("limit", 1)
		k, err := NewSlidingKS(baseline, int(window))
		return func(x float64) bool {
			k.Add(x)
			d, full := k.Statistic()
			return full && d > limit
		}, err
	},
	// The promise of "units" is shared by the branches that carry.
	"ranks": func(baseline []float64, s *settings) (observer, error) {
		ranks := NewRanks(baseline)
		test := NewRankTest(baseline, ranks, Dependence(baseline, ranks))
		err := armWalks(&test.Walks, s.get("units", 1_000_000))
		ordinal := int64(0)
		return func(x float64) bool {
			ordinal++
			test.Observe(x, ordinal, false)
			return test.Reached()
		}, err
	},
	// Its values are the number of the "steps" of an episode at which something happened.
	"frequency": func(baseline []float64, s *settings) (observer, error) {
		steps := s.get("steps", 20)
		test := NewFrequencyTest(baseline, slices.Repeat([]float64{steps}, len(baseline)), 1)
		err := armWalks(&test.Walks, s.get("units", 1_000_000))
		ordinal := int64(0)
		return func(x float64) bool {
			ordinal++
			test.Observe(x, steps, -1, ordinal, false)
			return test.Reached()
		}, err
	},
	// Its mean is given, and no baseline is needed.
	"guaranteed": func(_ []float64, s *settings) (observer, error) {
		test, err := NewGuaranteed(s.get("mean", .5), s.get("units", 1_000_000), Both)
		return func(x float64) bool { return test.Observe(x) == nil && test.Score() >= 1 }, err
	},
	"novelty": func(baseline []float64, s *settings) (observer, error) {
		test := NewNovelty(NewRanks(baseline))
		if !test.Arm(1 / s.get("units", 1_000_000)) {
			return nil, errors.New("the baseline arms nothing")
		}
		ordinal := int64(0)
		return func(x float64) bool {
			ordinal++
			test.Observe(x, ordinal, false)
			return test.Score() >= 1
		}, nil
	},
}

func armWalks(w *Walks, units float64) error {
	if w.Carrying() == 0 {
		return errors.New("the baseline arms nothing")
	}
	w.Arm(1 / units / float64(w.Carrying()))
	return nil
}

// settings are the numbers given to a detector. A setting that it does not ask for is an error.
type settings struct {
	given map[string]float64
	asked map[string]bool
}

func (s *settings) get(name string, otherwise float64) float64 {
	s.asked[name] = true
	if v, ok := s.given[name]; ok {
		return v
	}
	return otherwise
}

// scriptLaw draws values around a center.
type scriptLaw struct {
	numbers int
	centre  func(p []float64) float64
	draw    func(r *scriptRun, p []float64) float64
}

func zero([]float64) float64 { return 0 }

// scriptLaws are the laws by name.
var scriptLaws = map[string]scriptLaw{
	"normal": {0, zero, func(r *scriptRun, _ []float64) float64 { return r.rng.NormFloat64() }},
	// Exponential with mean and standard deviation 1.
	"exponential": {0, func([]float64) float64 { return 1 }, func(r *scriptRun, _ []float64) float64 { return r.rng.ExpFloat64() }},
	// Student's t with 3 degrees of freedom, of standard deviation 1.
	"t3": {0, zero, func(r *scriptRun, _ []float64) float64 {
		square := 0.0
		for range 3 {
			z := r.rng.NormFloat64()
			square += z * z
		}
		return r.rng.NormFloat64() / math.Sqrt(square)
	}},
	// Two modes, with mean 0 and standard deviation 1.
	"modes": {0, zero, func(r *scriptRun, _ []float64) float64 {
		return math.Sqrt(.96)*float64(2*r.rng.IntN(2)-1) + .2*r.rng.NormFloat64()
	}},
	// Normal, rounded to halves.
	"ties": {0, zero, func(r *scriptRun, _ []float64) float64 { return math.Round(2*r.rng.NormFloat64()) / 2 }},
	// Autoregressive: the correlation with the value before, of standard deviation 1.
	"ar": {1, zero, func(r *scriptRun, p []float64) float64 {
		r.last = p[0]*r.last + math.Sqrt(1-p[0]*p[0])*r.rng.NormFloat64()
		return r.last
	}},
	// One value except for a share of others.
	"constant": {2, func(p []float64) float64 { return p[0] }, func(r *scriptRun, p []float64) float64 {
		if r.rng.Float64() < p[1] {
			return p[0] - r.rng.ExpFloat64()
		}
		return p[0]
	}},
	// How many of n happen, each with probability p.
	"binomial": {2, func(p []float64) float64 { return p[0] * p[1] }, func(r *scriptRun, p []float64) float64 {
		hits := 0.0
		for range int(p[0]) {
			if r.rng.Float64() < p[1] {
				hits++
			}
		}
		return hits
	}},
}

// feed draws values of a law, scaled and shifted.
type feed struct {
	n            int
	law          scriptLaw
	parameters   []float64
	scale, shift float64
	expects      []expectation
}

type expectation struct {
	line int
	text string
	met  func(first int) bool // first is the number of the feed's first value with an alarm, 0 for none
}

type script struct {
	title    string
	line     int
	seeds    int
	detector string
	settings map[string]float64
	baseline *feed
	feeds    []*feed
}

// scriptRun is one run of a script.
type scriptRun struct {
	rng  *rand.Rand
	last float64 // of the autoregressive law, which continues from feed to feed
}

func (r *scriptRun) draw(f *feed) float64 {
	centre := f.law.centre(f.parameters)
	return centre + f.scale*(f.law.draw(r, f.parameters)-centre) + f.shift
}

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.test")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts, error %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		scripts, err := parseScripts(string(text))
		if err != nil {
			t.Errorf("%s:%v", file, err)
		}
		for _, s := range scripts {
			t.Run(filepath.Base(file)+"/"+s.title, func(t *testing.T) {
				for seed := range s.seeds {
					if err := s.run(uint64(seed)); err != nil {
						t.Errorf("%s:%v (seed %d)", file, err, seed)
					}
				}
			})
		}
	}
}

func (s *script) run(seed uint64) error {
	r := &scriptRun{rng: rand.New(rand.NewPCG(seed, 45))}
	var baseline []float64
	if s.baseline != nil {
		for range s.baseline.n {
			baseline = append(baseline, r.draw(s.baseline))
		}
	}
	asked := &settings{s.settings, map[string]bool{}}
	observe, err := scriptDetectors[s.detector](baseline, asked)
	if err != nil {
		return fmt.Errorf("%d: %w", s.line, err)
	}
	for name := range s.settings {
		if !asked.asked[name] {
			return fmt.Errorf("%d: %s has no setting %q", s.line, s.detector, name)
		}
	}
	var unmet []error
	for _, f := range s.feeds {
		first := f.firstAlarm(r, observe)
		for _, e := range f.expects {
			if !e.met(first) {
				unmet = append(unmet, fmt.Errorf("%d: %s: first alarm with value %d of %d", e.line, e.text, first, f.n))
			}
		}
	}
	return errors.Join(unmet...)
}

// firstAlarm feeds all values and returns the number of the first one with an alarm, 0 for none.
func (f *feed) firstAlarm(r *scriptRun, observe observer) int {
	first := 0
	for i := range f.n {
		if observe(r.draw(f)) && first == 0 {
			first = i + 1
		}
	}
	return first
}

// parseScripts reads a file. Errors begin with the line.
func parseScripts(text string) ([]*script, error) {
	var scripts []*script
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if words[0] == "test" {
			scripts = append(scripts, &script{title: strings.Join(words[1:], " "), line: i + 1, seeds: 10})
			continue
		}
		if len(scripts) == 0 {
			return nil, fmt.Errorf("%d: %q before the first test", i+1, words[0])
		}
		if err := scripts[len(scripts)-1].parse(i+1, words); err != nil {
			return nil, fmt.Errorf("%d: %w", i+1, err)
		}
	}
	for _, s := range scripts {
		if s.detector == "" || len(s.feeds) == 0 {
			return nil, fmt.Errorf("%d: a test needs a detector and a feed", s.line)
		}
	}
	return scripts, nil
}

func (s *script) parse(line int, words []string) (err error) {
	switch words[0] {
	case "seeds":
		s.seeds, err = strconv.Atoi(strings.Join(words[1:], " "))
		return err
	case "detector":
		return s.parseDetector(words[1:])
	case "baseline":
		s.baseline, err = parseFeed(words[1:])
		return err
	case "feed":
		f, err := parseFeed(words[1:])
		s.feeds = append(s.feeds, f)
		return err
	case "expect":
		if len(s.feeds) == 0 {
			return errors.New("nothing has been fed")
		}
		f := s.feeds[len(s.feeds)-1]
		e, err := parseExpectation(f, line, words)
		f.expects = append(f.expects, e)
		return err
	}
	return fmt.Errorf("unknown %q", words[0])
}

func (s *script) parseDetector(words []string) error {
	if len(words) == 0 || scriptDetectors[words[0]] == nil {
		return fmt.Errorf("no such detector; there are %v", slices.Sorted(maps.Keys(scriptDetectors)))
	}
	s.detector, s.settings = words[0], map[string]float64{}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return err
		}
		s.settings[name] = number
	}
	return nil
}

func parseFeed(words []string) (*feed, error) {
	if len(words) < 2 {
		return nil, errors.New("a number of values and a law are needed")
	}
	n, err := strconv.Atoi(words[0])
	if err != nil {
		return nil, err
	}
	law, ok := scriptLaws[words[1]]
	if !ok || len(words) < 2+law.numbers {
		return nil, fmt.Errorf("no such law, or too few numbers for it; there are %v", slices.Sorted(maps.Keys(scriptLaws)))
	}
	f := &feed{n: n, law: law, scale: 1}
	for _, w := range words[2 : 2+law.numbers] {
		p, err := strconv.ParseFloat(w, 64)
		if err != nil {
			return nil, err
		}
		f.parameters = append(f.parameters, p)
	}
	return f, f.change(words[2+law.numbers:])
}

// change reads a change of the law: x2, +1 or -1.
func (f *feed) change(words []string) error {
	for _, w := range words {
		to, number := &f.shift, w
		switch w[0] {
		case 'x':
			to, number = &f.scale, w[1:]
		case '+', '-':
		default:
			return fmt.Errorf("%q is neither a spread such as x2 nor a shift such as +1", w)
		}
		var err error
		if *to, err = strconv.ParseFloat(number, 64); err != nil {
			return err
		}
	}
	return nil
}

func parseExpectation(f *feed, line int, words []string) (expectation, error) {
	e := expectation{line: line, text: strings.Join(words, " ")}
	if e.text == "expect none" {
		e.met = func(first int) bool { return first == 0 }
		return e, nil
	}
	n, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return e, err
	}
	if n > f.n {
		return e, fmt.Errorf("only %d values were fed", f.n)
	}
	switch strings.Join(words[:len(words)-1], " ") {
	case "expect none before":
		e.met = func(first int) bool { return first == 0 || first >= n }
	case "expect alarm within":
		e.met = func(first int) bool { return first > 0 && first <= n }
	default:
		return e, fmt.Errorf("unknown expectation %q", e.text)
	}
	return e, nil
}

// An error in a script is reported with its line, and an unmet expectation fails the script.
func TestScriptsCanFail(t *testing.T) {
	for text, want := range map[string]string{
		"feed 1 normal":                                                          `1: "feed" before the first test`,
		"test a\n\nfeed 1 cauchy":                                                "3: no such law",
		"test a\nfeed 1 ar":                                                      "2: no such law, or too few numbers",
		"test a\nfeed 1 normal 2":                                                "2: \"2\" is neither",
		"test a\ndetector crystal-ball":                                          "2: no such detector",
		"test a\ndetector adwin":                                                 "1: a test needs a detector and a feed",
		"test a\nexpect none":                                                    "2: nothing has been fed",
		"test a\nfeed 5 normal\nexpect alarm within 6":                           "3: only 5 values were fed",
		"test a\nfeed 5 normal\nexpect alarms within 5":                          "3: unknown expectation",
		"test a\nlunch":                                                          `2: unknown "lunch"`,
		"test a\ndetector adwin depth=2\nfeed 1 normal":                          `1: adwin has no setting "depth"`,
		"test a\ndetector ks\nfeed 1 normal":                                     "1: a Kolmogorov-Smirnov statistic needs a baseline",
		"test a\ndetector ranks\nbaseline 9 normal\nfeed 1 normal":               "1: the baseline arms nothing",
		"test a\ndetector adwin\nfeed 99 normal\nexpect alarm within 90":         "4: expect alarm within 90: first alarm with value 0 of 99",
		"test a\ndetector adwin\nfeed 99 normal\nfeed 99 normal +9\nexpect none": "5: expect none: first alarm with value 29 of 99",
		"test a\ndetector adwin\nfeed 99 normal\nfeed 99 normal +9\nexpect none before 30":  "5: expect none before 30: first alarm with value 29 of 99",
		"test a\ndetector adwin\nfeed 99 normal\nfeed 99 normal +9\nexpect alarm within 28": "5: expect alarm within 28: first alarm with value 29 of 99",
	} {
		scripts, err := parseScripts(text)
		if err == nil {
			err = scripts[0].run(1)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
