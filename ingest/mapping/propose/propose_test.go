package propose_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
	"github.com/rewardwatch/rewardwatch/ingest/mapping/propose"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

const epoch = 1795168800000

func records(lines [][]byte) (out []propose.Record) {
	for _, line := range lines {
		out = append(out, propose.Record{JSON: line})
	}
	return out
}

// Records can be telemetry version 1 except for the names of their times, actions and ends.
func TestRenamedFields(t *testing.T) {
	named := func(record string) []string {
		var lines [][]byte
		for i := range 60 {
			lines = append(lines, fmt.Appendf(nil, record, epoch+i, i%3, i%7))
		}
		return propose.Of(records(lines), "shop").Renamed()
	}
	if got := named(`{"policy":"p","reward":1,"time":%d,"move":"m%d","obs":[%d]}`); fmt.Sprint(got) != "[ts action observation]" {
		t.Errorf("renamed %v", got)
	}
	if got := named(`{"policy":"p","reward":1,"ts":%d,"action":"m%d","observation":[%d],"user":"u","terminated":true}`); len(got) > 0 {
		t.Errorf("renamed %v", got)
	}
}

// Fields that look like a role in some logs have another meaning in others.
func TestWhatIsNoRole(t *testing.T) {
	for name, test := range map[string]struct {
		record     func(i int) string
		has, lacks []string
	}{
		"phases in a fixed order are chosen": {
			func(i int) string {
				return fmt.Sprintf(`{"junction_id":"j%d","action":"phase_%d","queue":%d,"reward":-%d}`, i%3, i/3%8, i*i%7, i*i%5)
			},
			[]string{"action: action"},
			nil,
		},
		"a loan is repaid, whatever it costs": {
			func(i int) string {
				return fmt.Sprintf(`{"customer_id":"c%d","decision":"d%d","funding_cost":%d.5,"repaid":%d}`, i, i%2, i*i%7, i*i%3%2)
			},
			[]string{"reward: repaid"},
			[]string{"scale: -1"},
		},
		"the cost of a product is no reward": {
			func(i int) string {
				return fmt.Sprintf(`{"product_id":"p%d","product_cost":%d.5,"price":%d,"units_sold":%d}`, i*i%60, i%9, 20+i*i%11, i*i%5)
			},
			nil,
			[]string{"scale: -1"},
		},
		"the charge of a battery is no agent": {
			func(i int) string {
				return fmt.Sprintf(`{"battery":%d,"command":"c%d","reward":%d.5}`, i*i%97, i%3, i*i%7)
			},
			nil,
			[]string{"agent_id: battery"},
		},
		"trainings have many episodes": {
			func(i int) string {
				return fmt.Sprintf(`{"run":"seed-%d","action":%d,"reward":%d.5,"done":%t}`, i/40, i%2, i*i%7, i%20 == 19)
			},
			[]string{"terminated: done", "not used: run"},
			nil,
		},
		"a cart is no slate": {
			func(i int) string {
				return fmt.Sprintf(`{"session_id":"s%d","items":["i%d","i%d"],"coupon":"c%d","purchased":%d}`, i, i*i%17, i%11, i*i%3, i*i%5%2)
			},
			[]string{"action: coupon", "reward: purchased"},
			nil,
		},
	} {
		var lines [][]byte
		for i := range 400 {
			lines = append(lines, []byte(test.record(i)))
		}
		text := propose.Of(records(lines), "shop").YAML("")
		for _, line := range test.has {
			if !strings.Contains(text, line) {
				t.Errorf("%s: no %q in\n%s", name, line, text)
			}
		}
		for _, line := range test.lacks {
			if strings.Contains(text, line) {
				t.Errorf("%s: %q in\n%s", name, line, text)
			}
		}
	}
}

// Each case is a shape that teams use today. The proposal is read back from its text, and its first event is compared.
func TestShapesThatTeamsHave(t *testing.T) {
	for name, test := range map[string]struct {
		record func(i int) string
		fields []string // lines of the proposal
		event  string
	}{
		"a recommender, flat, with clicks that are missing where there are none": {
			record: func(i int) string {
				clicked := ""
				if i%5 == 0 {
					clicked = `,"clicked":1`
				}
				return fmt.Sprintf(`{"user_id":"u%d","time_ms":%d,"model_version":"v%d","chosen_arm":%d,"propensity":0.25,"age":%d,"country":"c%d"%s}`, i%40, epoch+i*1000, i/200, i%4, 20+i%30, i%3, clicked)
			},
			fields: []string{"ts: {path: time_ms, unit: ms}", "agent_id: user_id", "policy_version: model_version", "action: chosen_arm", "reward: {path: clicked, default: 0}", "labels.country: country", "observation.age: age", `policy: {value: "shop"}`},
			event:  `{"ts":"2026-11-20T10:00:00Z","policy":"shop","policy_version":"v0","agent_id":"u0","observation":{"age":20},"action":0,"action_prob":0.25,"reward":1,"terminated":true,"labels":{"country":"c0"}}`,
		},
		"decisions and clicks in one topic, joined by an id of another name": {
			record: func(i int) string {
				switch i % 4 {
				case 3:
					return fmt.Sprintf(`{"event":"click","at":"2026-11-20T10:%02d:%02dZ","reqId":"r-%d"}`, i/60%60, i%60, i-3)
				case 2:
					return fmt.Sprintf(`{"event":"heartbeat","host":"h%d"}`, i%3)
				}
				return fmt.Sprintf(`{"event":"shown","at":"2026-11-20T10:%02d:%02dZ","request":{"id":"r-%d","user":"u%d"},"item":{"id":"i%d","price":%d.5},"ctx":{"basket":%d}}`, i/60%60, i%60, i, i%9, i%6, i%7, i%5)
			},
			fields: []string{`take: [{path: event, in: ["shown", "click"]}]`, "ts: at", `episode_id: {expression: "record[\"request\"]?.[\"id\"] ?? record[\"reqId\"]"}`, `reward: {path: event, choices: {click: 1, shown: null}}`, "action: item.id"},
			event:  `{"ts":"2026-11-20T10:00:00Z","policy":"shop","agent_id":"u0","episode_id":"r-0","observation":{"price":0.5,"basket":0},"action":"i0"}`,
		},
		"slates, and which of their items were clicked": {
			record: func(i int) string {
				clicked := []string{"", "2", "", "0,3"}[i%4]
				return fmt.Sprintf(`{"requestId":"r-%d","at":"2026-11-20T10:%02d:%02dZ","profile":{"segment":"s%d","device":"d%d"},"slate":["m%d","m%d"],"clickedPositions":[%s],"watchMinutes":%d.5,"ranker":{"name":"home","rev":"9"}}`,
					i, i/60%60, i%60, i%3, i%2, i*i%11, i%7, clicked, i%13)
			},
			fields: []string{"policy: ranker.name", "policy_version: ranker.rev", "labels.device: profile.device", `action: {expression: "first(record[\"slate\"] ?? [])"}`, `reward: {expression: "len(record[\"clickedPositions\"] ?? [])"}`, "outcomes.watchMinutes: watchMinutes"},
			event:  `{"ts":"2026-11-20T10:00:00Z","policy":"home","policy_version":"9","episode_id":"r-0","action":"m0","reward":0,"terminated":true,"outcomes":{"watchMinutes":0.5},"labels":{"segment":"s0","device":"d0"}}`,
		},
		"a robot, whose action is an object": {
			record: func(i int) string {
				return fmt.Sprintf(`{"header":{"stamp":{"sec":%d,"nanosec":%d}},"odom":{"yaw":%d.5},"cmd_vel":{"linear":{"x":%d.25,"y":0.0},"angular":{"z":-%d.5}},"reward":0.%d,"done":%t,"robot_id":"r%d","policy":"nav"}`,
					epoch/1000+i, i%4*250000000, i*i%7, i*i%5, i*i%11, i%10, i%20 == 19, i/200)
			},
			fields: []string{
				`ts: {expression: "record[\"header\"]?.[\"stamp\"]?.[\"sec\"] + record[\"header\"]?.[\"stamp\"]?.[\"nanosec\"] / 1e9"}`, "agent_id: robot_id", "terminated: done",
				`action: {expression: "[record[\"cmd_vel\"]?.[\"angular\"]?.[\"z\"], record[\"cmd_vel\"]?.[\"linear\"]?.[\"x\"]]"}`, "observation.yaw: odom.yaw",
			},
			event: `{"ts":"2026-11-20T10:00:00Z","policy":"nav","agent_id":"r0","observation":{"yaw":0.5},"action":[-0.5,0.25],"reward":0.0}`,
		},
		"stocks of warehouses, one record of each a day, with a cost": {
			record: func(i int) string {
				return fmt.Sprintf(`{"date":"2026-11-%02d","warehouse":"W%d","on_hand":%d.5,"weekday":%d,"order_qty":%d,"lost_sales":%d,"daily_cost":%d.5,"agent_version":"7"}`,
					1+i/20, i%20, 40+i*i%97, i/20%7, i*i%83, i*i%5, i*i%61)
			},
			fields: []string{
				"ts: {path: date, zone: UTC}", "agent_id: warehouse", "policy_version: agent_version", "reward: {path: daily_cost, scale: -1}",
				`action: {expression: "record[\"order_qty\"] == nil ? nil : [record[\"order_qty\"]]"}`, "outcomes.lost_sales: lost_sales",
			},
			event: `{"ts":"2026-11-01T00:00:00Z","policy":"shop","policy_version":"7","agent_id":"W0","observation":{"on_hand":40.5},"action":[0],"reward":-0.5,"outcomes":{"lost_sales":0},"terminated":true}`,
		},
		"prices of products, one of each an hour": {
			record: func(i int) string {
				return fmt.Sprintf(`{"event_time":"2026-11-%02dT%02d:00:00Z","sku":"SKU-%d","multiplier":%s,"list_price":%d.5,"page_views":%d,"prob":0.%d,"units_sold":%d,"gross_margin":%d.25,"predicted_margin":%d,"pricing_model":"pricer-3"}`,
					20+i/600, i/25%24, i%25, []string{"0.9", "1.0", "1.1"}[i*7/5%3], 5+i%25, i*i%97, 1+i%8, i*i%5, i*i%61, i%50)
			},
			fields: []string{"policy: pricing_model", `action: {expression: "record[\"multiplier\"] == nil ? nil : string(record[\"multiplier\"])"}`, "reward: gross_margin", "outcomes.units_sold: units_sold", "observation.predicted_margin: predicted_margin", "terminated: {value: true}"},
			event:  `{"ts":"2026-11-20T00:00:00Z","policy":"pricer-3","observation":{"list_price":5.5,"page_views":0,"predicted_margin":0},"action":"0.9","action_prob":0.1,"reward":0.25,"terminated":true,"outcomes":{"units_sold":0}}`,
		},
		"an LLM agent, a trace with its steps": {
			record: func(i int) string {
				return fmt.Sprintf(`{"trace":{"trace_id":"t-%d","model":{"name":"support-%d"},"start_time":%d,"steps":[{"tool":"search","latency_ms":%d,"score":0.5},{"tool":"answer","latency_ms":7,"score":1}]},"resolved":%t}`, i, i%2, epoch/1000+i, i%90, i%3 > 0)
			},
			fields: []string{"each: trace.steps", "policy: $.trace.model.name", "episode_id: $.trace.trace_id", "action: tool", "reward: score", "outcomes.latency_ms: latency_ms", "outcomes.resolved: {path: $.resolved, last: true}", "terminated: {value: true, last: true}", "ts: {path: $.trace.start_time, unit: s}"},
			event:  `{"ts":"2026-11-20T10:00:00Z","policy":"support-0","episode_id":"t-0","action":"search","reward":0.5,"outcomes":{"latency_ms":0}}`,
		},
		"steps of reinforcement learning": {
			record: func(i int) string {
				return fmt.Sprintf(`{"agent":{"name":"walker","ckpt":"12"},"env_id":"Hopper-v4","ep":{"episode_id":%d},"t":%d,"obs":[0.5,%d],"act":[0.1,-0.2],"rew":%d.25,"done":%d,"timestamp":"%d"}`, i/20, i%20, i%7, i%3, i%20/19, int64(epoch+i)*1000)
			},
			fields: []string{"env: env_id", "episode_id: ep.episode_id", "step: t", "observation: obs", "action: act", "reward: rew", `terminated: {path: done, choices: {"0": false, "1": true}}`, "ts: {path: timestamp, unit: us}"},
			event:  `{"ts":"2026-11-20T10:00:00Z","policy":"walker","policy_version":"12","env":"Hopper-v4","episode_id":"0","step":0,"observation":{"0":0.5,"1":0},"action":[0.1,-0.2],"reward":0.25}`,
		},
		"evaluations with attributes that have dots": {
			record: func(i int) string {
				return fmt.Sprintf(`{"name":"gen_ai.evaluation.result","timeUnixNano":"%d000000","traceId":"%032x","attributes":{"gen_ai.request.model":"m-%d","gen_ai.evaluation.score.value":0.%d,"gen_ai.tool.name":"tool%d"}}`, epoch+i, i, i%2, i%9+1, i%3)
			},
			fields: []string{`policy: "attributes[\"gen_ai.request.model\"]"`, `reward: "attributes[\"gen_ai.evaluation.score.value\"]"`, `action: "attributes[\"gen_ai.tool.name\"]"`, "ts: {path: timeUnixNano, unit: ns}", "episode_id: traceId", "terminated: {value: true}"},
			event:  `{"ts":"2026-11-20T10:00:00Z","policy":"m-0","episode_id":"00000000000000000000000000000000","action":"tool0","reward":0.1,"terminated":true}`,
		},
		"words for the reward and the end, and a date without a zone": {
			record: func(i int) string {
				return fmt.Sprintf(`{"conversation":{"id":"c%d"},"when":"2026-11-20 10:%02d:%02d","answer_style":"s%d","feedback":"%s","status":"%s"}`, i/4, i/60%60, i%60, i%3, []string{"thumbs_up", "thumbs_down"}[i%2], []string{"open", "open", "open", "resolved"}[i%4])
			},
			fields: []string{"ts: {path: when, zone: UTC}", "episode_id: conversation.id", `reward: {path: feedback, choices: {thumbs_down: 0, thumbs_up: 1}}`, `terminated: {path: status, choices: {open: false, resolved: true}}`, "action: answer_style"},
			event:  `{"ts":"2026-11-20T10:00:00Z","policy":"shop","episode_id":"c0","action":"s0","reward":1}`,
		},
		"sessions that the last type of record ends": {
			record: func(i int) string {
				return fmt.Sprintf(`{"evt":"%s","sid":"s%d","d":{%s}}`, []string{"START", "STEP", "STEP", "STOP"}[i%4], i/4,
					[]string{`"map":"ice"`, fmt.Sprintf(`"act":%d,"rwd":%d`, i%3, i%7), `"act":1,"rwd":2`, `"won":true`}[i%4])
			},
			fields: []string{`take: [{path: evt, in: ["STEP", "STOP"]}]`, "episode_id: sid", "action: d.act", "reward: d.rwd", "outcomes.won: d.won", "terminated: {path: evt, choices: {STEP: false, STOP: true}}"},
			event:  `{"policy":"shop","episode_id":"s0","action":1,"reward":1,"terminated":false}`,
		},
		"steps whose names say nothing, and a number as text": {
			record: func(i int) string {
				return fmt.Sprintf(`{"przebieg":{"kroki":[{"ruch":"%s","wynik":0.5},{"ruch":"b","wynik":%d.5}]},"return":"%d.5"}`, []string{"a", "b"}[i%2], i%9, i%5)
			},
			fields: []string{"each: przebieg.kroki", "action: ruch", "observation.wynik: wynik", `episode.r: {expression: "record[\"return\"] == nil ? nil : float(record[\"return\"])", last: true}`},
			event:  `{"policy":"shop","action":"a","observation":{"wynik":0.5}}`,
		},
		"records with an id of their own, without agents": {
			record: func(i int) string {
				return fmt.Sprintf(`{"quote":"q-%d","rule":"r%d","wasAccepted":%t}`, i, i%3, i%4 == 0)
			},
			fields: []string{"episode_id: quote", "action: rule", `reward: {path: wasAccepted, choices: {"false": 0, "true": 1}}`, "terminated: {value: true}"},
			event:  `{"policy":"shop","episode_id":"q-0","action":"r0","reward":1,"terminated":true}`,
		},
		"an object of outcomes with a text in it, an id that looks like an item, and records of another kind": {
			record: func(i int) string {
				if i%10 == 9 {
					return fmt.Sprintf(`{"hdr":{"node":"localizer"},"pose":[1,%d]}`, i)
				}
				code := ""
				if i%40 == 0 {
					code = `,"code":"E_VAC"`
				}
				return fmt.Sprintf(`{"hdr":{"node":"planner"},"order":{"sku":"s%d"},"plan":{"netId":7,"picked":"g%d"},"outcome":{"grip":0.%d,"dropped":%t%s}}`, i, i%3, i%8, i%7 == 0, code)
			},
			fields: []string{`take: [{path: hdr.node, in: ["planner"]}]`, "episode_id: order.sku", "action: plan.picked", "outcomes.grip: outcome.grip", "outcomes.dropped: outcome.dropped", "terminated: {value: true}"},
			event:  `{"policy":"shop","episode_id":"s0","action":"g0","outcomes":{"grip":0,"dropped":1},"terminated":true}`,
		},
		"feedback of the same topic that holds a number besides yes or no": {
			record: func(i int) string {
				if i%2 == 0 {
					return fmt.Sprintf(`{"evt":"Started","seq":0,"guid":"m%d","map":"map%d"}`, i/2, i/2%3)
				}
				return fmt.Sprintf(`{"evt":"Ended","seq":1,"guid":"m%d","xp":%d.5,"won":%t}`, i/2, i%60, i%3 == 0)
			},
			fields: []string{"episode_id: guid", "action: map", `reward: {path: won, choices: {"false": 0, "true": 1}}`, "outcomes.xp: xp"},
			event:  `{"policy":"shop","episode_id":"m0","step":0,"action":"map0"}`,
		},
		"logs without an event, a model that only tools have, and traces that are shorter than conversations": {
			record: func(i int) string {
				attributes := func(name, more string) string {
					return fmt.Sprintf(`{"event_name":"%s","trace_id":"t%d","attributes":{"gen_ai.conversation.id":"c%d","gen_ai.agent.name":"concierge"%s}}`, name, i, i/5, more)
				}
				switch i % 5 {
				case 4:
					return attributes("gen_ai.evaluation.result", fmt.Sprintf(`,"gen_ai.evaluation.score.value":0.%d,"grounded":%d`, i%9, i))
				case 1:
					return `{"body":"cache hit","attributes":{"code.function":"get"}}`
				}
				return attributes("gen_ai.tool.call", fmt.Sprintf(`,"gen_ai.tool.name":"tool%d","gen_ai.request.model":"m"`, i%3))
			},
			fields: []string{
				`take: [{path: event_name, in: ["gen_ai.tool.call", "gen_ai.evaluation.result"]}]`, `policy: "attributes[\"gen_ai.agent.name\"]"`, `episode_id: "attributes[\"gen_ai.conversation.id\"]"`, "outcomes.grounded: attributes.grounded",
				"terminated: {path: event_name, choices: {gen_ai.evaluation.result: true, gen_ai.tool.call: false}}",
			},
			event: `{"policy":"concierge","episode_id":"c0","action":"tool0","terminated":false}`,
		},
		"numbers beside an observation, and nothing that ends": {
			record: func(i int) string {
				return fmt.Sprintf(`{"t":%d,"sensors":{"supply":2%d},"cmd":{"damper":"d%d"},"penalty":{"comfort":%d.5}}`, epoch+i*1000, i%5, i%3, i%4)
			},
			fields: []string{"observation: sensors", "action: cmd.damper", "outcomes.comfort: penalty.comfort", "terminated: {value: true}"},
			event:  `{"ts":"2026-11-20T10:00:00Z","policy":"shop","observation":{"supply":20},"action":"d0","outcomes":{"comfort":0.5},"terminated":true}`,
		},
		"replies, and thumbs as words in records of their own": {
			record: func(i int) string {
				if i%4 == 3 {
					return fmt.Sprintf(`{"kind":"rating","conversation":"c%d","created":%d,"thumb":"%s"}`, i-1, epoch+i*60_000, []string{"up", "down"}[i/4%2])
				}
				return fmt.Sprintf(`{"kind":"reply","conversation":"c%d","created":%d,"bot":"helpdesk","weights":"w%d","intent":"%s","length":%d,"style":"%s"}`,
					i, epoch+i*60_000, i/200, []string{"code", "howto", "complaint"}[i*i%3], 40+i*i%97, []string{"brief", "detailed"}[i*i%5%2])
			},
			fields: []string{`policy: {path: bot, default: "helpdesk"}`, "policy_version: weights", "episode_id: conversation", "action: style", "labels.intent: intent", `reward: {path: thumb, choices: {down: 0, up: 1}}`},
			event:  `{"ts":"2026-11-20T10:00:00Z","policy":"helpdesk","policy_version":"w0","episode_id":"c0","action":"brief","labels":{"intent":"code"},"observation":{"length":40}}`,
		},
		"matches that are won, lost or drawn": {
			record: func(i int) string {
				return fmt.Sprintf(`{"match_id":"m%d","bot":"bishop","bot_version":"v%d","map":"%s","result":"%s","turns":%d,"started_at":"2026-11-20T10:%02d:%02dZ"}`,
					i, i/300, []string{"delta", "ridge"}[i*i%3%2], []string{"win", "loss", "draw"}[i*7%3], 20+i*i%31, i/60%60, i%60)
			},
			fields: []string{"policy: bot", "policy_version: bot_version", "labels.map: map", `reward: {path: result, choices: {draw: 0.5, loss: 0, win: 1}}`, "terminated: {value: true}"},
			event:  `{"ts":"2026-11-20T10:00:00Z","policy":"bishop","policy_version":"v0","episode_id":"m0","observation":{"turns":20},"labels":{"map":"delta"},"reward":1,"terminated":true}`,
		},
		"flows that end with a flag, and a gain of few values": {
			record: func(i int) string {
				return fmt.Sprintf(`{"flow":"f%d","algo":"aurora","obs":{"rtt":%d.5,"loss":%d},"gain":%s,"utility":%d.25,"eof":%t}`,
					i/9, 20+i*i%71, i*i%5%2, []string{"0.7", "1.0", "1.4"}[i*i%7%3], i*i%13, i%9 == 8)
			},
			fields: []string{"policy: algo", "episode_id: flow", `action: {expression: "record[\"gain\"] == nil ? nil : string(record[\"gain\"])"}`, "reward: utility", "observation: obs", "terminated: eof"},
			event:  `{"policy":"aurora","episode_id":"f0","observation":{"rtt":20.5,"loss":0},"action":"0.7","reward":0.25,"terminated":false}`,
		},
		"trades, whose profit has a name of its own": {
			record: func(i int) string {
				return fmt.Sprintf(`{"t":"2026-11-%02dT%02d:%02d:00-05:00","strategy":"intraday","features":[0.5,%d],"position":%d,"px":%d.5,"pnl":%d.25}`,
					10+i/300, 9+i/60%5, i%60, i*i%17, i%3-1, 100+i*i%61, i*i%43-20)
			},
			fields: []string{"policy: strategy", "observation: features", "action: position", "reward: pnl"},
			event:  `{"ts":"2026-11-10T14:00:00Z","policy":"intraday","observation":{"0":0.5,"1":0},"action":-1,"reward":-20.25,"terminated":true}`,
		},
		"a list a record": {
			record: func(i int) string {
				return fmt.Sprintf(`[{"arm":"a%d","payoff":%d},{"arm":"b","payoff":0.5}]`, i%2, i%3)
			},
			fields: []string{"each: $", "action: arm", "reward: payoff", "terminated: {value: true, last: true}"},
			event:  `{"policy":"shop","action":"a0","reward":0}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var lines [][]byte
			for i := range 400 {
				lines = append(lines, []byte(test.record(i)))
			}
			p := propose.Of(records(lines), "shop")
			if p == nil {
				t.Fatal("nothing is proposed")
			}
			text := p.YAML("")
			for _, want := range test.fields {
				if !strings.Contains("\n"+strings.ReplaceAll(text, "\n  ", "\n"), "\n"+want+" # ") {
					t.Errorf("no line %s in\n%s", want, text)
				}
			}
			var c mapping.Config
			if err := yamlfile.ErrorOf(yamlfile.Read("m.yml", []byte(text), &c).Problems()); err != nil {
				t.Fatalf("%s\n%v", text, err)
			}
			plan, err := c.Compile()
			if err != nil {
				t.Fatalf("%s\n%v", text, err)
			}
			d := telemetry.Mapped{Plan: plan}.NewDecoder(ingest.DecoderOptions{MaxRecord: 1 << 20})
			events := d.Decode(nil, &ingest.Message{Value: bytes.Join(lines, []byte("\n"))}, func(e *ingest.RecordError, raw []byte) {
				t.Fatalf("%s: %v\n%s", raw, e, text)
			})
			want := telemetry.V1{}.NewDecoder(ingest.DecoderOptions{MaxRecord: 1 << 20}).Decode(nil, &ingest.Message{Value: []byte(test.event)}, nil)
			if got := string(telemetry.AppendEvent(nil, &events[0])); got != string(telemetry.AppendEvent(nil, &want[0])) {
				t.Errorf("the first event is\n%s, want\n%s\n%s", got, test.event, text)
			}
		})
	}
}

// Decisions and feedback from several topics get mappings with the same ID and policy.
func TestTopicsAreProposedTogether(t *testing.T) {
	ids := func(i int) string { return fmt.Sprintf("%08x", i*2654435761%(1<<32)) }
	topic := func(name string, n int, record func(i int) propose.Record) propose.Topic {
		out := propose.Topic{Name: name}
		for i := range n {
			out.Records = append(out.Records, record(i))
		}
		return out
	}
	shown := func(from int) func(i int) propose.Record {
		return func(i int) propose.Record {
			i += from
			return propose.Record{Key: []byte(fmt.Sprint("user-", i%50)), JSON: fmt.Appendf(nil, `{"seq":%d,"uid":"%s","t":%d,"model":"m-%d","item":"i%d","price":%d.5}`, i, ids(i), epoch+1000*i, i/300, i%6, i%9)}
		}
	}
	clicked := func(i int) propose.Record {
		return propose.Record{JSON: fmt.Appendf(nil, `{"seq":%d,"ref":"%s","t":%d,"item":"i%d"}`, i, ids(5*i), epoch+5000*i+700, i%6)}
	}
	rated := func(i int) propose.Record {
		return propose.Record{Headers: map[string]string{"uid": ids(3 * i)}, JSON: fmt.Appendf(nil, `{"stars":%d,"t":%d}`, i%5+1, epoch+3000*i+900)}
	}
	unrelated := func(i int) propose.Record {
		return propose.Record{JSON: fmt.Appendf(nil, `{"seq":%d,"host":"h","t":%d}`, i, epoch+i)}
	}
	for name, c := range map[string]struct {
		topics []propose.Topic
		want   [][]string // lines of each; nil for none
		not    string
	}{
		"clicks and ratings": {
			topics: []propose.Topic{topic("clicks", 200, clicked), topic("shown", 1000, shown(0)), topic("ratings", 300, rated)},
			want: [][]string{
				{`policy: {value: "p"}`, "episode_id: ref", "reward: {value: 1}", "ts: {path: t, unit: ms}"},
				{`policy: {value: "p"}`, "policy_version: model", "episode_id: uid", "action: item", "agent_id: {key: true}", "observation.price: price"},
				{`policy: {value: "p"}`, "episode_id: {header: uid}", "reward: stars"},
			},
			not: "terminated",
		},
		"what was kept is of another time": {
			topics: []propose.Topic{topic("shown", 300, shown(700)), topic("clicks", 200, clicked)},
			want:   [][]string{{"episode_id: uid"}, {"episode_id: ref"}},
		},
		"nothing in common but a count": {
			topics: []propose.Topic{topic("shown", 300, shown(0)), topic("other", 300, unrelated)},
			want:   [][]string{{"policy: model", "action: item"}, nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i, p := range propose.Together(c.topics, "p") {
				if (p != nil) != (c.want[i] != nil) {
					t.Fatalf("%s: %v", c.topics[i].Name, p)
				}
				if p == nil {
					continue
				}
				text := "\n" + strings.ReplaceAll(p.YAML(""), "\n  ", "\n")
				for _, want := range c.want[i] {
					if !strings.Contains(text, "\n"+want+" # ") {
						t.Errorf("no line %s in the mapping of %s%s", want, c.topics[i].Name, text)
					}
				}
				if c.not != "" && strings.Contains(text, c.not) {
					t.Errorf("%s in the mapping of %s%s", c.not, c.topics[i].Name, text)
				}
			}
		})
	}
}

func TestAlike(t *testing.T) {
	of := func(lines ...string) (out []propose.Record) {
		for _, line := range lines {
			out = append(out, propose.Record{JSON: []byte(line)})
		}
		return out
	}
	a := of(`{"id":1,"item":"x","ts":1}`, `{"id":2,"item":"y","ts":1}`)
	for line, want := range map[string]bool{`{"id":1,"item":"x","ts":1}`: true, `{"id":1,"item":"x","ts":1,"more":1}`: true, `{"ref":1,"ts":2}`: false, `7`: false} {
		if got := propose.Alike(propose.Topic{Records: a}, propose.Topic{Records: of(line)}); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

// Clicks with nearly the shape of the decisions are another topic. Decisions with an additional field are not.
func TestFeedbackIsNotAlike(t *testing.T) {
	var shown, more, taps []propose.Record
	for i := range 100 {
		base := fmt.Sprintf(`"at":%d,"req":"r%d"`, epoch+1000*i, i)
		shown = append(shown, propose.Record{JSON: fmt.Appendf(nil, `{"kind":"rec",%s,"pick":"p%d","model":"m"}`, base, i%3)})
		more = append(more, propose.Record{JSON: fmt.Appendf(nil, `{"kind":"rec",%s,"pick":"p%d","model":"m","more":1}`, base, i%3)})
		if i%4 == 0 {
			taps = append(taps, propose.Record{JSON: fmt.Appendf(nil, `{"kind":"tap",%s}`, base)})
		}
	}
	if a := (propose.Topic{Name: "recs", Records: shown}); propose.Alike(a, propose.Topic{Name: "taps", Records: taps}) || !propose.Alike(a, propose.Topic{Name: "recs-2", Records: more}) {
		t.Error("feedback is alike, or a field more is not")
	}
	for i, want := range []string{"policy_version: model", `policy: {value: "p"}`} {
		p := propose.Together([]propose.Topic{{Name: "recs", Records: shown}, {Name: "taps", Records: taps}}, "p")[i]
		if !strings.Contains(p.YAML(""), want) || strings.Contains(p.YAML(""), "policy: model") {
			t.Errorf("no %s in\n%s", want, p.YAML(""))
		}
	}
}

// A field with the name of a metric is not an action.
func TestMetricsAreNoActions(t *testing.T) {
	var lines [][]byte
	for i := range 300 {
		lines = append(lines, fmt.Appendf(nil, `{"key":"%s","value":%d,"timestamp":%d,"step":%d}`, []string{"episode_reward", "entropy"}[i%2], i*i%17, epoch+i, i/2))
	}
	if p := propose.Of(records(lines), "p"); p != nil {
		t.Errorf("proposed\n%s", p.YAML(""))
	}
}

// The decision of a policy is not a result, even if its values mean yes or no. A field that describes the request is
// the action only if no other field can be.
func TestDecisionsAreNoResults(t *testing.T) {
	for record, want := range map[string][]string{
		`{"application":"a%[1]d","loan":"%[2]s","repaid":%[3]t,"income":%[1]d}`:      {"action: loan", "reward: {path: repaid"},
		`{"hand":"%[4]s","points":%[1]d,"bot":"b"}`:                                  {"action: hand"},
		`{"user":"u%[1]d","genre":"%[2]s","clicked":%[3]t,"time":1795170000%03[1]d}`: {"action: genre", "reward: {path: clicked"},
		`{"action":"%[4]s","reward":%[1]d,"weights":0.%[1]d}`:                        {"observation.weights: weights"},
	} {
		var lines [][]byte
		for i := range 400 {
			lines = append(lines, fmt.Appendf(nil, record, i, []string{"approved", "declined"}[i*i%3%2], i%4 == 0, []string{"draw", "skip"}[i*i%3%2]))
		}
		p := propose.Of(records(lines), "p")
		if p == nil {
			t.Fatalf("%s: nothing is proposed", record)
		}
		for _, line := range want {
			if text := p.YAML(""); !strings.Contains(text, line) {
				t.Errorf("no %s in\n%s", line, text)
			}
		}
	}
}

// A count is not an action, even if it has few values.
func TestCountsAreNoActions(t *testing.T) {
	for name, want := range map[string]bool{"position": true, "retries": false, "queue_level": false, "n_items": false} {
		var lines [][]byte
		for i := range 400 {
			lines = append(lines, fmt.Appendf(nil, `{"strategy":"s","features":[0.5,%d],"%s":%d,"pnl":%d.25}`, i*i%17, name, i%3, i*i%43))
		}
		if p := propose.Of(records(lines), "p"); p == nil || p.Has("action") != want {
			t.Errorf("%s: %v", name, p)
		}
	}
}

func TestNothingIsProposedOfOtherRecords(t *testing.T) {
	for _, text := range []string{"", "no JSON\n7\n\"x\"", `{"message":"started","level":"info"}`, `[]`, `{}`, `{"a":{"b":[1,[2]]}}`} {
		if p := propose.Of(records(bytes.Split([]byte(text), []byte("\n"))), "p"); p != nil {
			t.Errorf("%s: %s", text, p.YAML(""))
		}
	}
}

// For any records, a proposal can be used or there is none.
func FuzzOf(f *testing.F) {
	f.Add([]byte(`{"action":"a","reward":1,"t":["x"]}` + "\n" + `{"action":"b","steps":[{"score":1}]}`))
	f.Add([]byte(`{"type":"a","arm":1,"id":"x"}` + "\n" + `{"type":"click","id":"x"}`))
	f.Add([]byte(`{"\u0000\n\"":{"done":1,"$":2,"":{"action":true}},"clicked":"yes"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p := propose.Of(records(bytes.Split(text, []byte("\n"))), "p")
		if p == nil {
			return
		}
		var c mapping.Config
		if err := yamlfile.ErrorOf(yamlfile.Read("m.yml", []byte(p.YAML("  ")), &c).Problems()); err != nil {
			t.Fatalf("%s\n%v", p.YAML(""), err)
		}
		if _, err := c.Compile(); err != nil {
			t.Fatalf("%s\n%v", p.YAML(""), err)
		}
	})
}

// Values of feedback besides yes or no are outcomes. The numbers of a click have no meaning: only its arrival counts.
func TestNumbersOfFeedbackAreOutcomes(t *testing.T) {
	for name, test := range map[string]struct {
		every int    // so many decisions have feedback once
		more  string // of the feedback
		want  []string
		not   string
	}{
		"results of most calls":         {1, `"resolu":%t,"satisfaction":%d.5`, []string{"reward: {path: resolu", "outcomes.satisfaction: satisfaction"}, ""},
		"clicks":                        {5, `"ua":"%t","pos":{"x":%d}`, []string{"reward: {value: 1}"}, "outcomes"},
		"results that say neither":      {1, `"agent":"%t","satisfaction":%d.5`, []string{"reward: {value: 1}", "outcomes.satisfaction: satisfaction"}, ""},
		"results with only their grade": {1, `"agent":"%t","note":%d.5`, []string{"reward: note"}, "outcomes"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls, results [][]byte
			for i := range 400 {
				calls = append(calls, fmt.Appendf(nil, `{"appel":{"numero":"AP%d","motif":"m%d"},"equipe_choisie":"e%d","horodatage":%d}`, i, i%3, i%4, epoch+i*1000))
				if i%test.every == 0 {
					results = append(results, fmt.Appendf(nil, `{"numero_appel":"AP%d","fin":%d,`+test.more+`}`, i, epoch+i*1000+500, i%3 == 0, i%7))
				}
			}
			p := propose.Together([]propose.Topic{{Name: "routages", Records: records(calls)}, {Name: "resultats", Records: records(results)}}, "p")
			if p[0] == nil || p[1] == nil || !strings.Contains(p[0].YAML(""), "action: equipe_choisie # ") {
				t.Fatalf("%v", p)
			}
			text := p[1].YAML("")
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %s in\n%s", want, text)
				}
			}
			if test.not != "" && strings.Contains(text, test.not) {
				t.Errorf("%s in\n%s", test.not, text)
			}
		})
	}
}

// Clicks may consist of only an ID and a time, and the field for what was shown need not have the name of an action.
func TestClicksOfAnIDAndATimeAreJoined(t *testing.T) {
	var shown, clicks [][]byte
	for i := range 400 {
		shown = append(shown, fmt.Appendf(nil, `{"request":{"id":"r-%d"},"chosen":{"kind":"%s","score":%g},"model":"m","shown_at":%d}`,
			i, []string{"video", "article", "product"}[i%3], float64(i%7)/8, epoch+i*1000))
		if i%5 == 0 {
			clicks = append(clicks, fmt.Appendf(nil, `{"request_id":"r-%d","clicked_at":%d}`, i, epoch+i*1000+40_000))
		}
	}
	found := propose.Together([]propose.Topic{{Name: "impressions", Records: records(shown)}, {Name: "clicks", Records: records(clicks)}}, "shop")
	for i, want := range []string{"action: chosen.kind", "reward: {value: 1}"} {
		if p := found[i]; p == nil || p.Joined == nil || !strings.Contains(p.YAML(""), want) {
			t.Errorf("topic %d: %+v, want %q and a join", i, p, want)
		}
	}
}

// The word for the chosen action is found in a name in any notation.
func TestChosenIsAWordInAnyNotation(t *testing.T) {
	for field, chosen := range map[string]bool{
		"lane_chosen": true, "laneChosen": true, "LaneChosen": true, "LANE_CHOSEN": true, "LANE-CHOSEN": true, "laneCHOSEN": true, "VIPChosen": true,
		"isSelected": true, "IS_SELECTED": true, "selectedLane": true, "SELECTED_LANE": true, "VOIE_CHOISIE": true, "voieChoisie": true,
		"GEWÄHLTE_SPUR": true, "gewählteSpur": true, "lane": false, "LANE": false, "CHOSENESS": false, "unchosen": false,
	} {
		var lines [][]byte
		for i := range 200 {
			lines = append(lines, fmt.Appendf(nil, `{"ts":%d,"model":"m","sessionid":"s%d",%q:"l%d","reward":%d}`, epoch+i*1000, i, field, i%4, i%3))
		}
		p := propose.Of(records(lines), "p")
		if p == nil {
			t.Fatalf("%s: no proposal", field)
		}
		text := p.YAML("")
		if got := !strings.Contains(text, "guessed"); got != chosen || !strings.Contains(text, field) {
			t.Errorf("%s says that it was chosen: %t, want %t\n%s", field, got, chosen, text)
		}
	}
}

// Python writes times without an offset or with a space before the time, and loggers write a comma.
func TestTimesOfISO8601(t *testing.T) {
	for layout, want := range map[string]string{
		"2006-01-02T15:04:05.000000":       "ts: {path: logged, zone: UTC} #",
		"2006-01-02 15:04:05.000000":       "ts: {path: logged, zone: UTC} #",
		"2006-01-02 15:04:05,000":          "ts: {path: logged, zone: UTC} #",
		"2006-01-02T15:04:05.000-0700":     "ts: {path: logged, zone: UTC} #",
		"2006-01-02 15:04:05.000000-07:00": "ts: logged #",
		"2006-01-02T15:04:05.000Z07:00":    "ts: logged #",
	} {
		var lines [][]byte
		at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.FixedZone("", 3600))
		for i := range 400 {
			at = at.Add(1234567 * time.Microsecond)
			lines = append(lines, fmt.Appendf(nil, `{"logged":"%s","arm":"a%d","payoff":%d,"build":{"host":"h%d"}}`, at.Format(layout), i%2, i%3, i%7))
		}
		p := propose.Of(records(lines), "shop")
		if p == nil {
			t.Fatalf("%s: nothing is proposed", layout)
		}
		text := p.YAML("")
		if !strings.Contains(text, want) {
			t.Errorf("%s: no %s in\n%s", layout, want, text)
		}
		if !strings.HasSuffix(text, "  # not used: build.host\n") {
			t.Errorf("%s: what is not used is missing in\n%s", layout, text)
		}
		plan, err := p.Config().Compile()
		if err != nil {
			t.Fatal(err)
		}
		d := telemetry.Mapped{Plan: plan}.NewDecoder(ingest.DecoderOptions{MaxRecord: 1 << 20})
		events := d.Decode(nil, &ingest.Message{Value: bytes.Join(lines, []byte("\n"))}, func(e *ingest.RecordError, _ []byte) { t.Fatal(e) })
		shown := at
		if !strings.Contains(layout, "07") {
			shown = at.Add(time.Hour) // the clock of the zone, taken as UTC
		}
		if got := time.Unix(0, events[len(events)-1].TS); got.Sub(shown).Abs() > time.Millisecond {
			t.Errorf("%s: the last time is %s, want %s", layout, got.UTC(), shown.UTC())
		}
	}
}
