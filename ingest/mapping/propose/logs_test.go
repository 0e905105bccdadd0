package propose_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest/mapping/propose"
)

// TestShapesOfLogs covers shapes of records that tools and teams log: several events per record, tables, text, and
// names with units.
func TestShapesOfLogs(t *testing.T) {
	for name, test := range map[string]struct {
		record     func(i int, r *rand.Rand) string
		has, lacks []string
	}{
		"parallel environments": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"obs":[[%.2f,1],[2,3],[%.2f,5]],"actions":[%d,0,1],"rewards":[1,%.2f,0.5],"terminated":[%t,%t,false],"truncated":[false,false,false],"global_step":%d}`,
					epoch+i, r.Float64(), r.Float64(), r.IntN(2), r.Float64(), r.IntN(9) == 0, r.IntN(9) == 0, i)
			},
			[]string{
				"columns: [actions, obs, rewards, terminated, truncated]", "agent_id: {index: true}", "ts: {path: $.ts", "action: actions", "reward: rewards", "terminated: terminated", "truncated: truncated",
				"observation: obs",
			},
			[]string{"last: true"},
		},
		"parallel environments that only time limits end": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"obs":[[%.2f],[2]],"actions":[[%.2f],[%.2f]],"rewards":[1,%.2f],"terminated":[false,false],"truncated":[%t,%[6]t]}`,
					epoch+i, r.Float64(), r.Float64(), r.Float64(), r.Float64(), i%100 == 99)
			},
			[]string{"agent_id: {index: true}", "action: actions", "truncated: truncated"},
			nil,
		},
		"steps of a fragment": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"t":[%d,%d],"obs":[[%.2f],[2]],"actions":[0,1],"rewards":[1,%.2f],"dones":[false,%t]}`, i%50*2, i%50*2+1, r.Float64(), r.Float64(), i%50 == 49)
			},
			[]string{"step: t", "terminated: dones"},
			[]string{"index"},
		},
		"an episode in columns": {
			func(i int, r *rand.Rand) string {
				n := 3 + r.IntN(5)
				list := func(format string) string {
					return "[" + strings.TrimSuffix(strings.Repeat(fmt.Sprintf(format, r.IntN(4))+",", n), ",") + "]"
				}
				return fmt.Sprintf(`{"episode_id":"e%d","success":%t,"traj":{"acts":%s,"rewards":%s,"observations":%s}}`, i, r.IntN(2) == 0, list(`"a%d"`), list("%d.5"), list("[%d,1]"))
			},
			[]string{
				"columns: [traj.acts, traj.observations, traj.rewards]", "episode_id: $.episode_id", "reward: rewards", "observation: observations", "outcomes.success: {path: $.success, last: true}",
				"terminated: {value: true, last: true}",
			},
			[]string{"index"},
		},
		"a sample batch": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"type":"SampleBatch","eps_id":[%d,%[1]d,%d],"t":[0,1,0],"actions":[%d,1,0],"rewards":[%.1f,1,1],"dones":[false,true,%t],"action_prob":[0.5,0.25,0.5]}`, 2*i, 2*i+1, r.IntN(2), r.Float64(), i%2 == 0)
			},
			[]string{"columns: [action_prob, actions, dones, eps_id, rewards, t]", "episode_id: eps_id", "step: t", "action_prob: action_prob", "terminated: dones"},
			nil,
		},
		"agents by name": {
			func(i int, r *rand.Rand) string {
				agent := fmt.Sprintf(`{"action":%d,"reward":%.2f,"obs":[%.2f]}`, r.IntN(3), r.Float64(), r.Float64())
				return fmt.Sprintf(`{"time":%d,"match":"m%d","agents":{"red":%s,"blue":%[3]s},"done":%t}`, epoch/1000+i, i/10, agent, i%10 == 9)
			},
			[]string{"each: agents", "agent_id: {index: true}", "action: action", "reward: reward", "terminated: $.done", "observation: obs"},
			[]string{"last: true"},
		},
		"agents by name in each field": {
			func(i int, r *rand.Rand) string {
				agents := func(format string, value func() any) string {
					return fmt.Sprintf(`{"red":`+format+`,"blue":`+format+`}`, value(), value())
				}
				return fmt.Sprintf(`{"t":%d,"observations":%s,"actions":%s,"rewards":%s,"terminations":%s,"seed":7}`, epoch/1000+i, agents("[%v,1]", func() any { return r.IntN(9) }),
					agents("%v", func() any { return r.IntN(3) }), agents("%.2f", func() any { return r.Float64() }), agents("%t", func() any { return i%10 == 9 }))
			},
			[]string{"columns: [actions, observations, rewards, terminations]", "agent_id: {index: true} # the name in rewards", "action: actions", "reward: rewards", "terminated: terminations", "observation: observations"},
			[]string{"last: true", "reward_components"},
		},
		"parts of a reward are no agents": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"action":"a%d","reward":%.2f,"rewards":{"speed":%.2f,"energy":%.2f},"info":{"speed":%d}}`, epoch+i, r.IntN(3), r.Float64(), r.Float64(), r.Float64(), r.IntN(9))
			},
			[]string{"action: action", "reward: reward", "reward_components: rewards"},
			[]string{"columns", "each:"},
		},
		"a vector is one action": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"robot":"r%d","action":[%.2f,%.2f],"rewards":[%.2f,%.2f],"reward":%.2f}`, epoch+i, i%3, r.Float64(), r.Float64(), r.Float64(), r.Float64(), r.Float64())
			},
			[]string{"action: action", "reward: reward"},
			[]string{"columns", "each:"},
		},
		"a request and its response are no agents": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"io":{"request":{"action":"a%d","user":"u"},"response":{"reward":%.2f}}}`, epoch+i, r.IntN(3), r.Float64())
			},
			[]string{"action: io.request.action", "reward: io.response.reward"},
			[]string{"each:"},
		},
		"what Vowpal Wabbit logs": {
			func(i int, r *rand.Rand) string {
				k := r.IntN(3)
				return fmt.Sprintf(`{"_label_cost":%d,"_label_probability":0.8,"_label_Action":%d,"_labelIndex":%d,"Timestamp":"2026-09-01T10:%02d:%02dZ","EventId":"e%d","a":[%[2]d,5],"c":{"User":{"age":%[7]d}},"p":[0.8,0.2]}`,
					-r.IntN(2), k+1, k, i/60, i%60, i, 20+r.IntN(40))
			},
			[]string{"ts: Timestamp", "action: _label_Action", "reward: {path: _label_cost, scale: -1}", "action_prob: _label_probability", "observation.age: c.User.age"},
			[]string{"observation._labelIndex", "observation._label_Action"},
		},
		"what was assigned": {
			func(i int, r *rand.Rand) string {
				wait := r.Float64() * 30
				return fmt.Sprintf(`{"at":"2026-09-07T10:%02d:%02d","building":"HQ","floor":%d,"direction":"%s","cars":[{"car":1,"floor":%d},{"car":2,"floor":%d}],"assigned_car":%d,"assigned_distance":%d,"assigned_prob":%.2f,"wait_s":%.2f,"reward":%.2f}`,
					i/60, i%60, r.IntN(12), []string{"up", "down"}[r.IntN(2)], r.IntN(12), r.IntN(12), 1+r.IntN(4), r.IntN(9), r.Float64(), wait, -wait)
			},
			[]string{"action: assigned_car", "action_prob: assigned_prob", "reward: reward", "observation.floor: floor", "(1 agent)", "observation.cars.0.floor: \"cars[0].floor\"", "observation.cars.1.floor"},
			[]string{"observation.wait_s", "observation.assigned_distance", "car\":"},
		},
		"agents in a list": {
			func(i int, r *rand.Rand) string {
				agent := func(id int) string {
					return fmt.Sprintf(`{"id":%d,"reward":%.2f,"done":%t,"maxStepReached":false,"actionIndex":%d,"observations":[%.2f,1]}`, id, r.Float64(), r.IntN(20) == 0, r.IntN(5), r.Float64())
				}
				return fmt.Sprintf(`{"ts":%d,"behaviorName":"Soldier","agentInfos":[%s,%s,%s]}`, epoch+i, agent(7), agent(8), agent(9))
			},
			[]string{"each: agentInfos", "policy: $.behaviorName", "agent_id: id", "action: actionIndex", "terminated: done", "truncated: maxStepReached", "observation: observations"},
			[]string{"last: true"},
		},
		"a vector in columns of a table": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"traj":%d,"t":%d,"obs_0":%.2f,"act_0":%.2f,"act_1":%.2f,"rew":%.2f,"done":%d}`, i/20, i%20, r.Float64(), r.Float64(), r.Float64(), r.Float64(), i%20/19)
			},
			[]string{`action: {expression: "[record[\"act_0\"], record[\"act_1\"]]"}`, "episode_id: traj", "step: t", "observation.obs_0: obs_0"},
			[]string{"observation.act"},
		},
		"text for everything": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"time":"%d.5","episode":"%d","step":"%d","action":"%d","reward":"%.2f","done":"%s"}`, epoch/1000+i, i/20, i%20, r.IntN(4), r.Float64(), []string{"False", "True"}[i%20/19])
			},
			[]string{"step: {expression: ", `terminated: {path: done, choices: {"False": false, "True": true}}`, "reward: {expression: ", "episode_id: episode"},
			nil,
		},
		"a response, and the score that predicts it": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"op":"c","ts_ms":%d,"before":null,"after":{"customer_id":%d,"offer_code":"A%d","score":%.2f,"accepted":%t}}`, epoch+i, i*7%90, r.IntN(4), r.Float64(), r.IntN(5) == 0)
			},
			[]string{"action: after.offer_code", "reward: {path: after.accepted", "observation.score: after.score"},
			nil,
		},
		"a success beside a reward": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"s":[%.2f,1],"a":%d,"r":%.2f,"d":%t,"success":%t}`, epoch+i, r.Float64(), r.IntN(3), r.Float64(), i%20 == 19, i%40 == 39)
			},
			[]string{"reward: r ", "outcomes.success: success"},
			nil,
		},
		"a profit of what was accepted": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"user":"u%d","offer":"o%d","accepted":%t,"profit":%.2f}`, epoch+i, r.IntN(50), r.IntN(4), r.IntN(3) == 0, r.Float64())
			},
			[]string{"action: offer", "reward: profit"},
			nil,
		},
		"what could have been chosen": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"actions":["a","b","c"],"rewards":[%.2f,%.2f,%.2f],"chosen":"%c","user":"u%d"}`, epoch+i, r.Float64(), r.Float64(), r.Float64(), 'a'+rune(r.IntN(3)), r.IntN(9))
			},
			[]string{"action: chosen"},
			[]string{"columns"},
		},
		"items that a model scored": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"user":"u%d","items":["a%d","b","c"],"scores":[%.2f,%.2f,%.2f],"clicked":%d}`, epoch+i, r.IntN(9), r.IntN(9), r.Float64(), r.Float64(), r.Float64(), r.IntN(2))
			},
			[]string{"reward: clicked"},
			[]string{"columns"},
		},
		"steps with scores": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"actions":["a%d","b"],"scores":[%.2f,%.2f],"dones":[%t,false]}`, epoch+i, r.IntN(9), r.Float64(), r.Float64(), i%9 == 0)
			},
			[]string{"columns: [actions, dones, scores]", "reward: scores"},
			nil,
		},
		"commands beside what was measured": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"torque_0":%.2f,"torque_1":%.2f,"cmd_0":%.2f,"cmd_1":%.2f,"actuator_0":1,"reward":%.2f}`, epoch+i, r.Float64(), r.Float64(), r.Float64(), r.Float64(), r.Float64())
			},
			[]string{`[record[\"cmd_0\"], record[\"cmd_1\"]]`, "observation.torque_0"},
			nil,
		},
		"scores of what could have been chosen": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"candidates":{"a":{"score":%.2f},"b":{"score":%.2f}},"chosen":"%c","reward":%d}`, epoch+i, r.Float64(), r.Float64(), 'a'+rune(r.IntN(2)), r.IntN(2))
			},
			[]string{"action: chosen", "reward: reward"},
			[]string{"each:"},
		},
		"a sum of rewards is no agent": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"action":{"valve":%.2f,"pump":%.2f},"reward":{"total":%.2f,"valve":%.2f,"pump":%.2f}}`, epoch+i, r.Float64(), r.Float64(), r.Float64(), r.Float64(), r.Float64())
			},
			[]string{"the numbers that vary in action"},
			[]string{"columns"},
		},
		"the end for all agents": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"actions":{"a":%d,"b":%d},"rewards":{"a":%.2f,"b":1},"terminateds":{"a":%t,"b":%[4]t,"__all__":%[4]t}}`, r.IntN(3), r.IntN(3), r.Float64(), i%9 == 8)
			},
			[]string{`take: [{index: true, not_in: ["__all__"]}]`, "columns: [actions, rewards, terminateds]", "numbers in 100% of 600"},
			nil,
		},
		"a summary of episodes": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ep":%d,"finished_at":%d,"stats":{"sum_rew":%.2f,"len":%d,"success":%t},"agent":{"name":"ppo-ant"}}`, i, epoch/1000+30*i, 200*r.Float64(), 180+r.IntN(40), r.IntN(3) > 0)
			},
			[]string{"policy: agent.name", "episode_id: ep", "episode.r: stats.sum_rew", "episode.l: stats.len", "outcomes.success: stats.success"},
			nil,
		},
		"bids, and what they earned": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"hour_start":"2026-08-01T%02d:00:00Z","campaign_id":"c%d","bid_multiplier":%.2f,"clicks":%d,"roas":%.2f,"bidder":"rtb"}`, i/12%24, i%12, 1+r.Float64(), r.IntN(60), r.Float64())
			},
			[]string{"policy: bidder", "bid_multiplier", "reward: roas", "outcomes.clicks: clicks"},
			nil,
		},
		"bids of an auction": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"auction_id":"a%d","ts_us":%d,"model":"bidder-v12","campaign":"c%d","floor":%.3f,"bid_cpm":%.4f,"won":%t,"conversion_value":%.2f}`,
					i, (epoch+500*i)*1000, i%5, r.Float64(), r.ExpFloat64(), r.IntN(3) == 0, float64(r.IntN(2))*r.ExpFloat64())
			},
			[]string{"policy: model", "[record[\\\"bid_cpm\\\"]]", "outcomes.conversion_value: conversion_value", "observation.floor: floor"},
			[]string{"action: campaign"},
		},
		"a robot that reaches goals": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"header":{"seq":%d,"stamp":{"sec":%d,"nanosec":%d}},"robot_name":"r1","cmd_vel":{"linear":{"x":%.3f,"y":0},"angular":{"z":%.3f}},"goal_distance":%.1f,"goal_reached":%t,"r":%.1f}`,
					i, epoch/1000+i/10, i%10*100_000_000, r.Float64(), r.NormFloat64(), 10-float64(i%100)/10, i%100 == 99, -.1+10*float64(i%100/99))
			},
			[]string{"agent_id: robot_name", "terminated: goal_reached", "observation.goal_distance: goal_distance", "reward: r"},
			[]string{"observation.goal_reached"},
		},
		"traces with scores": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"id":"t%d","timestamp":"2026-10-01T%02d:%02d:00Z","name":"support","sessionId":"s%d","latency":1.%d,"output":"%s","scores":[{"name":"helpfulness","value":%.2f},{"name":"thumbs","value":%d}]}`,
					i, i/60, i%60, i/3, i%9, [...]string{"search", "answer", "escalate"}[r.IntN(3)], r.Float64(), r.IntN(2))
			},
			[]string{"outcomes.helpfulness: {expression: \"find(record[", "outcomes.thumbs: ", "outcomes.latency: latency", "action: output"},
			[]string{"each:", "observation.value"},
		},
		"pulls of arms": {
			func(i int, r *rand.Rand) string {
				arm := func() string { return [...]string{"A", "B", "C"}[r.IntN(3)] }
				return fmt.Sprintf(`{"at":%d,"policy":"p","pulls":[{"dimension":"%s","value":%.2f},{"dimension":"%s","value":%.2f},{"dimension":"%s","value":%.2f}]}`, epoch+i, arm(), r.Float64(), arm(), r.Float64(), arm(), r.Float64())
			},
			[]string{"each: pulls"},
			[]string{"outcomes.A"},
		},
		"German dates": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"Zeit":"%02d.10.2026 %02d:%02d:00","Anlage":"A1","Aktion":"%s","Belohnung":%.3f,"T_innen":%.2f}`,
					1+i/96%28, i/4%24, i%4*15, [...]string{"aus", "halb", "voll"}[r.IntN(3)], -r.Float64(), 20+r.NormFloat64())
			},
			[]string{"ts: {path: Zeit, zone: UTC}", "action: Aktion", "reward: Belohnung", "observation.T_innen: T_innen"},
			nil,
		},
		"agents in turns, whom no name tells": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"time":%d,"strategy":"mm","symbol":"S%d","session":"day %d","seq":%d,"state":{"spread":%.3f},"quote":{"bid_offset":%.2f,"ask_offset":%.2f},"pnl":%.2f,"is_last":%t}`,
					epoch+i, i%3, i/30, i%30/3, r.Float64(), r.Float64(), r.Float64(), r.NormFloat64(), i%30/3 == 9)
			},
			[]string{"agent_id: symbol", "episode_id: session", "step: seq", "the numbers that vary in quote", "terminated: is_last"},
			[]string{"action: symbol"},
		},
		"an agent alone, beside things of few names": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"time":%d,"strategy":"mm","symbol":"S%d","session":"day %d","seq":%d,"pnl":%.2f,"is_last":%t}`, epoch+i, r.IntN(3), i/10, i%10, r.NormFloat64(), i%10 == 9)
			},
			[]string{"episode_id: session", "step: seq", "action: symbol"},
			[]string{"agent_id"},
		},
		"the batches of a training": {
			func(i int, r *rand.Rand) string {
				rating := ""
				if r.IntN(5) == 0 {
					rating = fmt.Sprintf(`,"human_rating":%d`, 1+r.IntN(5))
				}
				return fmt.Sprintf(`{"timestamp":%d,"run":"grpo-7b","global_step":%d,"tokens_seen":%d,"kl":%.3f,"rm_score":%.2f,"reward":%.2f%s}`,
					epoch+i, i/8, 1000*i, r.Float64(), r.NormFloat64(), r.NormFloat64(), rating)
			},
			[]string{"policy: run", "reward: reward", "outcomes.human_rating: human_rating", "observation.kl: kl"},
			[]string{"observation.global_step", "observation.tokens_seen"},
		},
		"what is measured, in a list": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"junction":"J%d","controller":"ppo","queue_lengths":[%d,%d,%d],"phase":"%s","reward":%.2f}`,
					epoch+i, i%4, r.IntN(9), r.IntN(9), r.IntN(9), []string{"NS", "EW"}[r.IntN(2)], -r.Float64())
			},
			[]string{"action: phase", "observation: queue_lengths"},
			nil,
		},
		"what is measured, in lists and numbers": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"controller":"ppo","queues":[%d,%d],"speeds":[%.2f,%.2f],"rain":%.2f,"visited":%s,"phase":"%s","reward":%.2f}`,
					epoch+i, r.IntN(9), r.IntN(9), r.Float64(), r.Float64(), r.Float64(), []string{"[1]", "[1,2]"}[r.IntN(2)], []string{"NS", "EW"}[r.IntN(2)], -r.Float64())
			},
			[]string{`{\"queues\": record[\"queues\"], \"speeds\": record[\"speeds\"], \"rain\": record[\"rain\"]}`, "not used: visited"},
			[]string{"observation.rain"},
		},
		"two arms": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"bot":"b","left":{"joints":[%.2f,%.2f]},"right":{"joints":[%.2f,%.2f]},"move":"%s","reward":%.2f}`,
					epoch+i, r.Float64(), r.Float64(), r.Float64(), r.Float64(), []string{"a", "b"}[r.IntN(2)], r.Float64())
			},
			[]string{`\"left.joints\": record[\"left\"]?.[\"joints\"], \"right.joints\"`},
			nil,
		},
		"what is measured at each step of a list": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"ts":%d,"bot":"b","id":"e%d","rain":%.2f,"steps":[{"lidar":[%.2f,%.2f],"battery":%.2f,"act":"%s","rew":%.2f},{"lidar":[1,2],"battery":3,"act":"a","rew":1}]}`,
					epoch+i, i, r.Float64(), r.Float64(), r.Float64(), r.Float64(), []string{"a", "b"}[r.IntN(2)], r.Float64())
			},
			[]string{`{\"lidar\": element[\"lidar\"], \"battery\": element[\"battery\"]}`},
			nil,
		},
		"amounts with units": {
			func(i int, r *rand.Rand) string {
				return fmt.Sprintf(`{"interval_start":"2026-08-01T%02d:%02d","asset":"b7","soc_pct":%.1f,"setpoint_mw":%.2f,"revenue_eur":%.2f}`, i/60, i%60, 100*r.Float64(), r.NormFloat64(), r.NormFloat64())
			},
			[]string{"setpoint_mw", "reward: revenue_eur", "observation.soc_pct: soc_pct"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 6))
			var lines [][]byte
			for i := range 300 {
				lines = append(lines, []byte(test.record(i, r)))
			}
			p := propose.Of(records(lines), "p")
			if p == nil {
				t.Fatal("no proposal")
			}
			got := p.YAML("")
			for _, want := range test.has {
				if !strings.Contains(got, want) {
					t.Errorf("lacks %q:\n%s", want, got)
				}
			}
			for _, lack := range test.lacks {
				if strings.Contains(got, lack) {
					t.Errorf("has %q:\n%s", lack, got)
				}
			}
		})
	}
}
