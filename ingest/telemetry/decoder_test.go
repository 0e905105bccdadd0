package telemetry

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// decodeAll decodes a message with a new decoder, and returns the events and the refusals.
func decodeAll(msg string) (events []ingest.Event, refused []*ingest.RecordError) {
	d := newDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	events = d.Decode(nil, &ingest.Message{Value: []byte(msg), Pos: ingest.Position{Partition: 3, Offset: 70}}, func(e *ingest.RecordError, _ []byte) {
		refused = append(refused, e)
	})
	return events, refused
}

// decodeOne decodes a message that must contain one valid record.
func decodeOne(t *testing.T, msg string) ingest.Event {
	t.Helper()
	events, refused := decodeAll(msg)
	if len(refused) > 0 {
		t.Fatalf("%s\nrefused: %v", msg, refused[0])
	}
	if len(events) != 1 {
		t.Fatalf("%s\n%d events, want 1", msg, len(events))
	}
	return events[0]
}

func TestDecodeExample(t *testing.T) {
	got := decodeOne(t, exampleEvent)
	want := ingest.Event{
		Pos:      ingest.Position{Partition: 3, Offset: 70},
		TS:       time.Date(2026, 11, 20, 10, 0, 0, 123e6, time.UTC).UnixNano(),
		Policy:   "checkout-ranker",
		Env:      "prod-eu",
		Versions: ingest.Versions{Policy: "2026-11-01.3", Env: "41", Reward: "r7"},
		Labels:   []ingest.Label{{Name: "region", Value: "eu"}},
		AgentID:  "a-17", EpisodeID: "a-17/881", Step: 12,
		Action:     ingest.Action{Kind: ingest.ActionCategory, Category: "offer_b"},
		ActionProb: ingest.Prob{P: .31, Known: true},
		Reward:     -0.25, HasReward: true,
		RewardComponents: []ingest.Value{{Name: "click", X: 0.1}, {Name: "latency", X: -0.35}},
		Observation:      []ingest.Value{{Name: "basket", X: 3.2}},
		Outcomes:         []ingest.Value{{Name: "conversion", X: 1}},
		Length:           -1,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestDecodeFields(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	event := func(change func(*ingest.Event)) ingest.Event {
		e := ingest.Event{Pos: ingest.Position{Partition: 3, Offset: 70}, Policy: "p", Step: -1, Length: -1}
		change(&e)
		return e
	}
	reward := func(x float64) ingest.Event { return event(func(e *ingest.Event) { e.Reward, e.HasReward = x, true }) }
	category := func(c string) ingest.Event {
		return event(func(e *ingest.Event) { e.Action = ingest.Action{Kind: ingest.ActionCategory, Category: c} })
	}
	integer := func(c string, x float64) ingest.Event {
		return event(func(e *ingest.Event) {
			e.Action = ingest.Action{Kind: ingest.ActionCategory, Category: c, Values: []float64{x}, Scalar: true}
		})
	}
	numbers := func(xs ...float64) ingest.Event {
		return event(func(e *ingest.Event) { e.Action = ingest.Action{Kind: ingest.ActionNumeric, Values: xs} })
	}
	scalar := func(x float64) ingest.Event {
		return event(func(e *ingest.Event) {
			e.Action = ingest.Action{Kind: ingest.ActionNumeric, Values: []float64{x}, Scalar: true}
		})
	}
	with := func(change func(*ingest.Event)) ingest.Event {
		return event(func(e *ingest.Event) { e.HasReward = true; change(e) })
	}
	observed := func(vs ...ingest.Value) ingest.Event { return with(func(e *ingest.Event) { e.Observation = vs }) }

	for _, c := range []struct {
		members string // behind {"policy":"p",
		want    ingest.Event
	}{
		{`"reward":1}`, reward(1)},
		{`"reward":-0.0}`, reward(math.Copysign(0, -1))},
		{`"reward":1e999}`, reward(inf)},
		{`"reward":-1e999}`, reward(-inf)},
		{`"reward":1e-999}`, reward(0)},
		{`"reward":NaN}`, reward(nan)},
		{`"reward":nan}`, reward(nan)},
		{`"reward":-NaN}`, reward(nan)},
		{`"reward":"nAn"}`, reward(nan)},
		{`"reward":Infinity}`, reward(inf)},
		{`"reward":+Infinity}`, reward(inf)},
		{`"reward":-Infinity}`, reward(-inf)},
		{`"reward":inf}`, reward(inf)},
		{`"reward":-inf}`, reward(-inf)},
		{`"reward":"-Inf"}`, reward(-inf)},
		{`"reward":"INFINITY"}`, reward(inf)},
		{`"reward":1,"reward":2}`, reward(2)},
		{`"reward":1,"reward":null}`, reward(1)},
		{`"reward":1,"unknown":{"x":[1,{"y":NaN}],"z":"\ud83d\ude00"}}`, reward(1)},
		{`"reward":1,"r\u0065ward":3}`, reward(3)},
		{`"reward":1,"action":null,"episode":null,"ts":null,"step":null,"labels":null,"env":null,"terminated":null}`, reward(1)},
		{" \t\"reward\" :\t1 , \"action\" : [ ] } \r", reward(1)},

		{`"action":"left"}`, category("left")},
		{`"action":""}`, category("")},
		{`"action":"NaN"}`, category("NaN")},
		{`"action":"na\u00efve \\ \"q\" \/ \b\f\n\r\t \ud83d\ude00 ü"}`, category("naïve \\ \"q\" / \b\f\n\r\t 😀 ü")},
		{`"action":true}`, category("true")},
		{`"action":false}`, category("false")},
		{`"action":3}`, integer("3", 3)},
		{`"action":-3}`, integer("-3", -3)},
		{`"action":-0}`, integer("0", 0)},
		{`"action":1.0}`, integer("1", 1)},
		{`"action":1.5e1}`, integer("15", 15)},
		{`"action":9223372036854775807}`, integer("9223372036854775807", 1<<63-1)},
		{`"action":-9223372036854775808}`, integer("-9223372036854775808", -1<<63)},
		{`"action":9223372036854775808}`, scalar(1 << 63)},
		{`"action":0.5}`, scalar(0.5)},
		{`"action":1e300}`, scalar(1e300)},
		{`"action":NaN}`, scalar(nan)},
		{`"action":-inf}`, scalar(-inf)},
		{`"action":[1]}`, numbers(1)},
		{`"action":[1,-2.5,true,false,NaN,"inf",null]}`, numbers(1, -2.5, 1, 0, nan, inf, nan)},
		{`"action":[1],"action":"x"}`, category("x")},

		{
			`"reward":0,"observation":{"a":1,"b":true,"c":"text","d":[1,2],"e":{"f":1},"g":null,"h":"NaN","i":2}}`,
			observed(ingest.Value{Name: "a", X: 1}, ingest.Value{Name: "b", X: 1}, ingest.Value{Name: "d.0", X: 1}, ingest.Value{Name: "d.1", X: 2},
				ingest.Value{Name: "e.f", X: 1}, ingest.Value{Name: "h", X: nan}, ingest.Value{Name: "i", X: 2}),
		},
		{
			`"reward":0,"observation":[1,"text",[3,4],null,false,-inf,{"x":5}]}`,
			observed(ingest.Value{Name: "0", X: 1}, ingest.Value{Name: "2.0", X: 3}, ingest.Value{Name: "2.1", X: 4},
				ingest.Value{Name: "3", X: nan}, ingest.Value{Name: "4", X: 0}, ingest.Value{Name: "5", X: -inf}, ingest.Value{Name: "6.x", X: 5}),
		},
		{
			`"reward":0,"observation":{"a":{"":{"\u0062":1}},"m":[[2,null],["x",{"y":3}]],"a.b":4,"a":{"b":5}}}`,
			observed(ingest.Value{Name: "a..b", X: 1}, ingest.Value{Name: "m.0.0", X: 2}, ingest.Value{Name: "m.0.1", X: nan},
				ingest.Value{Name: "m.1.1.y", X: 3}, ingest.Value{Name: "a.b", X: 5}),
		},
		{`"reward":0,"observation":7}`, observed(ingest.Value{Name: "0", X: 7})},
		{`"reward":0,"observation":{"a":1,"b":2,"a":3}}`, observed(ingest.Value{Name: "a", X: 3}, ingest.Value{Name: "b", X: 2})},
		{`"reward":0,"observation":[1,2],"observation":{"z":1}}`, observed(ingest.Value{Name: "z", X: 1})},
		{`"reward":0,"next_observation":[1,"x",[{}]],"action_prob":NaN}`, with(func(e *ingest.Event) { e.ActionProb = ingest.Prob{P: nan, Known: true} })},
		{`"reward":0,"action_prob":null,"target_prob":0}`, with(func(e *ingest.Event) { e.TargetProb = ingest.Prob{Known: true} })},
		{`"reward":0,"next_observation":4}`, reward(0)},
		{`"outcomes":{"a":0.5,"b":true,"c":false,"d":null,"e":inf}}`, event(func(e *ingest.Event) {
			e.Outcomes = []ingest.Value{{Name: "a", X: 0.5}, {Name: "b", X: 1}, {Name: "c", X: 0}, {Name: "e", X: inf}}
		})},
		{`"reward":0,"reward_components":{"a":1}}`, with(func(e *ingest.Event) { e.RewardComponents = []ingest.Value{{Name: "a", X: 1}} })},
		{`"reward":0,"labels":{"s":"x","n":1.50,"b":true,"z":null,"e":"","s":"y"}}`, with(func(e *ingest.Event) {
			e.Labels = []ingest.Label{{Name: "s", Value: "y"}, {Name: "n", Value: "1.50"}, {Name: "b", Value: "true"}, {Name: "e", Value: ""}}
		})},

		{`"episode":{"r":-7.5,"l":20,"t":1.25}}`, event(func(e *ingest.Event) { e.HasEpisode, e.Return, e.Length = true, -7.5, 20 })},
		{`"episode":{"r":NaN}}`, event(func(e *ingest.Event) { e.HasEpisode, e.Return = true, nan })},
		{`"episode":{"r":1,"l":null}}`, event(func(e *ingest.Event) { e.HasEpisode, e.Return = true, 1 })},
		{`"reward":0,"terminated":true,"truncated":true}`, with(func(e *ingest.Event) { e.Terminated, e.Truncated = true, true })},
		{`"reward":0,"step":0}`, with(func(e *ingest.Event) { e.Step = 0 })},
		{`"reward":0,"step":12.0}`, with(func(e *ingest.Event) { e.Step = 12 })},
		{`"reward":0,"step":9223372036854775807}`, with(func(e *ingest.Event) { e.Step = math.MaxInt64 })},
		{
			`"reward":0,"agent_id":17,"episode_id":"e\n1","env":2.50,"policy_version":3,"env_version":"v","reward_version":1e3}`,
			with(func(e *ingest.Event) {
				e.AgentID, e.EpisodeID, e.Env = "17", "e\n1", "2.50"
				e.Versions = ingest.Versions{Policy: "3", Env: "v", Reward: "1e3"}
			}),
		},
	} {
		got := decodeOne(t, `{"policy":"p",`+c.members)
		if g, w := show(got), show(c.want); g != w {
			t.Errorf("%s\ngot  %s\nwant %s", c.members, g, w)
		}
	}
}

// show formats events so that they can be compared, although NaN is not equal to itself and a nil slice differs from an
// empty one.
func show(e ingest.Event) string { return fmt.Sprintf("%+v", e) }

func TestDecodeRefuses(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	long := strings.Repeat("x", ingest.MaxString+1)
	many := func(n int, member func(i int) string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(member(i))
		}
		return b.String()
	}
	named := func(i int) string { return fmt.Sprintf(`"n%d":1`, i) }
	for _, c := range []struct {
		msg    string
		reason ingest.Reason
		column int
	}{
		{`{`, ingest.ReasonInvalidJSON, 2},
		{`{"policy":"p","reward":1`, ingest.ReasonInvalidJSON, 25},
		{`{"policy":"p","reward":1,}`, ingest.ReasonInvalidJSON, 26},
		{`{,"policy":"p"}`, ingest.ReasonInvalidJSON, 2},
		{`{"policy":"p","reward":1}}`, ingest.ReasonInvalidJSON, 26},
		{`{"policy":"p","reward":1} x`, ingest.ReasonInvalidJSON, 27},
		{`{"policy":"p","reward":1}{"policy":"p","reward":1}`, ingest.ReasonInvalidJSON, 26},
		{`{"policy" "p"}`, ingest.ReasonInvalidJSON, 11},
		{`{policy:"p"}`, ingest.ReasonInvalidJSON, 2},
		{`{'policy':"p"}`, ingest.ReasonInvalidJSON, 2},
		{`{"policy":"p","reward":01}`, ingest.ReasonInvalidJSON, 25},
		{`{"policy":"p","reward":-}`, ingest.ReasonInvalidJSON, 25},
		{`{"policy":"p","reward":1.}`, ingest.ReasonInvalidJSON, 26},
		{`{"policy":"p","reward":.5}`, ingest.ReasonInvalidJSON, 24},
		{`{"policy":"p","reward":+1}`, ingest.ReasonInvalidJSON, 24},
		{`{"policy":"p","reward":1e}`, ingest.ReasonInvalidJSON, 26},
		{`{"policy":"p","reward":1e+}`, ingest.ReasonInvalidJSON, 27},
		{`{"policy":"p","reward":0x1F}`, ingest.ReasonInvalidJSON, 25},
		{`{"policy":"p","reward":1_000}`, ingest.ReasonInvalidJSON, 25},
		{`{"policy":"p","reward":NaNs}`, ingest.ReasonInvalidJSON, 24},
		{`{"policy":"p","reward":infinit}`, ingest.ReasonInvalidJSON, 24},
		{`{"policy":"p","reward":nul}`, ingest.ReasonInvalidJSON, 24},
		{`{"policy":"p","reward":nulll}`, ingest.ReasonInvalidJSON, 28},
		{`{"policy":"p","terminated":tru}`, ingest.ReasonInvalidJSON, 28},
		{`{"policy":"p","terminated":True}`, ingest.ReasonInvalidJSON, 28},
		{`{"policy":"p","unknown":[1,]}`, ingest.ReasonInvalidJSON, 28},
		{`{"policy":"p","unknown":{"a":1,}}`, ingest.ReasonInvalidJSON, 32},
		{`{"policy":"p","unknown":[1 2]}`, ingest.ReasonInvalidJSON, 28},
		{`{"policy":"p","unknown":"\x"}`, ingest.ReasonInvalidJSON, 26},
		{`{"policy":"p","unknown":"\u12g4"}`, ingest.ReasonInvalidJSON, 26},
		{`{"policy":"p","unknown":"\`, ingest.ReasonInvalidJSON, 27},
		{`{"policy":"p","unknown":"abc`, ingest.ReasonInvalidJSON, 29},
		{"{\"policy\":\"p\",\"unknown\":\"tab\there\"}", ingest.ReasonInvalidJSON, 29},
		{"{\"policy\":\"p\",\x00\"reward\":1}", ingest.ReasonInvalidJSON, 15},
		{"{\"policy\":\"p\",\"unknown\":\"a\x00\"}", ingest.ReasonInvalidJSON, 27},
		{"\xef\xbb\xbf{\"policy\":\"p\",\"reward\":1}", ingest.ReasonInvalidJSON, 1},
		{"\x00", ingest.ReasonInvalidJSON, 1},
		{`nonsense`, ingest.ReasonInvalidJSON, 1},

		{"{\"policy\":\"\xff\",\"reward\":1}", ingest.ReasonInvalidUTF8, 12},
		{"{\"policy\":\"p\",\"unknown\":\"a\xc3\"}", ingest.ReasonInvalidUTF8, 27},
		{"{\"policy\":\"p\",\"unknown\":\"\xed\xa0\x80\"}", ingest.ReasonInvalidUTF8, 26},
		{`{"policy":"p","unknown":"\ud83d"}`, ingest.ReasonInvalidUTF8, 26},
		{`{"policy":"p","unknown":"\ude00\ud83d"}`, ingest.ReasonInvalidUTF8, 26},
		{`{"policy":"p","unknown":"\ud83dx"}`, ingest.ReasonInvalidUTF8, 26},

		{`{"policy":"p","unknown":` + deep(ingest.MaxDepth) + `}`, ingest.ReasonTooDeep, 25 + ingest.MaxDepth - 1},
		{deep(100_000), ingest.ReasonTooDeep, ingest.MaxDepth + 1},
		{strings.Repeat(`{"a":`, 100_000), ingest.ReasonTooDeep, 5*ingest.MaxDepth + 1},
		{`{"policy":"p","unknown":"` + strings.Repeat("x", ingest.DefaultMaxRecord) + `"}`, ingest.ReasonTooLarge, 0},

		{`[]`, ingest.ReasonWrongType, 1},
		{`"text"`, ingest.ReasonWrongType, 1},
		{`12`, ingest.ReasonWrongType, 1},
		{`null`, ingest.ReasonWrongType, 1},
		{`{"policy":true}`, ingest.ReasonWrongType, 11},
		{`{"policy":["p"]}`, ingest.ReasonWrongType, 11},
		{`{"policy":NaN}`, ingest.ReasonWrongType, 11},
		{`{"policy":"p","reward":"1.5"}`, ingest.ReasonWrongType, 24},
		{`{"policy":"p","reward":true}`, ingest.ReasonWrongType, 24},
		{`{"policy":"p","reward":[1]}`, ingest.ReasonWrongType, 24},
		{`{"policy":"p","reward":{}}`, ingest.ReasonWrongType, 24},
		{`{"policy":"p","action":{}}`, ingest.ReasonWrongType, 24},
		{`{"policy":"p","action":[[1]]}`, ingest.ReasonWrongType, 25},
		{`{"policy":"p","action":["a"]}`, ingest.ReasonWrongType, 25},
		{`{"policy":"p","observation":"text"}`, ingest.ReasonWrongType, 29},
		{`{"policy":"p","next_observation":"text"}`, ingest.ReasonWrongType, 34},
		{`{"policy":"p","action_prob":[0.5]}`, ingest.ReasonWrongType, 29},
		{`{"policy":"p","outcomes":[1]}`, ingest.ReasonWrongType, 26},
		{`{"policy":"p","outcomes":{"a":"b"}}`, ingest.ReasonWrongType, 31},
		{`{"policy":"p","outcomes":{"a":{}}}`, ingest.ReasonWrongType, 31},
		{`{"policy":"p","reward_components":1}`, ingest.ReasonWrongType, 35},
		{`{"policy":"p","labels":[]}`, ingest.ReasonWrongType, 24},
		{`{"policy":"p","labels":{"a":{}}}`, ingest.ReasonWrongType, 29},
		{`{"policy":"p","terminated":1}`, ingest.ReasonWrongType, 28},
		{`{"policy":"p","truncated":"true"}`, ingest.ReasonWrongType, 27},
		{`{"policy":"p","step":"1"}`, ingest.ReasonWrongType, 22},
		{`{"policy":"p","step":1.5}`, ingest.ReasonWrongType, 22},
		{`{"policy":"p","step":-Infinity}`, ingest.ReasonWrongType, 22},
		{`{"policy":"p","episode":5}`, ingest.ReasonWrongType, 25},
		{`{"policy":"p","episode":{"r":"x"}}`, ingest.ReasonWrongType, 30},
		{`{"policy":"p","agent_id":false}`, ingest.ReasonWrongType, 26},
		{`{"policy":"p","ts":true}`, ingest.ReasonWrongType, 20},
		{`{"policy":"p","ts":[]}`, ingest.ReasonWrongType, 20},

		{`{"policy":"p","step":-1}`, ingest.ReasonOutOfRange, 22},
		{`{"policy":"p","step":9223372036854775808}`, ingest.ReasonOutOfRange, 22},
		{`{"policy":"p","step":1e999}`, ingest.ReasonOutOfRange, 22},
		{`{"policy":"p","episode":{"r":1,"l":-1}}`, ingest.ReasonOutOfRange, 36},

		{`{"policy":"p","ts":-1}`, ingest.ReasonBadTimestamp, 20},
		{`{"policy":"p","ts":1e300}`, ingest.ReasonBadTimestamp, 20},
		{`{"policy":"p","ts":""}`, ingest.ReasonBadTimestamp, 20},
		{`{"policy":"p","ts":"yesterday"}`, ingest.ReasonBadTimestamp, 20},

		{`{"reward":1}`, ingest.ReasonMissingPolicy, 0},
		{`{"policy":null,"reward":1}`, ingest.ReasonMissingPolicy, 0},
		{`{"policy":"","reward":1}`, ingest.ReasonMissingPolicy, 0},
		{`{}`, ingest.ReasonMissingPolicy, 0},
		{`{"policy":"p"}`, ingest.ReasonEmptyRecord, 0},
		{`{"policy":"p","reward":null,"action":[],"outcomes":{},"observation":[1]}`, ingest.ReasonEmptyRecord, 0},
		{" \n\r\n\t", ingest.ReasonEmptyRecord, 0},
		{`{"policy":"p","episode":{}}`, ingest.ReasonMissingReturn, 25},
		{`{"policy":"p","episode":{"r":null,"l":3}}`, ingest.ReasonMissingReturn, 25},

		{`{"policy":"` + long + `"}`, ingest.ReasonStringTooLong, 11},
		{`{"policy":"p","agent_id":"` + long + `"}`, ingest.ReasonStringTooLong, 26},
		{`{"policy":"p","outcomes":{"` + long + `":1}}`, ingest.ReasonStringTooLong, 27},
		{`{"policy":"p","labels":{"a":"` + long + `"}}`, ingest.ReasonStringTooLong, 29},
		{`{"policy":"p","env":1` + strings.Repeat("0", ingest.MaxString) + `}`, ingest.ReasonStringTooLong, 21},
		{`{"policy":"a\u0000b"}`, ingest.ReasonNUL, 11},
		{`{"policy":"p","labels":{"\u0000":"x"}}`, ingest.ReasonNUL, 25},

		{`{"policy":"p","action":[` + many(ingest.MaxValues+1, strconv.Itoa) + `]}`, ingest.ReasonTooManyValues, -1},
		{`{"policy":"p","observation":[` + many(ingest.MaxValues+1, strconv.Itoa) + `]}`, ingest.ReasonTooManyValues, -1},
		{`{"policy":"p","observation":{` + many(ingest.MaxValues+1, named) + `}}`, ingest.ReasonTooManyValues, -1},
		{`{"policy":"p","action":[` + many(ingest.MaxValues, strconv.Itoa) + `],"outcomes":{"a":1}}`, ingest.ReasonTooManyValues, -1},
		{`{"policy":"p","labels":{` + many(ingest.MaxLabels+1, named) + `}}`, ingest.ReasonTooManyValues, -1},
	} {
		events, refused := decodeAll(c.msg)
		name := c.msg[:min(len(c.msg), 80)]
		if len(events) != 0 || len(refused) != 1 {
			t.Errorf("%q: %d events and %d refusals, want only one refusal", name, len(events), len(refused))
			continue
		}
		e := refused[0]
		if e.Reason != c.reason || c.column >= 0 && e.Column != c.column {
			t.Errorf("%q: refused with %v, want %s at column %d", name, e, c.reason, c.column)
		}
		if e.Size != int64(len(c.msg)) {
			t.Errorf("%q: size %d, want %d", name, e.Size, len(c.msg))
		}
	}
}

func TestDecodeTakesWhatTheBoundsAllow(t *testing.T) {
	var b strings.Builder
	for i := range ingest.MaxValues {
		fmt.Fprintf(&b, `"n%d":%d,`, i, i)
	}
	e := decodeOne(t,
		`{"policy":"p","reward":1,"observation":{`+strings.TrimSuffix(b.String(), ",")+`}}`)
	if len(e.Observation) != ingest.MaxValues || e.Observation[ingest.MaxValues-1] != (ingest.Value{Name: "n1023", X: 1023}) {
		t.Errorf("%d values, want %d in order", len(e.Observation), ingest.MaxValues)
	}
	decodeOne(t, `{"policy":"`+strings.Repeat("x", ingest.MaxString)+`","reward":1}`)
	decodeOne(t, `{"policy":"p","reward":1,"x":`+strings.Repeat(`[`, ingest.MaxDepth-1)+strings.Repeat(`]`, ingest.MaxDepth-1)+`}`)
}

func TestDecodeLongObjectWithRepeatedNames(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, `"n%d":%d,`, i%100, i)
	}
	e := decodeOne(t, `{"policy":"p","outcomes":{`+strings.TrimSuffix(b.String(), ",")+`},"reward_components":{"z":0,`+strings.TrimSuffix(b.String(), ",")+`}}`)
	if len(e.Outcomes) != 100 {
		t.Fatalf("%d outcomes, want 100", len(e.Outcomes))
	}
	for i, v := range e.Outcomes {
		if v != (ingest.Value{Name: fmt.Sprintf("n%d", i), X: float64(100 + i)}) {
			t.Fatalf("outcome %d is %v: the last of a repeated name must hold", i, v)
		}
	}
	if len(e.RewardComponents) != 101 || e.RewardComponents[0] != (ingest.Value{Name: "z", X: 0}) || e.RewardComponents[100] != (ingest.Value{Name: "n99", X: 199}) {
		t.Errorf("the places of the names of one object were used for the next: %v", e.RewardComponents)
	}
}

func TestDecodeLines(t *testing.T) {
	msg := "\n{\"policy\":\"a\",\"reward\":1}\r\n   \n{broken\n{\"policy\":\"b\",\"reward\":2}\n\n[]\n{\"policy\":\"c\",\"reward\":3}"
	var raws []string
	var places []string
	events := newDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord}).Decode(nil, &ingest.Message{Value: []byte(msg), Pos: ingest.Position{Partition: 1, Offset: 9}},
		func(e *ingest.RecordError, raw []byte) {
			raws = append(raws, string(raw))
			places = append(places, e.Error())
		})
	var got []string
	for _, e := range events {
		got = append(got, e.Policy+" "+e.Pos.String())
	}
	if want := []string{"a 1/9", "b 1/9/2", "c 1/9/4"}; !reflect.DeepEqual(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if want := []string{"{broken", "[]"}; !reflect.DeepEqual(raws, want) {
		t.Errorf("refused %q, want %q", raws, want)
	}
	want := []string{
		`record 1/9/1, column 2: invalid_json: expected a quoted key, found "b"`,
		"record 1/9/3, column 1: wrong_type: a record must be a JSON object",
	}
	if !reflect.DeepEqual(places, want) {
		t.Errorf("errors %q, want %q", places, want)
	}
}

// 6.6 kB of bad lines resulted in as many dead letters, and delayed their partition by a minute.
func TestRefusalsOfAMessageAreCapped(t *testing.T) {
	good := `{"policy":"a","reward":1}` + "\n"
	d := newDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	for name, test := range map[string]struct {
		msg                     string
		accepted, refused, kept int
	}{
		"as many as are kept":  {strings.Repeat("x\n", ingest.MaxRefusals), 0, ingest.MaxRefusals, ingest.MaxRefusals},
		"one more":             {strings.Repeat("x\n", ingest.MaxRefusals+1), 0, ingest.MaxRefusals + 1, ingest.MaxRefusals},
		"6.6 kB":               {strings.Repeat("x\n", 3300), 0, 3300, ingest.MaxRefusals},
		"a megabyte":           {strings.Repeat("x\n", 1<<19), 0, 1 << 19, ingest.MaxRefusals},
		"good ones among them": {strings.Repeat("x\n", 500) + good + strings.Repeat("[]\n", 500) + good, 2, 1000, ingest.MaxRefusals},
		"good ones alone":      {strings.Repeat(good, 500), 500, 0, 0},
	} {
		for range 2 { // each message has its own
			refused, kept := 0, 0
			events := d.Decode(nil, &ingest.Message{Value: []byte(test.msg)}, func(e *ingest.RecordError, raw []byte) {
				refused++
				if raw != nil {
					kept++
				}
				if e.Reason == "" || e.Size == 0 {
					t.Errorf("%s: %+v", name, e)
				}
			})
			if len(events) != test.accepted || refused != test.refused || kept != test.kept {
				t.Errorf("%s: %d accepted, %d rejected, %d kept", name, len(events), refused, kept)
			}
		}
	}
}

// A batch of several messages must remain intact while further messages are decoded, even if the caller reads each of
// them into the same buffer.
func TestDecodeKeepsTheBatch(t *testing.T) {
	d := newDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	refuse := func(e *ingest.RecordError, _ []byte) { t.Error(e) }
	var events []ingest.Event
	const n = 500
	buf := make([]byte, 0, 256)
	for range 2 {
		events = events[:0]
		d.Reset()
		for i := range n {
			buf = fmt.Appendf(buf[:0], `{"policy":"p","agent_id":"\u0061%d","episode_id":"e%d","labels":{"l":"v%d"},"reward":1}`, i, i, i)
			events = d.Decode(events, &ingest.Message{Value: buf, Pos: ingest.Position{Offset: int64(i)}}, refuse)
		}
		clear(buf)
		for i, e := range events {
			if e.AgentID != fmt.Sprintf("a%d", i) || e.EpisodeID != fmt.Sprintf("e%d", i) || e.Labels[0].Value != fmt.Sprintf("v%d", i) {
				t.Fatalf("event %d was overwritten: %+v", i, e)
			}
		}
	}
}

// An event that replaces another one must contain nothing of it.
func TestDecodeClearsUsedEvents(t *testing.T) {
	d := newDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	refuse := func(*ingest.RecordError, []byte) {}
	full := `{"policy":"p","env":"e","ts":5,"policy_version":"1","agent_id":"a","episode_id":"x","step":3,"reward":1,"action":[1,2],` +
		`"observation":[1],"outcomes":{"o":1},"reward_components":{"c":1},"labels":{"l":"v"},"terminated":true,"truncated":true,"episode":{"r":1,"l":2}}`
	events := d.Decode(nil, &ingest.Message{Value: []byte(full)}, refuse)
	events = d.Decode(events[:0], &ingest.Message{Value: []byte(full[:len(full)-1])}, refuse)
	if len(events) != 0 {
		t.Fatal("a truncated record was accepted")
	}
	events = d.Decode(events[:0], &ingest.Message{Value: []byte(`{"policy":"q","reward":0}`)}, refuse)
	want := ingest.Event{Policy: "q", HasReward: true, Step: -1, Length: -1}
	if show(events[0]) != show(want) {
		t.Errorf("got  %s\nwant %s", show(events[0]), show(want))
	}
}

// Images and embeddings within an observation are left out. An observation that is itself a flat array is not.
func TestDecodeLargeArraysInObservations(t *testing.T) {
	image := func(rows, columns int) string {
		row := "[" + strings.Repeat("1,", columns-1) + "1]"
		return "[" + strings.Repeat(row+",", rows-1) + row + "]"
	}
	for _, c := range []struct {
		observation string
		numbers     int
	}{
		{`{"x":7,"lidar":` + image(1, 254) + `}`, 255},
		{`{"x":7,"grid":` + image(15, 16) + `}`, 1 + 240},
		{`{"x":7,"grid":` + image(16, 16) + `}`, 1},
		{`{"x":7,"frame":{"pixels":` + image(84, 84) + `,"t":1}}`, 2},
		{image(15, 16), 240},
		{`{"x":7,"image":[` + image(2, 2) + `,` + image(2, 2) + `]}`, 1},
		{image(84, 84), 0},
		{`[7,` + image(84, 84) + `,[1]]`, 1},
		{strings.TrimSuffix(image(1, 300)[1:], "]"), 300},
		{`{"x":7,"units":[` + strings.Repeat(`{"a":`+image(1, 26)[1:27]+`]},`, 39) + `{}]}`, 1 + 39*13},
		{`{"x":7,"units":[` + strings.Repeat(`{"a":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]},`, 39) + `{}],"y":8}`, 2 + mostParts},
		{`{"x":7,"` + strings.Repeat("n", 600) + `":{"` + strings.Repeat("m", 600) + `":1,"k":2},"n":{"\u0000":1}}`, 2},
	} {
		e := decodeOne(t, `{"policy":"p","reward":0,"observation":`+c.observation+`}`)
		if len(e.Observation) != c.numbers {
			t.Errorf("%d numbers of %.60s, want %d", len(e.Observation), c.observation, c.numbers)
		}
	}
}

// Each byte is read only a few times, even with deeply nested arrays.
func TestDecodeOfManyArraysIsLinear(t *testing.T) {
	cost := func(of int) time.Duration {
		record := []byte(`{"policy":"p","reward":1,"observation":[{"x":[` + strings.Repeat("{},", 4*of) + `{}]}` + strings.Repeat(",[]", of) + `]}`)
		d := newDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
		least := time.Hour
		for range 5 {
			began := time.Now()
			d.Decode(nil, &ingest.Message{Value: record}, func(e *ingest.RecordError, _ []byte) { t.Error(e) })
			least = min(least, time.Since(began))
		}
		return least
	}
	if small, large := cost(60), cost(600); large > 40*small {
		t.Errorf("600 arrays take %s, 60 take %s", large, small)
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	d := newDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	refuse := func(e *ingest.RecordError, _ []byte) { t.Error(e) }
	escaped := strings.Replace(exampleEvent, `"a-17/881"`, `"a-17\/\u0038ü"`, 1)
	array := `{"policy":"p","ts":1795168800.25,"action":[0.1,0.2],"observation":[1,2,3],"episode":{"r":1,"l":5}}`
	nested := `{"policy":"p","reward":1,"observation":{"arm":{"position":[1,2],"\u0076":[[3],[4]]},"image":[[` + strings.Repeat("0,", 300) + `0]]}}`
	msg := []byte(exampleEvent + "\n" + escaped + "\n" + array + "\n" + nested)
	var dst []ingest.Event
	batch := func() {
		d.Reset()
		dst = dst[:0]
		for range 50 {
			dst = d.Decode(dst, &ingest.Message{Value: msg}, refuse)
		}
	}
	batch()
	if n := testing.AllocsPerRun(20, batch); n != 0 {
		t.Errorf("%v allocations a batch, want none", n)
	}
}

func TestDecodeManyBlankLines(t *testing.T) {
	events, refused := decodeAll(strings.Repeat("\n", 1<<20) + `{"policy":"p","reward":1}`)
	if len(events) != 1 || len(refused) != 0 || events[0].Pos.Record != 0 {
		t.Errorf("%d events, %d refusals", len(events), len(refused))
	}
}

func TestTimestamps(t *testing.T) {
	at := func(s string) int64 {
		tm, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return tm.UnixNano()
	}
	for _, c := range []struct {
		ts   string
		want int64
	}{
		{`0`, 0},
		{`-0.0`, 0},
		{`1`, 1e9},
		{`0.5`, 5e8},
		{`1795168800`, 1795168800e9},
		{`1795168800.123456789`, 1795168800123456789},
		{`1795168800.1234567899`, 1795168800123456789},
		{`1795168800.12345678901234567890123`, 1795168800123456789},
		{`1.795168800123e9`, 1795168800123e6},
		{`1795168800000e-3`, 1795168800e9},
		{`1795168800123`, 1795168800123e6},
		{`1795168800123.5`, 17951688001235e5},
		{`1795168800123456`, 1795168800123456e3},
		{`1795168800123456789`, 1795168800123456789},
		{`9223372036`, 9223372036e9},
		{`9223372036854775807`, math.MaxInt64},
		{`0.0000000001`, 0},
		{`1e-300`, 0},
		{`"2026-11-20T10:00:00Z"`, at("2026-11-20T10:00:00Z")},
		{`"2026-11-20t10:00:00.5z"`, at("2026-11-20T10:00:00.5Z")},
		{`"2026-11-20 10:00:00.123456+05:30"`, at("2026-11-20T10:00:00.123456+05:30")},
		{`"2026-11-20T10:00:00.1234567891-08:00"`, at("2026-11-20T10:00:00.123456789-08:00")},
		{`"2016-12-31T23:59:60Z"`, at("2017-01-01T00:00:00Z")},
		{`"1970-01-01T00:00:00Z"`, 0},
		{`"1969-12-31T23:00:00-01:00"`, 0},
		{`"2024-02-29T00:00:00Z"`, at("2024-02-29T00:00:00Z")},
		{`"2262-04-11T23:47:15Z"`, at("2262-04-11T23:47:15Z")},
		{`"2026-11-20T10:00:0\u0030Z"`, at("2026-11-20T10:00:00Z")},
	} {
		if got := decodeOne(t, `{"policy":"p","reward":1,"ts":`+c.ts+`}`).TS; got != c.want {
			t.Errorf("ts %s: %d, want %d", c.ts, got, c.want)
		}
	}
	for _, ts := range []string{
		`-1`, `-0.001`, `9223372036854775808`, `1e19`, `1e20`, `99999999999`, `20000000000`, `1e999`, `"NaN"`, `"1795168800"`,
		`"2026-11-20"`, `"2026-11-20T10:00:00"`, `"2026-11-20T10:00Z"`, `"2026-02-29T00:00:00Z"`, `"2026-13-01T00:00:00Z"`,
		`"2026-00-01T00:00:00Z"`, `"2026-01-00T00:00:00Z"`, `"2026-04-31T00:00:00Z"`, `"2100-02-29T00:00:00Z"`,
		`"2026-01-01T24:00:00Z"`, `"2026-01-01T00:60:00Z"`, `"2026-01-01T00:00:61Z"`, `"2026-01-01T00:00:00.Z"`,
		`"2026-01-01T00:00:00,5Z"`, `"2026-01-01T00:00:00+0100"`, `"2026-01-01T00:00:00+24:00"`, `"2026-01-01T00:00:00+01:60"`,
		`"2026-01-01T00:00:00ZZ"`, `"1969-12-31T23:59:59Z"`, `"0001-01-01T00:00:00Z"`, `"2263-01-01T00:00:00Z"`,
		`"20a6-01-01T00:00:00Z"`, `"2026-0a-01T00:00:00Z"`, `"2026-01-01Ta0:00:00Z"`, `"a026-01-01T00:00:00Z"`,
	} {
		_, refused := decodeAll(`{"policy":"p","reward":1,"ts":` + ts + `}`)
		if len(refused) != 1 || refused[0].Reason != ingest.ReasonBadTimestamp {
			t.Errorf("ts %s: refusals %v, want %s", ts, refused, ingest.ReasonBadTimestamp)
		}
	}
}

// TestRFC3339AgainstTime compares every day of the years 1970 to 2261 with the standard library.
func TestRFC3339AgainstTime(t *testing.T) {
	end := time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)
	var b []byte
	for tm := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC); tm.Before(end); tm = tm.Add(24*time.Hour + 4321*time.Millisecond) {
		b = tm.AppendFormat(b[:0], time.RFC3339Nano)
		if got, ok := parseTime(b, nil); !ok || got != tm.UnixNano() {
			t.Fatalf("%s: %d %v, want %d", b, got, ok, tm.UnixNano())
		}
	}
}

// TestTimesInAZone compares every quarter of an hour of two years in a zone with daylight saving time with the standard
// library, in which a time exists twice where clocks go back, and does not exist where they go forward.
func TestTimesInAZone(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	differ := 0
	for tm := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC); tm.Year() < 2028; tm = tm.Add(15*time.Minute + 123456789) {
		text := tm.In(zone).Format("2006-01-02T15:04:05.999999999")
		got, ok := parseTime([]byte(text), zone)
		if !ok {
			t.Fatalf("%s: not read", text)
		}
		if got != tm.UnixNano() {
			differ++
			if tm.UnixNano()-got != int64(time.Hour) {
				t.Fatalf("%s: %d, want %d", text, got, tm.UnixNano())
			}
		}
	}
	if differ != 8 { // the second of two hours, in each of two years
		t.Errorf("%d times are read as an hour earlier", differ)
	}
	for text, want := range map[string]time.Time{
		"20.11.2026": time.Date(2026, 11, 19, 23, 0, 0, 0, time.UTC), "20.11.2026 10:15": time.Date(2026, 11, 20, 9, 15, 0, 0, time.UTC), "20.11.2026 10:15:30,5": time.Date(2026, 11, 20, 9, 15, 30, 5e8, time.UTC),
		"2026-11-20T10:15": time.Date(2026, 11, 20, 9, 15, 0, 0, time.UTC), "2026-11-20 10:15": time.Date(2026, 11, 20, 9, 15, 0, 0, time.UTC),
		"2026-07-01": time.Date(2026, 6, 30, 22, 0, 0, 0, time.UTC),
	} {
		if got, ok := parseTime([]byte(text), zone); !ok || got != want.UnixNano() {
			t.Errorf("%s: %d, %v", text, got, ok)
		}
		if _, ok := parseTime([]byte(text), nil); ok {
			t.Errorf("%s is read without a zone", text)
		}
	}
	if got, _ := parseTime([]byte("2026-03-29T02:30:00"), zone); got != time.Date(2026, 3, 29, 1, 30, 0, 0, time.UTC).UnixNano() {
		t.Errorf("a time that clocks do not show is read as %d", got)
	}
	for _, text := range []string{"2026-11-20T10:00:00+1", "2026-11-20T10:00:00+01000", "2026-11-20T10:00:00 ", "2026-11-20T10:0", "2026-11-2", "20.11.26 10:15:00", "31.02.2026", "20.13.2026", "20.11.2026 10", "20.11.2026 10:15:00.1234567890123456789012345678", "2026-11-20 ", "2026-11-20T10:61", "2026-13-20", "2026-11-20T10:00:00+0160"} {
		if got, ok := parseTime([]byte(text), zone); ok {
			t.Errorf("%s: read as %d", text, got)
		}
	}
}

func TestNumbersAgainstStrconv(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	d := newDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	for range 200_000 {
		mantissa := r.Uint64() >> r.IntN(60)
		text := strconv.FormatUint(mantissa, 10) + "e" + strconv.Itoa(r.IntN(60)-30)
		d.rec, d.at = []byte(text), 0
		n, ok := d.numeral()
		want, err := strconv.ParseFloat(text, 64)
		if got := n.float(); !ok || err != nil || got != want {
			t.Fatalf("%s: %v, want %v (%v)", text, got, want, err)
		}
	}
}

func TestPlainEnd(t *testing.T) {
	for at := range 40 {
		for c := range 256 {
			b := bytes.Repeat([]byte{'a'}, 40)
			b[at] = byte(c)
			b[39] = '"'
			want := at
			if c != '"' && c != '\\' && c >= ' ' && c < 0x80 || at == 39 {
				want = 39
			}
			if got := plainEnd(b, 0); got != want {
				t.Fatalf("byte %#x at %d: %d, want %d", c, at, got, want)
			}
		}
	}
}
