package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// auditTopic is a topic for entries of the audit log.
const auditTopic = "audit"

// startBroker starts an in-process broker with the topic agent-telemetry and the topic of the audit log, and returns
// its address.
func startBroker(t *testing.T, partitions int32) string {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "agent-telemetry"), kfake.SeedTopics(1, auditTopic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()[0]
}

// produce sends the lines of a fleet from from to to, with the agent as key.
func (f *fleet) produce(t *testing.T, broker string, from, to int) {
	t.Helper()
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	w := &kafka.Writer{
		Addr: kafka.TCP(broker), Topic: "agent-telemetry", Balancer: &kafka.Hash{}, BatchSize: 1000,
		BatchTimeout: time.Millisecond, RequiredAcks: kafka.RequireAll, Transport: transport,
	}
	var messages []kafka.Message
	for i := from; i < to; i++ {
		messages = append(messages, kafka.Message{Key: []byte(f.keys[i]), Value: f.lines[i]})
	}
	if err := errors.Join(w.WriteMessages(t.Context(), messages...), w.Close()); err != nil {
		t.Fatal(err)
	}
}

// process is a running service.
type process struct {
	cmd     *exec.Cmd
	address string
	done    chan struct{} // closed when it has ended
	err     error         // how it has ended, valid then

	mu  sync.Mutex
	log []string // its standard error
}

var listening = regexp.MustCompile(`listening.*address=?"?:?"?(127\.0\.0\.1:\d+)`)

// startService starts the service as a separate process and waits until it serves.
func startService(t *testing.T, cfgFile string) *process {
	t.Helper()
	return startServiceIn(t, "", cfgFile)
}

// startServiceIn starts the service in a working directory.
func startServiceIn(t *testing.T, dir, cfgFile string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], "run", "--config", cfgFile), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), asService+"=1")
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	go func() {
		first := true
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			p.mu.Lock()
			p.log = append(p.log, lines.Text())
			p.mu.Unlock()
			if m := listening.FindStringSubmatch(lines.Text()); m != nil && first {
				address <- m[1]
				first = false
			}
		}
		close(address)
		p.err = p.cmd.Wait()
		if t.Failed() {
			t.Log(strings.Join(p.log, "\n"))
		}
		close(p.done)
	}()
	t.Cleanup(p.kill)
	var serves bool
	if p.address, serves = <-address; !serves {
		<-p.done
		t.Fatalf("the service ended: %v", p.err)
	}
	testkit.Eventually(t, "the service to start", func() bool {
		select {
		case <-p.done:
			t.Fatalf("the service ended: %v", p.err)
		default:
		}
		return p.get("/api/v1/alarms", &struct{}{}) || p.ready()
	})
	return p
}

// ready reports whether the service responds that it is ready, which requires no token.
func (p *process) ready() bool {
	answer, err := http.Get("http://" + p.address + "/-/ready")
	if err != nil {
		return false
	}
	_ = answer.Body.Close() // not needed
	return answer.StatusCode == http.StatusOK
}

// kill ends the process without a chance to save, like a power cut.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

// killMember kills the process once it is a member of its group, or of the groups that read the given topics. The
// in-process broker keeps a member that dies while it waits to join forever, and assigns it partitions that are then
// not read; Apache Kafka lets its session expire.
func (p *process) killMember(t *testing.T, topics ...string) {
	t.Helper()
	for _, topic := range topics {
		testkit.Eventually(t, "the group of "+topic, func() bool { return p.said("topic="+topic) > 0 })
	}
	testkit.Eventually(t, "the membership", func() bool { return p.said("partitions assigned") > 0 })
	p.kill()
}

// interrupt ends the process gracefully.
func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if <-p.done; p.err != nil {
		t.Errorf("the service ended with %v", p.err)
	}
}

// said returns the number of lines of the log that contain a text.
func (p *process) said(text string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, line := range p.log {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// get reads a JSON response of the API; false while the service does not respond.
func (p *process) get(path string, into any) bool {
	answer, err := http.Get("http://" + p.address + path)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK && json.Unmarshal(body, into) == nil
}

// units returns the number of units that the service has seen.
func (p *process) units() int64 {
	var a struct {
		Streams []struct {
			Units int64 `json:"units"`
		} `json:"streams"`
	}
	p.get("/api/v1/streams", &a)
	most := int64(0)
	for _, s := range a.Streams {
		most = max(most, s.Units)
	}
	return most
}

// alarms returns the IDs of all alarms, in order.
func (p *process) alarms() []string {
	var a struct {
		Alarms []struct {
			ID    string `json:"id"`
			State string `json:"state"`
		} `json:"alarms"`
	}
	p.get("/api/v1/alarms", &a)
	var ids []string
	for _, alarm := range a.Alarms {
		ids = append(ids, alarm.ID)
	}
	slices.Sort(ids)
	return ids
}

func serviceConfig(t *testing.T, broker string) string {
	t.Helper()
	dir := t.TempDir()
	return testkit.WriteConfig(t, fmt.Sprintf(`
ingest:
  kafka: {brokers: [%q]}
  dead_letters: {directory: %q}
checkpoint: {directory: %q, every: 1s}
policies:
  - match: "*"
    false_alarms: {budget: 1, per: 20000 episodes}
http: {listen: "127.0.0.1:0"}
`, broker, filepath.Join(dir, "dead-letters"), filepath.Join(dir, "checkpoints")))
}

// wanted returns the alarm IDs and the number of units that replay finds in the telemetry of a fleet.
func (f *fleet) wanted(t *testing.T, cfgFile string) (ids []string, units int64) {
	t.Helper()
	_, out := verb(t, "replay", "--output", "json", "--config", cfgFile, f.file(t))
	r := parseReplay(t, out)
	ids = r.firing()
	slices.Sort(ids)
	if len(ids) < 2 {
		t.Fatalf("replay finds %d alarms, want several", len(ids))
	}
	return ids, r.summary.Units
}

// The same events lead to the same alarm IDs through Kafka and from a file, with one partition and with several.
func TestServiceFindsWhatReplayFinds(t *testing.T) { findsWhatReplayFinds(t, 1) }

func TestSimServiceOfManyPartitionsFindsWhatReplayFinds(t *testing.T) { findsWhatReplayFinds(t, 5) }

func findsWhatReplayFinds(t *testing.T, partitions int32) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	broker := startBroker(t, partitions)
	cfgFile := serviceConfig(t, broker)
	f := drifting(11, 7)
	ids, units := f.wanted(t, cfgFile)
	f.produce(t, broker, 0, len(f.lines))
	p := startService(t, cfgFile)
	testkit.Eventually(t, "all units", func() bool { return p.units() == units })
	if got := p.alarms(); !slices.Equal(got, ids) {
		t.Errorf("alarms %v, want %v", got, ids)
	}
	p.interrupt(t)
}

// When killed at random times while it reads, the service finds what it would have found undisturbed.
func TestKilledServiceFindsTheSame(t *testing.T) { findsTheSameWhenKilled(t, 1) }

func TestSimKilledServiceOfManyPartitionsFindsTheSame(t *testing.T) { findsTheSameWhenKilled(t, 3) }

func findsTheSameWhenKilled(t *testing.T, partitions int32) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	broker := startBroker(t, partitions)
	cfgFile := serviceConfig(t, broker)
	f := drifting(12, 7)
	ids, units := f.wanted(t, cfgFile)
	rng := rand.New(rand.NewPCG(uint64(partitions), 12))
	const kills = 3
	for i := range kills {
		// The telemetry is days old: if it arrived while the service reads, it would be too late to be put in order.
		f.produce(t, broker, i*len(f.lines)/kills, (i+1)*len(f.lines)/kills)
		p := startService(t, cfgFile)
		// The kill happens at any time between the first units of this part and, mostly, the last.
		at := units*int64(i)/kills + rng.Int64N(units/kills/2)
		testkit.Eventually(t, fmt.Sprint(at, " units"), func() bool { return p.units() >= at })
		p.killMember(t)
	}
	p := startService(t, cfgFile)
	testkit.Eventually(t, "all units", func() bool { return p.units() == units })
	if got := p.alarms(); !slices.Equal(got, ids) {
		t.Errorf("alarms %v, want %v", got, ids)
	}
}

// checkpointFiles returns the segments of a kind, the most recent last. All must have the same name, and at least one
// must exist.
func checkpointFiles(t *testing.T, cfgFile, kind string) []string {
	t.Helper()
	cfg, err := config.Load(cfgFile)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(cfg.Checkpoint.Directory, kind+"-*.checkpoint"))
	if err != nil || len(files) < 2 {
		t.Fatalf("segments of kind %s: %v, %v", kind, files, err)
	}
	slices.Sort(files)
	return files
}

// If the most recent save is damaged, whatever its kind, the service falls back to the preceding one and loses nothing.
// If that one is damaged too, it refuses to start and names the paths. A checkpoint that was moved away is created
// again.
func TestDamagedStateIsRefusedLoudly(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, 1)
	cfgFile := serviceConfig(t, broker)
	f := newFleet(13, 2)
	f.episodes(120)
	f.produce(t, broker, 0, len(f.lines))
	p := startService(t, cfgFile)
	testkit.Eventually(t, "all units", func() bool { return p.units() == int64(f.ended) })
	p.interrupt(t)

	kinds := []string{"bank", "partition"}
	for _, kind := range kinds {
		files := checkpointFiles(t, cfgFile, kind)
		last := files[len(files)-2:]
		mends := []func(){testkit.Damage(t, last[0]), testkit.Damage(t, last[1])}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "run", "--config", cfgFile)
		cmd.Env = append(os.Environ(), asService+"=1")
		said, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != exitError || !strings.Contains(string(said), last[0]) || !strings.Contains(string(said), last[1]) {
			t.Errorf("with two damaged saves of kind %s: %v\n%s", kind, err, said)
		}
		for _, mend := range mends {
			mend()
		}
	}

	for _, kind := range kinds { // both together
		files := checkpointFiles(t, cfgFile, kind)
		testkit.Damage(t, files[len(files)-1])
	}
	p = startService(t, cfgFile)
	at := len(f.lines)
	f.episodes(10)
	f.produce(t, broker, at, len(f.lines))
	testkit.Eventually(t, "all units after a fallback", func() bool { return p.units() == int64(f.ended) })
	p.interrupt(t)
	if n := p.said("a checkpoint is damaged; using the previous one. No data is lost, but check the disk"); n != len(kinds) {
		t.Errorf("%d fallbacks are in the log, want %d", n, len(kinds))
	}
	for _, file := range checkpointFiles(t, cfgFile, "partition") { // as an operator does if the topic was recreated
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}

	// Without a checkpoint, the committed offset is used: nothing is read again, and the bank is unchanged.
	p = startService(t, cfgFile)
	before := f.ended
	at = len(f.lines)
	f.episodes(10)
	f.produce(t, broker, at, len(f.lines))
	testkit.Eventually(t, "the units after the restart", func() bool { return p.units() > int64(before) })
	p.interrupt(t)
}

// SIGHUP restarts the service with the current configuration; one that is wrong, or cannot be used, changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, 1)
	cfgFile := serviceConfig(t, broker)
	good, err := os.ReadFile(cfgFile)
	if err != nil {
		t.Fatal(err)
	}
	p := startService(t, cfgFile)
	reads := func(runs int) {
		testkit.Eventually(t, fmt.Sprint(runs, " runs that read"), func() bool { return p.said("partitions assigned") == runs })
	}
	reads(1)
	for _, c := range []struct {
		text, says string
		runs       int
	}{
		{string(good) + "nonsense: 1\n", "failed to reload the configuration", 1},
		{string(good) + "retrain: {recipes: ../config/testdata/bad_recipes}\n", "failed to reload the configuration", 1},
		{strings.Replace(string(good), "kafka: {", "kafka: {tls: {enabled: true, ca_file: /does/not/exist}, ", 1), "the new configuration is invalid; continuing with the previous one", 2},
		{string(good), "restarting with the new configuration", 3},
	} {
		if err := os.WriteFile(cfgFile, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		before := p.said(c.says)
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, c.says, func() bool { return p.said(c.says) > before })
		reads(c.runs)
	}
	p.interrupt(t)
}

// A service that waits for its ledger at the start ends without an error when it is stopped.
func TestStopWhileTheLedgerCannotBeReached(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("REWARDWATCH_TEST_LEDGER_URL", "postgres://me:hunter2@127.0.0.1:1/ledger?sslmode=disable")
	cfgFile := filepath.Join(dir, "rewardwatch.yml")
	text := fmt.Sprintf("http: {listen: 127.0.0.1:0}\ncheckpoint: {directory: %[1]q}\ningest: {dead_letters: {directory: %[1]q}}\n"+
		"retrain:\n  ledger: {postgres_url_env: REWARDWATCH_TEST_LEDGER_URL}\n  recipes: ../config/testdata/recipes\n"+
		"  triggers: [{on: incident, recipe: ranker, target: t}]\n"+
		"  targets: [{name: t, webhook: \"http://127.0.0.1:1\", secret_file: %[2]q}]\n", dir, filepath.Join(dir, "secret"))
	for file, content := range map[string]string{cfgFile: text, filepath.Join(dir, "secret"): "whsec_" + strings.Repeat("AAAA", 8)} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	read, write := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- execute(ctx, &terminal.Console{In: strings.NewReader(""), Out: io.Discard, Err: write}, []string{"run", "--config", cfgFile})
		_ = write.Close()
	}()
	waited := false
	for lines := bufio.NewScanner(read); lines.Scan(); {
		if strings.Contains(lines.Text(), "the ledger cannot be reached") {
			waited = true
			stop()
		}
		if strings.Contains(lines.Text(), "hunter2") {
			t.Errorf("the password stands in %q", lines.Text())
		}
	}
	if got := <-code; got != 0 || !waited {
		t.Errorf("exit code %d, waited: %v, want 0 after waiting", got, waited)
	}
}
