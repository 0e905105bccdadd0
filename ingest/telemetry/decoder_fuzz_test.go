package telemetry

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// beyondJSON matches input that the decoder accepts although it is not JSON, or refuses although encoding/json accepts
// it. Further matches only leave more input without an oracle.
var (
	nonFiniteWord = regexp.MustCompile(`(?i)nan|inf`)
	surrogate     = regexp.MustCompile(`(?i)\\ud[89a-f]`)
)

// FuzzDecode compares the decoder with encoding/json: accepted input is valid, and input that is refused as invalid
// JSON or UTF-8 is invalid.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		exampleEvent,
		exampleEvent + "\n{broken\n\r\n" + exampleEvent,
		`{"policy":"p","action":[1,-2.5e3,true,null,NaN],"observation":[1,"x",[2],{"y":3}],"ts":1795168800.5}`,
		`{"policy":7,"episode":{"r":-1e999,"l":20.0,"t":[{}]},"labels":{"a":1.50,"b":true},"reward":"-Infinity"}`,
		`{"policy":"\ud83d\ude00\u0041\n\/","outcomes":{"a":1,"a":2,"b":null},"step":9223372036854775807}`,
		`{"policy":"p","ts":"2016-12-31T23:59:60.999999999+23:59","reward":-0.0}`,
		`[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[`,
		"{\"policy\":\"\xff\",\"x\":\"\\ud800\",\"reward\":01}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		original := bytes.Clone(msg)
		d := newDecoder(ingest.DecoderOptions{MaxRecord: 1 << 12})
		lines := recordsOf(msg)
		var refused []ingest.RecordError
		events := d.Decode(make([]ingest.Event, 0, 1), &ingest.Message{Value: msg}, func(e *ingest.RecordError, raw []byte) {
			if _ = e.Error(); raw != nil && e.Size != int64(len(raw)) || e.Column < 0 || e.Column > int(e.Size)+1 {
				t.Errorf("refused %q with %+v", raw, e)
			}
			refused = append(refused, *e)
		})
		if !bytes.Equal(msg, original) {
			t.Fatal("the message was changed")
		}
		if len(lines) == 0 {
			if len(msg) > 0 && len(events)+len(refused) != 1 {
				t.Fatalf("%d events and %d refusals of a blank message", len(events), len(refused))
			}
			return
		}
		if len(events)+len(refused) != len(lines) {
			t.Fatalf("%d events and %d refusals of %d records", len(events), len(refused), len(lines))
		}
		for i := range events {
			checkAccepted(t, lines[events[i].Pos.Record], &events[i])
		}
		for _, e := range refused {
			checkRefused(t, lines[e.Pos.Record], e.Reason)
		}
	})
}

func recordsOf(msg []byte) (records [][]byte) {
	for _, line := range bytes.Split(msg, []byte("\n")) {
		if len(bytes.Trim(line, " \t\r")) > 0 {
			records = append(records, bytes.Clone(line))
		}
	}
	return records
}

func checkAccepted(t *testing.T, line []byte, e *ingest.Event) {
	t.Helper()
	if !slices.ContainsFunc([]bool{e.HasReward, e.HasEpisode, e.Action.Kind != ingest.ActionNone, len(e.Outcomes) > 0},
		func(b bool) bool { return b }) || e.Policy == "" || e.Step < -1 || e.TS < 0 {
		t.Errorf("accepted %q as %+v", line, e)
	}
	if nonFiniteWord.Match(line) {
		return
	}
	if !json.Valid(line) || !utf8.Valid(line) {
		t.Fatalf("accepted %q", line)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		t.Fatal(err)
	}
	if raw, ok := members["reward"]; ok && string(raw) != "null" {
		want, _ := strconv.ParseFloat(string(raw), 64)
		if math.Float64bits(e.Reward) != math.Float64bits(want) {
			t.Errorf("reward %s read as %v", raw, e.Reward)
		}
	}
	if raw, ok := members["agent_id"]; ok && len(raw) > 1 && raw[0] == '"' {
		var want string
		if err := json.Unmarshal(raw, &want); err != nil || e.AgentID != want {
			t.Errorf("agent_id %s read as %q (%v)", raw, e.AgentID, err)
		}
	}
}

func checkRefused(t *testing.T, line []byte, reason ingest.Reason) {
	t.Helper()
	valid := json.Valid(line)
	switch {
	case !slices.Contains(ingest.Reasons(), reason):
		t.Errorf("%q: reason %q is not in the list", line, reason)
	case reason == ingest.ReasonInvalidJSON && valid,
		reason == ingest.ReasonInvalidUTF8 && utf8.Valid(line) && !surrogate.Match(line),
		reason == ingest.ReasonTooLarge && len(line) <= 1<<12:
		t.Errorf("%q: refused as %s", line, reason)
	}
}

// FuzzNumber compares numbers with strconv, bit for bit, and with the grammar of encoding/json.
func FuzzNumber(f *testing.F) {
	for _, seed := range []string{
		"0", "-0", "1", "-1.5", "0.1", "1e22", "1e23", "123456789012345678901234567890", "9007199254740993",
		"0.000000000000000000000000000001", "4.9e-324", "1.7976931348623157e308", "1.8e308", "1e-400", "01", "1.", "-", "1e",
		"18446744073709551615", "18446744073709551616", "184467440737095516150.0", "1e99999999999999999999", "0e-99999999999999999999",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := newDecoder(ingest.DecoderOptions{})
		d.rec = []byte(text)
		n, ok := d.numeral()
		whole := ok && d.at == len(text)
		wantOK := json.Valid([]byte(text)) && strings.Trim(text, "0123456789+-.eE") == ""
		if whole != wantOK {
			t.Fatalf("%q: read as a number: %v, want %v", text, whole, wantOK)
		}
		if !whole {
			return
		}
		want, _ := strconv.ParseFloat(text, 64)
		if got := n.float(); math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		wantInt, err := strconv.ParseInt(text, 10, 64)
		if got, isInt := n.int(); err == nil && (!isInt || got != wantInt) {
			t.Errorf("%q: %v %v, want %v", text, got, isInt, wantInt)
		}
	})
}
