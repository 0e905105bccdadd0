package cli

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/replay"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/protobuf/telemetrypb"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

// message is a message of a team's existing topic.
type message struct {
	topic   string
	at      time.Time
	key     string
	headers map[string]string
	value   []byte
}

// team is a shape of telemetry that contains a drift. Its records depend on random numbers and on whether the drift has
// begun.
type team struct {
	name   string
	n      int                                                         // number of decisions, one per second; the drift is in the last third
	record func(w *world, i int, at time.Time, drifted bool) []message // returns what becomes known by the i-th decision
	edits  []string                                                    // changes of the proposal's lines by hand, each "old => new"
	topics string                                                      // configuration of the topics before the inspection
	signal string                                                      // signal that drifts
}

// world generates the records of a team.
type world struct {
	*rand.Rand
	later    map[int][]message // by the decision with which they arrive
	registry *ingesttest.SchemaRegistry
	schemas  map[string]*avro.Schema
	ids      map[string]int
}

// after makes a message arrive with a later decision.
func (w *world) after(i, decisions int, m message) {
	w.later[i+decisions] = append(w.later[i+decisions], m)
}

// soon returns an exponential delay, in decisions.
func (w *world) soon(mean float64) int { return 1 + int(w.ExpFloat64()*mean) }

func js(v any) []byte {
	text, _ := json.Marshal(v) // of maps and numbers, which cannot fail
	return text
}

type object = map[string]any

// framed returns a value in Confluent's wire format.
func (w *world) framed(name, schema string, value any) []byte {
	if w.schemas[name] == nil {
		w.schemas[name], w.ids[name] = avro.MustParse(schema), w.registry.Put(name, "AVRO", schema)
	}
	body, err := w.schemas[name].Encode(value)
	if err != nil {
		panic(err)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(w.ids[name])), body...)
}

// logs returns an OTLP request with one log record.
func logs(service string, at time.Time, event string, attributes object) []byte {
	list := func(of object) (out []*commonpb.KeyValue) {
		for name, value := range of {
			v := &commonpb.AnyValue{}
			switch x := value.(type) {
			case string:
				v.Value = &commonpb.AnyValue_StringValue{StringValue: x}
			case float64:
				v.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: x}
			case bool:
				v.Value = &commonpb.AnyValue_BoolValue{BoolValue: x}
			case int:
				v.Value = &commonpb.AnyValue_IntValue{IntValue: int64(x)}
			}
			out = append(out, &commonpb.KeyValue{Key: name, Value: v})
		}
		return out
	}
	text, err := proto.Marshal(&logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{
		Resource: &resourcepb.Resource{Attributes: list(object{"service.name": service})},
		ScopeLogs: []*logspb.ScopeLogs{{LogRecords: []*logspb.LogRecord{
			{TimeUnixNano: uint64(at.UnixNano()), EventName: event, Attributes: list(attributes)},
		}}},
	}}})
	if err != nil {
		panic(err)
	}
	return text
}

// messages returns everything that a team has written, by time.
func (team team) messages(w *world) (all []message) {
	start := time.Now().Add(-time.Duration(team.n+1000) * time.Second).Truncate(time.Minute)
	for i := range team.n {
		at := start.Add(time.Duration(i) * time.Second)
		all = append(all, team.record(w, i, at, i >= team.n*2/3)...)
		for _, m := range w.later[i] {
			m.at = at.Add(100 * time.Millisecond)
			all = append(all, m)
		}
		delete(w.later, i)
	}
	return all
}

// produceTo writes messages to topics with one partition each.
func produceTo(t *testing.T, broker string, messages []message) (topics []string) {
	t.Helper()
	return produceOver(t, broker, messages, nil)
}

// produceOver writes messages to topics with the given numbers of partitions, in turns, regardless of their keys.
func produceOver(t *testing.T, broker string, messages []message, partitions map[string]int32) (topics []string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	create := kmsg.NewPtrCreateTopicsRequest()
	var records []*kgo.Record
	written := map[string]int32{}
	for _, m := range messages {
		if !slices.Contains(topics, m.topic) {
			topics = append(topics, m.topic)
			topic := kmsg.NewCreateTopicsRequestTopic()
			topic.Topic, topic.NumPartitions, topic.ReplicationFactor = m.topic, max(1, partitions[m.topic]), 1
			create.Topics = append(create.Topics, topic)
		}
		r := &kgo.Record{Topic: m.topic, Partition: written[m.topic] % max(1, partitions[m.topic]), Timestamp: m.at, Value: m.value}
		written[m.topic]++
		if m.key != "" {
			r.Key = []byte(m.key)
		}
		for name, text := range m.headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(text)})
		}
		records = append(records, r)
	}
	if _, err := create.RequestWith(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return topics
}

// edited changes lines of a proposal like a person.
func edited(t *testing.T, file string, edits []string) {
	t.Helper()
	if len(edits) > 3 {
		t.Fatalf("%d lines are changed by hand", len(edits))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := string(text)
	for _, edit := range edits {
		old, now, _ := strings.Cut(edit, " => ")
		if strings.Count(out, old) != 1 {
			t.Fatalf("%q is not one line of\n%s", old, text)
		}
		out = strings.Replace(out, old, now, 1)
	}
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newWorld sets up what the records of a team need.
func newWorld(t *testing.T) *world {
	registry := ingesttest.NewSchemaRegistry()
	t.Cleanup(registry.Close)
	return &world{
		Rand: rand.New(rand.NewPCG(7, 7)), later: map[int][]message{}, registry: registry, schemas: map[string]*avro.Schema{}, ids: map[string]int{},
	}
}

// proposal inspects topics or files, and returns the file with the proposal, with the changes by hand.
func (team team) proposal(t *testing.T, broker string, args ...string) (file, report string) {
	t.Helper()
	dir := t.TempDir()
	base, proposed := testkit.WriteConfig(t, fmt.Sprintf(`
ingest: {kafka: {brokers: [%q], topics: [%s]}, dead_letters: {directory: %q}}
checkpoint: {directory: %q, every: 1s}
retrain: {ledger: {sqlite: %q}}
http: {listen: "127.0.0.1:0"}
`, broker, team.topics, filepath.Join(dir, "dead-letters"), filepath.Join(dir, "checkpoints"), filepath.Join(dir, "ledger.db"))), filepath.Join(dir, "rewardwatch.yml")
	stdout, stderr, code := commandLine(t, append([]string{"inspect", "--config", base, "--propose", proposed}, args...)...)
	if code != exitFine {
		t.Fatalf("exit %d, %s\n%s", code, stderr, stdout)
	}
	edited(t, proposed, team.edits)
	if stdout, stderr, code := commandLine(t, "validate", proposed); code != exitFine {
		t.Fatalf("exit %d, %s%s", code, stdout, stderr)
	}
	return proposed, stdout
}

// testTeam inspects the telemetry of a team, starts the service as proposed, and looks for the drift.
func testTeam(t *testing.T, team team) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	w := newWorld(t)
	all := team.messages(w)
	broker := startBroker(t, 1)
	args := produceTo(t, broker, all)
	if len(w.ids) > 0 {
		args = append(args, "--registry", w.registry.URL)
	}
	proposed, report := team.proposal(t, broker, args...)
	p := startService(t, proposed)
	changed := all[len(all)*2/3].at
	var alarms []string
	found := false
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(time.Minute); !found && time.Now().Before(deadline); <-poll.C {
		found, alarms = team.found(p, changed)
	}
	if !found {
		config, _ := os.ReadFile(proposed)
		t.Errorf("alarms %q, changed at %s\n%s\n%s", alarms, changed, report, config)
	}
	p.interrupt(t)
}

// found reports whether the drift is among the alarms.
func (team team) found(p *process, changed time.Time) (found bool, alarms []string) {
	var a struct {
		Alarms []struct {
			Policy, Signal, State string
			Group                 map[string]string
			At                    struct{ TS time.Time }
		}
	}
	p.get("/api/v1/alarms", &a)
	for _, alarm := range a.Alarms {
		alarms = append(alarms, fmt.Sprint(alarm.Policy, " ", alarm.Group, " ", alarm.Signal, " ", alarm.At.TS))
		found = found || alarm.Signal == team.signal && alarm.At.TS.After(changed.Add(-time.Minute))
	}
	return found, alarms
}

// teams returns the shapes that the proposals were developed with.
func teams() []team {
	return []team{
		{
			name: "other names and nesting, milliseconds, clicks in the same topic", n: 9000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				rate, id := .25, fmt.Sprintf("q%08x", w.Uint32())
				if drifted {
					rate = .08
				}
				sku := fmt.Sprint("sku-", w.IntN(7))
				if w.Float64() < rate {
					d := w.soon(25)
					w.after(i, d, message{topic: "web", value: js(object{
						"head": object{"kind": "product_click", "ms": at.Add(time.Duration(d) * time.Second).UnixMilli()}, "body": object{"query": id, "sku": sku, "pixel": w.IntN(900)},
					})})
				}
				return []message{{topic: "web", at: at, value: js(object{
					"head": object{"kind": "list_shown", "ms": at.UnixMilli()},
					"body": object{"query": id, "visitor": object{"id": fmt.Sprint("v", w.IntN(300))}, "sku": sku, "basket": w.NormFloat64(), "engine": "ranker-9"},
				})}}
			},
		},
		{
			name: "decisions and clicks in two topics", n: 9000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				rate, id := .2, fmt.Sprintf("%016x", w.Uint64())
				if drifted {
					rate = .05
				}
				if w.Float64() < rate {
					d := w.soon(40)
					w.after(i, d, message{topic: "taps", key: id, value: js(object{"ref": id, "when": at.Add(time.Duration(d) * time.Second).Format(time.RFC3339)})})
				}
				return []message{{topic: "impressions", at: at, key: id, value: js(object{
					"impression": object{"uid": id, "served": at.Format(time.RFC3339)}, "model": object{"name": "feed", "build": "b12"},
					"chosen": object{"variant": string(rune('a' + w.IntN(4)))}, "user": object{"tenure": w.ExpFloat64(), "segment": fmt.Sprint("s", w.IntN(3))},
				})}}
			},
		},
		{
			name: "Avro with a registry", n: 6000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				const schema = `{"type":"record","name":"Route","namespace":"llm","fields":[{"name":"requestId","type":"string"},
					{"name":"servedAt","type":{"type":"long","logicalType":"timestamp-millis"}},{"name":"model","type":"string"},
					{"name":"tool","type":{"type":"enum","name":"Tool","symbols":["SEARCH","ANSWER","ASK"]}},
					{"name":"score","type":["null","double"]},{"name":"latencyMs","type":"int"}]}`
				score := .6 + .1*w.NormFloat64()
				if drifted {
					score -= .08
				}
				return []message{{topic: "routes", at: at, value: w.framed("Route", schema, object{
					"requestId": fmt.Sprint("r-", i), "servedAt": at, "model": "router-3", "tool": []string{"SEARCH", "ANSWER", "ASK"}[w.IntN(3)],
					"score": score, "latencyMs": 20 + w.IntN(300),
				})}}
			},
		},
		{
			name: "OTLP, results of evaluations", n: 8000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				score := .7 + .1*w.NormFloat64()
				if drifted {
					score -= .1
				}
				return []message{{topic: "otel-logs", at: at, value: logs("helper", at, "gen_ai.evaluation.result", object{
					"gen_ai.evaluation.name": "relevance", "gen_ai.evaluation.score.value": score, "gen_ai.request.model": "m-4", "gen_ai.conversation.id": fmt.Sprint("c", i/10),
				})}}
			},
		},
		{
			name: "CloudEvents of episodes", n: 8000, signal: "return",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				reward := 1 + .5*w.NormFloat64()
				if drifted {
					reward -= .2
				}
				return []message{{topic: "robots", at: at, value: js(object{
					"specversion": "1.0", "id": fmt.Sprint(i), "source": "/cell/4", "type": "step", "time": at.Format(time.RFC3339Nano),
					"data": object{"rollout": i / 8, "tick": i % 8, "command": w.NormFloat64(), "rew": reward, "sensors": []float64{w.NormFloat64(), w.NormFloat64()}, "done": i%8 == 7},
				})}}
			},
		},
	}
}

// The existing topics of a team are joined as inspect proposes, and the drift in them is found.
func TestSimTeamsJoinAsInspectProposes(t *testing.T) {
	for _, team := range teams() {
		t.Run(team.name, func(t *testing.T) { testTeam(t, team) })
	}
}

// others returns shapes that were written after the proposals had worked for teams.
func others() []team {
	return []team{
		{
			name: "no field tells decisions from feedback, times are text in milliseconds", n: 9000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				profit, ref := 3+w.ExpFloat64(), i*7+100_000
				if drifted {
					profit -= .8
				}
				if w.Float64() < .5 {
					d := w.soon(60)
					w.after(i, d, message{topic: "bids", value: js(object{
						"settled_ms": fmt.Sprint(at.Add(time.Duration(d) * time.Second).UnixMilli()), "auction": ref, "payoff": profit,
					})})
				}
				return []message{{topic: "bids", at: at, value: js(object{
					"placed_ms": fmt.Sprint(at.UnixMilli()), "auction": ref, "bidder": fmt.Sprint("b", w.IntN(12)), "bid": 1 + w.Float64(), "floor": w.Float64(), "exchange": fmt.Sprint("x", w.IntN(3)),
				})}}
			},
		},
		{
			name: "the id is the key of the messages of two topics alone", n: 9000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				rate, id := .3, fmt.Sprintf("%x-%x", w.Uint32(), w.Uint32())
				if drifted {
					rate = .15
				}
				if w.Float64() < rate {
					d := w.soon(15)
					w.after(i, d, message{topic: "email-opened", key: id, headers: map[string]string{"trace": fmt.Sprint(w.Uint32())}, value: js(object{
						"openedAt": at.Add(time.Duration(d) * time.Second).UTC().Format(time.RFC3339Nano), "client": []string{"ios", "web"}[w.IntN(2)],
					})})
				}
				return []message{{topic: "email-sent", key: id, at: at, value: js(object{
					"sentAt": at.UTC().Format(time.RFC3339Nano), "template": fmt.Sprint("t", w.IntN(5)), "lang": []string{"de", "en"}[w.IntN(2)], "propensity": .2,
				})}}
			},
		},
		{
			name: "Avro with a registry, two topics, amounts", n: 9000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				const served = `{"type":"record","name":"AdServed","fields":[{"name":"ad_request","type":"long"},{"name":"epoch","type":"long"},
					{"name":"creative","type":"string"},{"name":"viewer","type":["null","string"]},{"name":"ctx","type":{"type":"record","name":"Ctx","fields":[
					{"name":"hour","type":"int"},{"name":"age","type":"float"}]}}]}`
				const sold = `{"type":"record","name":"AdSale","fields":[{"name":"ad_request","type":"long"},{"name":"epoch","type":"long"},{"name":"revenue","type":"double"}]}`
				id, rate := int64(w.Uint32()), .3
				if drifted {
					rate = .15
				}
				if w.Float64() < rate {
					d := w.soon(120)
					w.after(i, d, message{topic: "ad-sales", value: w.framed("AdSale", sold, object{
						"ad_request": id, "epoch": at.Unix() + int64(d), "revenue": 5 + w.ExpFloat64(),
					})})
				}
				return []message{{topic: "ads", at: at, value: w.framed("AdServed", served, object{
					"ad_request": id, "epoch": at.Unix(), "creative": fmt.Sprint("c", w.IntN(6)), "viewer": fmt.Sprint("w", w.IntN(900)),
					"ctx": object{"hour": at.Hour(), "age": float32(20 + w.IntN(50))},
				})}}
			},
		},
		{
			name: "OTLP, steps of an agent as logs of its own", n: 12_000, signal: "return",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				reward := .2 + .3*w.NormFloat64()
				if drifted {
					reward -= .1
				}
				out := []message{{topic: "logs", at: at, value: logs("planner", at, "agent.step", object{
					"run.id": fmt.Sprint("run-", i/6), "agent.step": i % 6, "agent.action": []string{"plan", "call", "reply"}[w.IntN(3)], "agent.reward": reward,
					"agent.done": i%6 == 5, "agent.version": "5",
				})}}
				if i%4 == 0 {
					out = append(out, message{topic: "logs", at: at, value: logs("planner", at, "http.request", object{"url.path": "/x", "http.status": 200})})
				}
				return out
			},
		},
		{
			name: "CloudEvents in binary mode, answers and their grades", n: 9000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				grade, id := 3+w.IntN(3), fmt.Sprintf("answer/%d/%x", i, w.Uint32())
				if drifted {
					grade = 2 + w.IntN(3)
				}
				event := func(kind string, at time.Time) map[string]string {
					return map[string]string{
						"ce_specversion": "1.0", "ce_id": fmt.Sprint(w.Uint64()), "ce_source": "/assistant", "ce_type": kind, "ce_time": at.UTC().Format(time.RFC3339Nano),
						"content-type": "application/json",
					}
				}
				if w.Float64() < .4 {
					d := w.soon(90)
					w.after(i, d, message{topic: "assistant", headers: event("com.acme.answer.rated", at.Add(time.Duration(d)*time.Second)), value: js(object{"answerId": id, "stars": grade})})
				}
				return []message{{topic: "assistant", at: at, headers: event("com.acme.answer.given", at), value: js(object{
					"answerId": id, "model": "helper-8b", "style": []string{"short", "long", "list"}[w.IntN(3)], "promptTokens": 100 + w.IntN(900),
				})}}
			},
		},
	}
}

// thirds returns shapes that were written after the proposals had worked for teams and others.
func thirds() []team {
	return []team{
		{
			name: "a conversation a message, with its turns", n: 4000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				rate := .8
				if drifted {
					rate = .6
				}
				var turns []object
				for k := range 2 + w.IntN(3) {
					verdict := "thumbs_down"
					if w.Float64() < rate {
						verdict = "thumbs_up"
					}
					turns = append(turns, object{"n": k, "intent": []string{"refund", "ship", "other"}[w.IntN(3)], "reply": object{"template": fmt.Sprint("r", w.IntN(9))}, "feedback": verdict})
				}
				return []message{{topic: "chats", at: at, value: js(object{"chat": object{"id": fmt.Sprintf("c-%d", i), "closed_us": at.UnixMicro(), "bot": "max"}, "turns": turns})}}
			},
		},
		{
			name: "types of records in a header, ids that are numbers here and text there", n: 9000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				rate, id := .3, 5_000_000+i*3
				if drifted {
					rate = .12
				}
				if w.Float64() < rate {
					d := w.soon(30)
					w.after(i, d, message{topic: "shop-events", key: fmt.Sprint("c", i%70), headers: map[string]string{"event_type": "added_to_cart"}, value: js(object{
						"rec": fmt.Sprint(id), "ts": at.Add(time.Duration(d) * time.Second).UnixMilli(), "qty": 1,
					})})
				}
				return []message{{topic: "shop-events", key: fmt.Sprint("c", i%70), headers: map[string]string{"event_type": "recommended"}, at: at, value: js(object{
					"rec": id, "ts": at.UnixMilli(), "products": []string{"p1", "p2"}, "layout": []string{"grid", "row"}[w.IntN(2)], "discount": w.Float64(),
				})}}
			},
		},
		{
			name: "telemetry v1 in Protobuf", n: 8000, signal: "return",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				reward := 1 + .5*w.NormFloat64()
				if drifted {
					reward -= .3
				}
				text, err := proto.Marshal(&telemetrypb.Event{Policy: "p", EpisodeId: fmt.Sprint(i / 5), Ts: at.UnixNano(), Reward: &reward, Terminated: i%5 == 4})
				if err != nil {
					panic(err)
				}
				return []message{{topic: "steps", at: at, value: text}}
			},
		},
		{
			name: "steps of a simulator, nanoseconds, no ids", n: 12_000, signal: "return",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				reward := .5 * w.NormFloat64()
				if drifted {
					reward -= .2
				}
				return []message{{topic: "sim", at: at, value: js(object{
					"wall_ns": at.UnixNano(), "worker": object{"idx": 0}, "transition": object{"o": []float64{w.NormFloat64()}, "a": []float64{w.NormFloat64()}, "r": reward, "d": i%10 == 9}, "build": "sim-4",
				})}}
			},
		},
		{
			name: "decisions with the reward that is known an hour later in the same shape", n: 9000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				rate, id := .4, fmt.Sprintf("loan-%06d", i)
				if drifted {
					rate = .25
				}
				repaid := w.Float64() < rate
				w.after(i, 300, message{topic: "loans", value: js(object{"stage": "settled", "application": object{"ref": id}, "repaid": repaid, "as_of": at.Add(300 * time.Second).Format(time.RFC3339)})})
				return []message{{topic: "loans", at: at, value: js(object{
					"stage": "granted", "application": object{"ref": id, "income": w.ExpFloat64()}, "offer": object{"tier": fmt.Sprint("t", w.IntN(4))}, "as_of": at.Format(time.RFC3339),
				})}}
			},
		},
	}
}

// The same test for shapes that the proposals were not made for.
func TestSimOtherTeamsJoinAsInspectProposes(t *testing.T) {
	for _, team := range append(others(), thirds()...) {
		t.Run(team.name, func(t *testing.T) { testTeam(t, team) })
	}
}

// Decisions and clicks in two topics raise the alarms of a replay of the same records in two files.
func TestSimAlarmsOfTwoTopicsAreThoseOfAReplay(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	testAlarmsOfTwoTopics(t, nil, func(proposed string) *process { return startService(t, proposed) })
}

// Decisions and clicks in any partitions raise the same alarms if they are forwarded by their key, also when the
// service is killed in between.
func TestSimAlarmsOfWhatIsSentOnAreThoseOfAReplay(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	testAlarmsOfTwoTopics(t, map[string]int32{"impressions": 3, "taps": 2}, func(proposed string) *process {
		text := testkit.Read(t, proposed)
		at := strings.Index(text, "    topics:")
		sentOn := testkit.WriteConfig(t, text[:at]+"    repartition_topic: joined\n"+text[at:])
		p := startService(t, sentOn)
		testkit.Eventually(t, "some decisions", func() bool { return p.unitsByPolicy()["impressions"] > 1000 })
		p.killMember(t, "joined")
		return startService(t, sentOn)
	})
}

// testAlarmsOfTwoTopics compares the alarms of a service, which start starts as inspect proposes, with those of a
// replay.
func testAlarmsOfTwoTopics(t *testing.T, partitions map[string]int32, start func(proposed string) *process) {
	team := teams()[1]
	all := team.messages(newWorld(t))
	broker := startBroker(t, 1)
	dir, text := t.TempDir(), map[string][]byte{}
	for _, m := range all {
		text[m.topic] = append(append(text[m.topic], m.value...), '\n')
	}
	var files []string
	for _, topic := range slices.Sorted(maps.Keys(text)) { // the policy is named after the first topic
		files = append(files, filepath.Join(dir, topic+".ndjson"))
		if err := os.WriteFile(files[len(files)-1], text[topic], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	produceOver(t, broker, all, partitions)
	proposed, _ := team.proposal(t, broker, files...)
	_, out := verb(t, append([]string{"replay", "--output", "json", "--config", proposed}, files...)...)
	var want []string
	for _, a := range parseReplay(t, out).alarms {
		want = append(want, fmt.Sprint(a.Group, a.Signal, " fired at ", a.Unit, ", onset ", a.OnsetUnit))
	}
	slices.Sort(want)
	p := start(proposed)
	var got []string
	testkit.Eventually(t, "the alarms", func() bool {
		var a struct{ Alarms []wire.Alarm }
		p.get("/api/v1/alarms", &a)
		got = nil
		for _, a := range a.Alarms {
			got = append(got, fmt.Sprint(a.Group, a.Signal, " fired at ", a.At.Ordinal, ", onset ", a.Onset.Ordinal))
		}
		slices.Sort(got)
		return len(got) >= len(want)
	})
	if len(want) < 2 || !slices.Equal(got, want) {
		t.Errorf("alarms of the service\n%s\nof the replay\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	p.interrupt(t)
}

// clickOnly returns a shop in telemetry version 1 whose only rewards are clicks, and whose episodes are only ended by a
// click.
func clickOnly() team {
	return team{
		name: "telemetry v1, episodes that only a click ends", n: 12_000, signal: "reward",
		record: func(w *world, i int, at time.Time, drifted bool) []message {
			rate, id := .2, fmt.Sprint("impression-", i)
			if drifted {
				rate = .05
			}
			if w.Float64() < rate {
				d := w.soon(20)
				w.after(i, d, message{topic: "agent-telemetry", value: js(object{
					"policy": "shop", "agent_id": fmt.Sprint("v", i), "episode_id": id, "step": 1, "reward": 1, "terminated": true, "ts": at.Add(time.Duration(d) * time.Second).Unix(),
				})})
			}
			return []message{{topic: "agent-telemetry", at: at, value: js(object{
				"policy": "shop", "agent_id": fmt.Sprint("v", i), "episode_id": id, "step": 0, "action": string(rune('a' + w.IntN(3))), "ts": at.Unix(),
			})}}
		},
	}
}

// Without feedback in its configuration, the service shows a fault of episodes without an end. With the proposal of
// inspect, it finds that clicks have become rare.
func TestServiceTellsOfEpisodesThatOnlyAClickEnds(t *testing.T) {
	t.Run("as proposed", func(t *testing.T) { testTeam(t, clickOnly()) })
	t.Run("with the defaults", func(t *testing.T) {
		if testing.Short() {
			t.Skip("takes seconds of CPU")
		}
		t.Parallel()
		broker := startBroker(t, 1)
		produceTo(t, broker, clickOnly().messages(newWorld(t)))
		p := startService(t, serviceConfig(t, broker))
		testkit.Eventually(t, "the fault", func() bool {
			var a struct {
				Streams []struct {
					Signal, State string
					Fault         *string
				}
			}
			p.get("/api/v1/streams", &a)
			for _, s := range a.Streams {
				if s.Signal == "reward" && s.State == "telemetry_fault" && s.Fault != nil && *s.Fault == fault.Unfinished {
					return true
				}
			}
			return false
		})
		share := regexp.MustCompile(`rewardwatch_unfinished_episodes_ratio\{.*sample="current"\} 0\.9`)
		testkit.Eventually(t, "the metric of EpisodesUnfinished above its limit", func() bool {
			_, text := p.fetch(t, "/metrics")
			return share.MatchString(text)
		})
		p.interrupt(t)
	})
}

// An Avro object container file is inspected and replayed unchanged.
func TestSimAvroFilesJoinAsInspectProposes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	w, team := newWorld(t), teams()[2]
	all := team.messages(w)
	var file bytes.Buffer
	e, err := ocf.NewWriter(&file, w.schemas["Route"], ocf.WithCodec(ocf.DeflateCodec(flate.DefaultCompression)))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if _, err := e.Write(m.value[5:]); err != nil { // without the ID of the schema
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	path := writeFile(t, "routes.avro", file.String())
	proposed, report := team.proposal(t, "127.0.0.1:9092", path)
	code, out := verb(t, "replay", "--output", "json", "--config", proposed, path)
	if r := parseReplay(t, out); code != exitDrift || !slices.ContainsFunc(r.alarms, func(a replay.AlarmRecord) bool {
		return a.Signal == team.signal && a.Index >= int64(team.n*2/3)
	}) {
		t.Errorf("exit %d, %+v\n%s", code, r.alarms, report)
	}
}
