package recipe

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

func TestParseExpected(t *testing.T) {
	day := 86400.
	for text, want := range map[string]Expected{
		"mean return > 480 over 200 episodes within 24h":             {"", "mean", "return", ">", 480, 200, "episodes", day, Relative{}},
		"  median\toutcome.ctr/7d >=\n-0.5 over 1 units within 7d ":  {"", "median", "outcome.ctr/7d", ">=", -.5, 1, "units", 7 * day, Relative{}},
		"sd reward < 1e-3 over 1000000 episodes within 1m":           {"", "sd", "reward", "<", .001, 1000000, "episodes", 60, Relative{}},
		`q10 "observation.a \"b\"" <= +5 over 20 units within 1h30m`: {"", "q10", `observation.a "b"`, "<=", 5, 20, "units", 5400, Relative{}},
		"q90 action.0 > 0 over 20 units within 500ms":                {"", "q90", "action.0", ">", 0, 20, "units", .5, Relative{}},
	} {
		got, err := ParseExpected(text)
		check(t, err)
		if want.Text = text; got != want {
			t.Errorf("%s gives %+v, want %+v", text, got, want)
		}
	}
	e, err := ParseExpected("mean return > 480.0 over 200 episodes within 24h")
	check(t, err)
	if got, want := e.String(), "mean return > 480 over 200 episodes within 1d"; got != want {
		t.Errorf("String gives %q, want %q", got, want)
	}
	written, err := json.Marshal(e)
	check(t, err)
	if want := `{"text":"mean return \u003e 480.0 over 200 episodes within 24h","statistic":"mean","signal":"return","comparison":"\u003e",` +
		`"value":480,"over":200,"unit":"episodes","within_seconds":86400}`; string(written) != want {
		t.Errorf("JSON is %s, want %s", written, want)
	}
	var read Expected
	check(t, json.Unmarshal(written, &read))
	if !reflect.DeepEqual(read, e) {
		t.Errorf("JSON is read as %+v, want %+v", read, e)
	}
}

func TestExpectedRelativeToTheBaseline(t *testing.T) {
	baseline := finding.Distribution{Units: 500, Mean: -100, SD: 8, Q10: -110, Q50: -99, Q90: -90}
	for text, want := range map[string]struct {
		relative Relative
		value    float64
		again    string
	}{
		"mean return >= 0.95 * baseline": {Relative{Times: .95, Level: -100, SD: 8}, -95, ""},
		"median return > baseline":       {Relative{Times: 1, Level: -99, SD: 8}, -99, ""},
		"q10 return >= baseline + 2":     {Relative{Times: 1, Plus: 2, Level: -110, SD: 8}, -108, ""},
		"q90 return > baseline - 5e-1 * sd": {
			Relative{Times: 1, PlusSD: -.5, Level: -90, SD: 8}, -94, "q90 return > baseline - 0.5 * sd over 200 episodes within 1d",
		},
		"sd return <= 1.5 * baseline + 1 * sd": {Relative{Times: 1.5, PlusSD: 1, Level: 8, SD: 8}, 20, ""},
	} {
		e, err := ParseExpected(text + " over 200 episodes within 1d")
		check(t, err)
		if want.again == "" {
			want.again = e.Text
		}
		if e.Value != 0 || e.String() != want.again {
			t.Errorf("%s: value %g before it is known, written %q", text, e.Value, e)
		}
		e, err = e.resolve(func(signal string) (finding.Distribution, error) {
			if signal != "return" {
				t.Errorf("asked for %s", signal)
			}
			return baseline, nil
		})
		check(t, err)
		if e.Relative != want.relative || math.Abs(e.Value-want.value) > 1e-12 {
			t.Errorf("%s gives %g by %+v, want %g by %+v", text, e.Value, e.Relative, want.value, want.relative)
		}
	}
	e, err := ParseExpected("mean return >= 0.95 * baseline over 200 episodes within 1d")
	check(t, err)
	missing := errors.New("there is no baseline yet")
	if _, err := e.resolve(func(string) (finding.Distribution, error) { return finding.Distribution{}, missing }); !errors.Is(err, missing) {
		t.Errorf("got %v", err)
	}
	if _, err := e.resolve(func(string) (finding.Distribution, error) { return finding.Distribution{Mean: math.NaN()}, nil }); err == nil {
		t.Error("a baseline without a mean")
	}
}

// Errors contain the byte at which the mistake begins; testdata/bad_recipes has the messages.
func TestParseExpectedNamesThePlace(t *testing.T) {
	for text, want := range map[string]int{
		"":                     0,
		"mean":                 4,
		"ü return":             0,
		"mean return > ü":      14,
		"mean return > 1 over": 20,
		"mean return > 1e999 over 20 units within 1h": 14,
		"mean return > 1 over 20 units within 0s":     37,
		"mean return > 1 over 19 units within 1h":     21,
		"median return > 1 over 0 units within 1h":    23,
		"mean return > 1 over -1 units within 1h":     21,
		"mean return > 1 over 1.5 units within 1h":    21,
		"mean return > 1 within 1h":                   16,
		"mean return>1 over 20 units within 1h":       5,
		`mean "return > 1 over 20 units within 1h`:    5,
		"mean return > 1_0 over 20 units within 1h":   14,
		"mean return > inf over 20 units within 1h":   14,
		"mean return > 0.95 baseline over 20 units":   19,
		"mean return > 0 * baseline over 20 units":    14,
		"mean return > 2 * base over 20 units":        18,
		"mean return > baseline + over 20 units":      25,
		"mean return > baseline - -1 over 20 units":   25,
		"mean return > baseline + 1 * q10 over 1":     29,
	} {
		e, err := ParseExpected(text)
		bad, ok := errors.AsType[*textError](err)
		if !ok || bad.at != want || e != (Expected{}) {
			t.Errorf("%s: %+v, %v, want a mistake at %d", text, e, err, want)
		}
	}
}

func FuzzParseExpected(f *testing.F) {
	f.Add("mean return > 480 over 200 episodes within 24h")
	f.Add(`q10 "observation.a \"b\"" <= +5 over 20 units within 1h30m`)
	f.Add("sd return <= 1.5 * baseline - 2 * sd over 20 units within 7d")
	f.Add("median outcome.ctr/7d >= -0.5 over 20 units within 7d")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseExpected(text)
		if err != nil {
			if bad, ok := errors.AsType[*textError](err); !ok || bad.at < 0 || bad.at > len(text) {
				t.Errorf("%q: %v at no place of it", text, err)
			}
			return
		}
		again, err := ParseExpected(e.String())
		again.Text = e.Text
		if err != nil || again != e {
			t.Errorf("%q is written as %q, which gives %+v, %v", text, e, again, err)
		}
	})
}
