package propose_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest/mapping/propose"
)

// Records without an ID that each continue where the previous one ended are steps of one agent. Independent decisions
// are not, even if the hour and the weather also continue from one to the next.
func TestRecordsThatGoOnAreStepsOfOneAgent(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	inside, level := 21., 0.
	cooling := func(i int) string {
		hour := float64(i%288) / 12
		outside := 24 + 6*math.Sin(hour/24*2*math.Pi)
		inside += .03*(outside-inside) - .1*level + .02*rng.NormFloat64()
		level = math.Round(max(0, min(4, 2*(inside-22))))
		return fmt.Sprintf(`"inside":%.2f,"outside":%.2f,"level":%d,"reward":%.3f`, inside, outside, int(level), -level*.3-math.Abs(inside-22))
	}
	visits := func(i int) string {
		hour := i / 50 % 24
		return fmt.Sprintf(`"hour":%d,"outside":%.2f,"basket":%d,"age":%d,"reward":%d`, hour, 20+float64(hour)/10, rng.IntN(5), 20+rng.IntN(40), rng.IntN(2))
	}
	queues := make([]float64, 8)
	junction := func(i int) string {
		q := &queues[i%8]
		*q = .7**q + rng.NormFloat64()
		return fmt.Sprintf(`"queue":%.3f,"flow":%.3f,"phase":%d,"reward":%.3f`, *q, 2**q+rng.NormFloat64(), i%2, -*q)
	}
	prices := func(i int) string {
		hour := i / 100 % 24
		return fmt.Sprintf(`"hour":%d,"outside":%.2f,"stock":%d,"rival":%.3f,"age":%d,"reward":%d`, hour, 20+float64(hour)/10, 1000-i%900, math.Sin(float64(i)/700), 20+rng.IntN(40), rng.IntN(2))
	}
	for name, c := range map[string]struct {
		record func(i int) string
		wants  []string
		not    string
	}{
		"junctions whose queues are half forgotten": {
			func(i int) string { return fmt.Sprintf(`"agent_id":"j%d",`, i%8) + junction(i) }, []string{"agent_id: agent_id"}, "terminated",
		},
		"prices at a time of the day": {prices, []string{"terminated: {value: true} # no field identifies an agent"}, "agent_id"},
		"prices at a time of the day, with numbers": {
			func(i int) string { return fmt.Sprintf(`"request":"q%06dx",`, i) + prices(i) }, []string{"episode_id: request", "terminated: {value: true}"}, "agent_id",
		},
		"one agent without a name": {
			cooling, []string{`agent_id: {value: "agent"} # no field marks the end of an episode: one agent`, "observation.level: level # rename to `action` if the policy chooses this value: "}, "terminated",
		},
		"one agent with a name": {
			func(i int) string { return `"building":"hq",` + cooling(i) }, []string{"agent_id: building"}, "terminated",
		},
		"visits of users who come often": {
			func(i int) string { return fmt.Sprintf(`"user":"u%d",`, rng.IntN(40)) + visits(i) }, []string{"agent_id: user", "terminated: {value: true} # no field marks the end of an episode, and an agent's records do not follow on from each other"}, "labels",
		},
		"visits from a few types of devices": {
			func(i int) string { return fmt.Sprintf(`"device":"d%d",`, rng.IntN(3)) + visits(i) }, []string{"labels.device: device", "terminated: {value: true}"}, "agent_id",
		},
		"agents of which little is known": {
			func(i int) string { return fmt.Sprintf(`"robot":"r%d","reward":%d`, i%4, rng.IntN(2)) }, []string{"agent_id: robot"}, "terminated",
		},
		"visits": {visits, []string{"terminated: {value: true} # no field identifies an agent"}, "agent_id"},
		"visits with a number": {
			func(i int) string { return fmt.Sprintf(`"line":%d,"ms":%d,`, i, 100*i) + visits(i) }, []string{"terminated: {value: true}"}, "agent_id",
		},
	} {
		var lines [][]byte
		for i := range 2000 {
			lines = append(lines, fmt.Appendf(nil, `{"ts":%d,"model":"m",%s}`, epoch+i*300_000, c.record(i)))
		}
		p := propose.Of(records(lines), "p")
		if p == nil {
			t.Fatalf("%s: no proposal", name)
		}
		text := p.YAML("")
		for _, want := range c.wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
		if strings.Contains(text, c.not) {
			t.Errorf("%s: %q in\n%s", name, c.not, text)
		}
	}
}
