package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// localKills is how often a service without Kafka is killed while agents post to it.
var localKills = flag.Int("local-kills", 4, "how often a service without Kafka is killed")

// localConfig returns the configuration of a service without Kafka, in a separate directory.
func localConfig(t *testing.T) (cfgFile, log string) {
	t.Helper()
	dir := t.TempDir()
	log = filepath.Join(dir, "telemetry")
	return testkit.WriteConfig(t, fmt.Sprintf(`
ingest:
  log: {directory: %q}
  dead_letters: {directory: %q}
checkpoint: {directory: %q, every: 1s}
policies:
  - match: "*"
    false_alarms: {budget: 1, per: 20000 episodes}
http: {listen: "127.0.0.1:0"}
`, log, filepath.Join(dir, "dead-letters"), filepath.Join(dir, "checkpoints"))), log
}

// localGuards are guards for the drift of drifting: one that trips and stays tripped, one that trips and is released
// when the drift is over, and one that counts and does not trip.
const localGuards = `
    guards:
      limits:
        - {name: third-action, actions: [c], share: 0.3, then: fallback}
        - {name: poor, return_below: -18, share: 0.3, release_after: 200}
        - {name: predictable, entropy: 0.9}
`

// withGuards adds localGuards to a configuration.
func withGuards(t *testing.T, cfgFile string) {
	t.Helper()
	text := strings.Replace(testkit.Read(t, cfgFile), "\nhttp:", localGuards+"http:", 1)
	if err := os.WriteFile(cfgFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// guards returns the guards of a fleet's policy, without the time of the response and their expiry.
func (p *process) guards() (g wire.Guards) {
	p.get("/api/v1/guards/ranker", &g)
	g.At, g.Until = time.Time{}, time.Time{}
	return g
}

// trips returns the number of incidents of each guard, by its name and their state.
func (p *process) trips() map[string]int {
	n := map[string]int{}
	for _, i := range p.incidents() {
		if name := i.Group["guard"]; name != "" {
			n[name+" "+i.State]++
		}
	}
	return n
}

// undisturbed returns the guards of a service without Kafka that receives the telemetry of a fleet and is not killed.
func (f *fleet) undisturbed(t *testing.T, units int64) wire.Guards {
	t.Helper()
	cfgFile, _ := localConfig(t)
	withGuards(t, cfgFile)
	p := startService(t, cfgFile)
	var to address
	to.set(p)
	for from := 0; from < len(f.lines); from += 2000 {
		lines := f.lines[from:min(from+2000, len(f.lines))]
		if !to.insist(t, fmt.Sprint("from ", from), append(bytes.Join(lines, []byte("\n")), '\n')) {
			t.Fatal("a batch was not taken")
		}
	}
	testkit.Eventually(t, "all units", func() bool { return p.units() == units })
	p.interrupt(t)
	p = startService(t, cfgFile) // it shows what was last saved
	defer p.interrupt(t)
	return p.guards()
}

// address is the address of a service that is killed and restarted.
type address struct {
	mu sync.Mutex
	at string
}

func (a *address) set(p *process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = p.address
}

func (a *address) get() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

// insist posts a batch until it is confirmed.
func (a *address) insist(t *testing.T, id string, body []byte) bool {
	for t.Context().Err() == nil {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+a.get()+"/api/v1/telemetry", bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return false
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", id)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			continue // it is being killed
		}
		said, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close() // already read
		switch {
		case err == nil && answer.StatusCode == http.StatusOK:
			return true
		case err == nil && answer.StatusCode < 429:
			t.Errorf("batch %s: %d %s", id, answer.StatusCode, said)
			return false
		}
	}
	return false
}

// When killed at random times while agents post, a service without Kafka finds what replay finds in everything that was
// confirmed, and what replay finds in its log. Its guards have counted each unit once, and each trip is one incident.
func TestSimKilledServiceWithoutKafkaFindsTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	cfgFile, log := localConfig(t)
	withGuards(t, cfgFile)
	f := drifting(12, 7)
	ids, units := f.wanted(t, cfgFile)
	guards := f.undisturbed(t, units)
	p := startService(t, cfgFile)
	var to address
	to.set(p)
	kills := int64(*localKills)
	parts, posted := make(chan [][]byte), make(chan bool)
	go func() {
		defer close(posted)
		n := 0
		for part := range parts {
			for lines := range slices.Chunk(part, 20) {
				if n++; !to.insist(t, fmt.Sprint("batch-", n), append(bytes.Join(lines, []byte("\n")), '\n')) {
					t.Error("a batch was not taken")
				}
			}
		}
	}()
	rng := rand.New(rand.NewPCG(14, 3))
	ended := int64(0) // number of episodes in the preceding parts
	for i := range kills {
		part := f.lines[int64(len(f.lines))*i/kills : int64(len(f.lines))*(i+1)/kills]
		parts <- part
		ends := int64(bytes.Count(bytes.Join(part, nil), []byte(`"terminated":true`)))
		at := ended + rng.Int64N(ends*3/4+1) // mostly while the part is posted
		ended += ends
		testkit.Eventually(t, fmt.Sprint(at, " units"), func() bool { return t.Failed() || p.units() >= at })
		p.kill()
		p = startService(t, cfgFile)
		to.set(p)
	}
	close(parts)
	<-posted
	testkit.Eventually(t, "all units", func() bool { return t.Failed() || p.units() == units })
	if got := p.alarms(); !slices.Equal(got, ids) {
		t.Errorf("alarms %v, want %v", got, ids)
	}
	_, out := verb(t, "replay", "--output", "json", "--config", cfgFile, log)
	again := parseReplay(t, out)
	if got := again.firing(); !slices.Equal(slices.Sorted(slices.Values(got)), ids) || again.summary.Units != units {
		t.Errorf("replay of the log finds %v in %d units, want %v in %d", got, again.summary.Units, ids, units)
	}
	p.interrupt(t)
	p = startService(t, cfgFile) // it shows what was last saved
	if got, want := p.trips(), map[string]int{"third-action open": 1, "poor closed": 1}; !maps.Equal(got, want) {
		t.Errorf("incidents of guards: %v, want %v", got, want)
	}
	if got := p.guards(); !reflect.DeepEqual(got, guards) {
		t.Errorf("guards after kills:\n%+v, undisturbed:\n%+v", got, guards)
	}
	if guards.State != "fallback" || len(guards.Guards) != 3 {
		t.Errorf("guards of a service that was not killed: %+v", guards)
	}
	p.interrupt(t)
}

// Concurrent posts of several agents are in the state exactly once, also after kills.
func TestPostedAtOnceIsJudgedOnce(t *testing.T) {
	t.Parallel()
	cfgFile, _ := localConfig(t)
	p := startService(t, cfgFile)
	var to address
	to.set(p)
	const clients, batches, each = 5, 12, 20
	var posting sync.WaitGroup
	for agent := range clients {
		posting.Go(func() {
			for batch := range batches {
				var body bytes.Buffer
				for i := range each {
					fmt.Fprintf(&body, `{"policy":"p","agent_id":"a-%d","episode":{"r":%d,"l":1}}`+"\n", agent, i)
				}
				to.insist(t, fmt.Sprint(agent, "/", batch), body.Bytes())
			}
		})
	}
	for i := range int64(3) {
		testkit.Eventually(t, "some units", func() bool { return t.Failed() || p.units() >= clients*batches*each*i/4+1 })
		p.kill()
		p = startService(t, cfgFile)
		to.set(p)
	}
	posting.Wait()
	testkit.Eventually(t, "all units", func() bool { return t.Failed() || p.units() >= clients*batches*each })
	if code, answer := p.send(t, "the last", `{"policy":"p","agent_id":"a-0","episode":{"r":1,"l":1}}`); code != http.StatusOK {
		t.Fatalf("the last batch: %d %s", code, answer)
	}
	testkit.Eventually(t, "the last unit", func() bool { return p.units() > clients*batches*each })
	if n := p.units(); n != clients*batches*each+1 {
		t.Errorf("%d units, want %d", n, clients*batches*each+1)
	}
	p.interrupt(t)

	// Without the checkpoint of the partition, reading continues at the committed offset: nothing is judged again.
	for _, file := range checkpointFiles(t, cfgFile, "partition") {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	p = startService(t, cfgFile)
	if code, answer := p.send(t, "one more", `{"policy":"p","agent_id":"a-0","episode":{"r":1,"l":1}}`); code != http.StatusOK {
		t.Fatalf("one more batch: %d %s", code, answer)
	}
	testkit.Eventually(t, "one more unit", func() bool { return p.units() > clients*batches*each+1 })
	if n := p.units(); n != clients*batches*each+2 {
		t.Errorf("%d units, want %d", n, clients*batches*each+2)
	}
	p.interrupt(t)
}

// Records of another shape are mapped.
func TestLocalLogHasAMapping(t *testing.T) {
	t.Parallel()
	cfgFile, log := localConfig(t)
	mapping := "mapping: {fields: {policy: {value: ranker}, agent_id: user.id, reward: score, terminated: {value: true}}}"
	text := strings.Replace(testkit.Read(t, cfgFile), "log: {", "log: {"+mapping+", ", 1)
	if err := os.WriteFile(cfgFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startService(t, cfgFile)
	var body strings.Builder
	for i := range 30 {
		fmt.Fprintf(&body, `{"user":{"id":"u-%d"},"score":%d}`+"\n", i%3, i)
	}
	if code, answer := p.send(t, "", body.String()); code != http.StatusOK || !strings.Contains(answer, `"accepted":30`) {
		t.Fatalf("%d %s", code, answer)
	}
	testkit.Eventually(t, "all units", func() bool { return p.units() == 30 })
	p.interrupt(t)
	if code, out := verb(t, "replay", "--output", "json", "--config", cfgFile, log); code != exitFine || parseReplay(t, out).summary.Units != 30 {
		t.Errorf("replay: %d\n%s", code, out)
	}
}

// A team without Kafka posts its telemetry, sees the incident, and exports and inspects the underlying telemetry, while
// the service is running.
func TestServiceWithoutKafka(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	cfgFile, log := localConfig(t)
	p := startService(t, cfgFile)
	var to address
	to.set(p)
	f := newFleet(11, 3)
	f.episodes(600)
	f.mean, f.shares, f.version = -1.1, [3]float64{.2, .3, .5}, "2"
	f.episodes(200)
	for at := 0; at < len(f.lines); at += 500 {
		part := f.lines[at:min(at+500, len(f.lines))]
		if !to.insist(t, fmt.Sprint(at), bytes.Join(part, []byte("\n"))) {
			t.Fatal("not all was posted")
		}
	}
	testkit.Eventually(t, "an incident", func() bool { return len(p.incidents()) > 0 })
	testkit.Eventually(t, "readiness", func() bool {
		code, _ := p.fetch(t, "/-/ready")
		return code == http.StatusOK
	})
	if code, answer := p.send(t, "", "{}"); code != http.StatusBadRequest || !strings.Contains(answer, "missing_policy") {
		t.Errorf("a bad record: %d %s", code, answer)
	}
	if second := runVerb("run", "--config", cfgFile); second.code != exitError || !strings.Contains(second.err, "in use") {
		t.Errorf("a second instance: %d %s", second.code, second.err)
	}

	i := p.incidents()[0]
	offsets, err := json.Marshal(i.Alarms[0].Offsets)
	if err != nil || len(i.Alarms[0].Offsets) == 0 {
		t.Fatalf("the incident names no offsets: %v", err)
	}
	v := apitest.SomeView()
	group, err := json.Marshal(i.Group)
	if err != nil {
		t.Fatal(err)
	}
	v.Ordered = []ledger.Request{{ID: "rr_1", Order: fmt.Appendf(nil, `{"incident":%q,"policy":%q,"group":%s,"offsets":{"drifted":%s}}`, i.ID, i.Policy, group, offsets)}}
	flags := append(serveOrders(t, v, &apitest.FixedOrders{}), "--config", cfgFile)
	for _, until := range [][]string{nil, {"--until", "now"}, {"--until", time.Now().Add(time.Hour).Format(time.RFC3339)}} {
		got := runVerb(slices.Concat([]string{"retrain", "export", "rr_1", "--data", "drifted"}, until, flags)...)
		if got.code != exitFine || strings.Count(got.out, "\n") < 100 {
			t.Errorf("export %v: %d, %d steps, %s", until, got.code, strings.Count(got.out, "\n"), got.err)
		}
	}
	if got := runVerb("inspect", "--config", cfgFile, log); got.code != exitFine || !strings.Contains(got.out, "log:") || strings.Contains(got.out, "kafka:") {
		t.Errorf("inspect: %d\n%s%s", got.code, got.out, got.err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the reload", func() bool { return p.said("reading the local log") == 2 })
	p.interrupt(t)
}
