package retrain

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

func TestParseExpected(t *testing.T) {
	day := 86400.
	for text, want := range map[string]Expected{
		"mean return > 480 over 200 episodes within 24h":             {"", "mean", "return", ">", 480, 200, "episodes", day},
		"  median\toutcome.ctr/7d >=\n-0.5 over 1 units within 7d ":  {"", "median", "outcome.ctr/7d", ">=", -.5, 1, "units", 7 * day},
		"sd reward < 1e-3 over 1000000 episodes within 1m":           {"", "sd", "reward", "<", .001, 1000000, "episodes", 60},
		`q10 "observation.a \"b\"" <= +5 over 20 units within 1h30m`: {"", "q10", `observation.a "b"`, "<=", 5, 20, "units", 5400},
		"q90 action.0 > 0 over 20 units within 500ms":                {"", "q90", "action.0", ">", 0, 20, "units", .5},
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

// What is wrong is told by the byte that it begins at; testdata/bad_recipes has the messages.
func TestParseExpectedNamesThePlace(t *testing.T) {
	for text, want := range map[string]int{
		"":                     0,
		"mean":                 4,
		"ü return":             0,
		"mean return > ü":      14,
		"mean return > 1 over": 20,
		"mean return > 1e999 over 1 units within 1h": 14,
		"mean return > 1 over 1 units within 0s":     36,
		"mean return > 1 over -1 units within 1h":    21,
		"mean return > 1 over 1.5 units within 1h":   21,
		"mean return > 1 within 1h":                  16,
		"mean return>1 over 1 units within 1h":       5,
		`mean "return > 1 over 1 units within 1h`:    5,
		"mean return > 1_0 over 1 units within 1h":   14,
		"mean return > inf over 1 units within 1h":   14,
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
	f.Add("median outcome.ctr/7d >= -0.5 over 1 units within 7d")
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
