package retrain

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/retrain/command"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// commandConfig returns the configuration of a desk whose target is a script.
func commandConfig(t *testing.T, directory string, ledger ledger.Config, lines ...string) Config {
	t.Helper()
	script := filepath.Join(directory, "train.sh")
	check(t, os.WriteFile(script+".new", []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	check(t, os.Rename(script+".new", script)) // a shell may be reading the old one
	return Config{
		OnMet:   OnMetPromote,
		Ledger:  ledger,
		Runs:    filepath.Join(directory, "runs"),
		Recipes: "recipe/testdata/recipes",
		Targets: []target.Target{{
			Name: "trainer", Timeout: target.DefaultTimeout, CompletesWithin: target.DefaultCompletesWithin,
			Command: target.Command{Config: command.Config{
				Run: []string{"/bin/sh", script}, Directory: directory, TimeLimit: model.Duration(time.Minute),
			}},
		}},
		Triggers: []Trigger{{On: OnIncident, Recipe: "ranker", Target: "trainer", Cooldown: defaultCooldown}},
	}
}

// runDesk opens a desk and runs it until the returned function is called.
func runDesk(t *testing.T, cfg Config) (*Desk, func()) {
	t.Helper()
	var wrong []string
	cfg.Check(func(path, msg string) { wrong = append(wrong, path+" "+msg) })
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	d, err := Open(t.Context(), cfg, testRecipes(t), zerolog.Nop(), prometheus.NewRegistry())
	check(t, err)
	for _, forget := range []string{ // left by killed processes: their claims, and attempts that look as if the target was unavailable
		`UPDATE requests SET next_attempt_at = 0 WHERE state = 'open'`, `UPDATE deliveries SET finished_at = started_at, result = 'interrupted' WHERE finished_at IS NULL`,
		`UPDATE river_job SET state = 'available', scheduled_at = created_at WHERE state IN ('scheduled', 'retryable')`,
	} {
		put(t, cfg.Ledger, forget)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	return d, func() {
		cancel()
		check(t, <-done)
		check(t, d.Close())
	}
}

// awaitState waits for the state of a request, for as long as the claim of a dead instance may last.
func awaitState(t *testing.T, d *Desk, request string, want ledger.State) ledger.Request {
	t.Helper()
	for end := time.Now().Add(time.Duration(target.DefaultTimeout) + ledger.ClaimMargin + time.Minute); ; time.Sleep(5 * time.Millisecond) {
		q, err := d.Request(t.Context(), request)
		check(t, err)
		if q.State == want {
			return q
		}
		if time.Now().After(end) || q.State.Final() {
			t.Fatalf("the request is %s (%s), want %s", q.State, q.Reason, want)
		}
	}
}

func testCommandMakesAVersion(t *testing.T, on storage) {
	dir := t.TempDir()
	d, stop := runDesk(t, commandConfig(t, dir, on(t), `echo "training $REWARDWATCH_POLICY: $REWARDWATCH_EXPECTED"`,
		`cp "$REWARDWATCH_CONFIG" config`, "while [ ! -e go ]; do sleep 0.01; done", `echo '{"policy_version": "v7"}' > "$REWARDWATCH_RESULT"`))
	defer func() { stop() }()
	decision, err := d.Consider(t.Context(), retraintest.Incident("i1", "ranker; exit 1"), time.Time{})
	check(t, err)
	awaitState(t, d, decision.Request, ledger.StateRunning)
	stop() // the command continues
	check(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	longAgo(t, d.cfg.Ledger)
	d, stop = runDesk(t, d.cfg)
	q := awaitState(t, d, decision.Request, ledger.StateVerifying)
	if want := "training ranker; exit 1: mean return > 180 over 200 episodes within 24h\n"; q.NewVersion != "v7" || q.Log != want {
		t.Errorf("version %q and log %q, want v7 and %q", q.NewVersion, q.Log, want)
	}
	order, err := os.ReadFile(filepath.Join(dir, "config"))
	check(t, err)
	if !strings.Contains(string(q.Order), `"config":`+string(order)) {
		t.Errorf("the command got the config %s of the order %s", order, q.Order)
	}
}

func testCommandFails(t *testing.T, on storage) {
	d, stop := runDesk(t, commandConfig(t, t.TempDir(), on(t), "echo CUDA out of memory >&2", "exit 3"))
	defer stop()
	decision, err := d.Consider(t.Context(), retraintest.Incident("i1", "ranker"), time.Time{})
	check(t, err)
	q := awaitState(t, d, decision.Request, ledger.StateFailed)
	if q.Reason != "the command exited with code 3" || q.Log != "CUDA out of memory\n" {
		t.Errorf("reason %q and log %q", q.Reason, q.Log)
	}
}

func TestCommandConfig(t *testing.T) {
	good := func() Config { return commandConfig(t, t.TempDir(), ledger.Config{SQLite: "ledger.db"}) }
	for path, change := range map[string]func(*Config){
		"targets[0].command.run":           func(c *Config) { c.Targets[0].Command.Run = []string{"train.sh"} },
		"targets[0].command.run[1]":        func(c *Config) { c.Targets[0].Command.Run[1] = "a\x00b" },
		"targets[0].command.directory":     func(c *Config) { c.Targets[0].Command.Directory = "here" },
		"targets[0].command.time_limit":    func(c *Config) { c.Targets[0].Command.TimeLimit = 0 },
		"targets[0].command.environment":   func(c *Config) { c.Targets[0].Command.Environment = map[string]string{"A B": ""} },
		"targets[0].command.environment.A": func(c *Config) { c.Targets[0].Command.Environment = map[string]string{"A": "\x00"} },
		"targets[0].command.environment.REWARDWATCH_POLICY": func(c *Config) {
			c.Targets[0].Command.Environment = map[string]string{"REWARDWATCH_POLICY": "x"}
		},
		"targets[0].completes_within": func(c *Config) { c.Targets[0].Command.TimeLimit = c.Targets[0].CompletesWithin },
		"targets[0].command":          func(c *Config) { c.Targets[0].Kafka.Topic = "orders" },
		"runs_directory":              func(c *Config) { c.Runs = "" },
	} {
		c := good()
		change(&c)
		var paths []string
		c.Check(func(path, _ string) { paths = append(paths, path) })
		if len(paths) != 1 || paths[0] != path {
			t.Errorf("errors at %v, want %s", paths, path)
		}
	}
}

// killedDesk is the environment variable that makes a process the one that is killed, and names its directory.
const killedDesk = "REWARDWATCH_TEST_KILLED_DESK"

// A process with running commands is killed at random moments and started again. Every command runs once, and its
// outcome is recorded.
func TestKilledDeskRunsCommandsOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const requests, kills = 30, 30
	directory := os.Getenv(killedDesk)
	child := directory != ""
	if !child {
		directory = t.TempDir()
	}
	cfg := commandConfig(t, directory, ledger.Config{SQLite: filepath.Join(directory, "ledger.db")},
		"echo $REWARDWATCH_REQUEST >> starts", "sleep 0.$(($$ % 4))", `echo "{\"policy_version\": \"of $REWARDWATCH_REQUEST\"}" > "$REWARDWATCH_RESULT"`)
	if child {
		d, _ := runDesk(t, cfg)
		for i := range requests {
			_, err := d.Consider(context.WithoutCancel(t.Context()), retraintest.Incident(fmt.Sprint("i", i), fmt.Sprint("policy-", i)), time.Time{})
			check(t, err)
		}
		select {} // until it is killed
	}
	for range kills {
		process := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKilledDeskRunsCommandsOnce$")
		process.Env = append(os.Environ(), killedDesk+"="+directory)
		check(t, process.Start())
		time.Sleep(20*time.Millisecond + rand.N(300*time.Millisecond))
		check(t, process.Process.Kill())
		_ = process.Wait() // it was killed on purpose
	}
	d, stop := runDesk(t, cfg)
	defer stop()
	for i := range requests {
		decision, err := d.Consider(t.Context(), retraintest.Incident(fmt.Sprint("i", i), fmt.Sprint("policy-", i)), time.Time{})
		check(t, err)
		if decision.Request == "" {
			t.Fatalf("%+v", decision)
		}
	}
	all, err := d.Requests(t.Context(), 2*requests)
	check(t, err)
	repeated := 0
	for _, q := range all {
		if q = awaitState(t, d, q.ID, ledger.StateVerifying); q.NewVersion != "of "+q.ID {
			t.Errorf("%s made %q", q.ID, q.NewVersion)
		}
		if q.Attempts > 1 {
			repeated++
		}
	}
	starts, err := os.ReadFile(filepath.Join(directory, "starts"))
	check(t, err)
	seen := map[string]int{}
	for line := range strings.Lines(string(starts)) {
		seen[strings.TrimSpace(line)]++
	}
	if len(all) != requests || len(seen) != requests {
		t.Errorf("%d requests, of which %d were run, want %d", len(all), len(seen), requests)
	}
	for request, n := range seen {
		if n != 1 {
			t.Errorf("%s was run %d times", request, n)
		}
	}
	t.Logf("%d kills; %d requests were delivered more than once", kills, repeated)
}

func TestPrintableSecretsOfCommands(t *testing.T) {
	directory := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(directory, name)
		check(t, os.WriteFile(path, []byte(text), mode))
		check(t, os.Chmod(path, mode))
		return path
	}
	cfg := commandConfig(t, directory, ledger.Config{}, "echo the script")
	cfg.Targets[0].Command.Environment = map[string]string{
		"TOKEN_FILE": file("token", "hub-token-1234\n", 0o600), "WORDS": file("words", "public words\n", 0o644), "ALPHA": "0.30000001", "NONE": "/nonexistent",
	}
	got := cfg.printable().Clean("hub-token-1234, public words, 0.30000001, echo the script", 1000)
	if want := "[secret], public words, 0.30000001, echo the script"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Secrets that a command prints are not in any request.
func TestCommandOutputIsKeptWithoutSecrets(t *testing.T) {
	directory := t.TempDir()
	token := filepath.Join(directory, "token")
	check(t, os.WriteFile(token, []byte("hub-token-1234567890\n"), 0o600))
	cfg := commandConfig(t, directory, onSQLite(t), `cat "$TOKEN_FILE"`, "echo printed", "exit 3")
	cfg.Targets[0].Command.Environment = map[string]string{"TOKEN_FILE": token}
	d, stop := runDesk(t, cfg)
	defer stop()
	decision, err := d.Consider(t.Context(), retraintest.Incident("i1", "ranker"), time.Time{})
	check(t, err)
	if q := awaitState(t, d, decision.Request, ledger.StateFailed); strings.Contains(q.Log, "hub-token") || !strings.Contains(q.Log, "[secret]\nprinted") {
		t.Errorf("log %q", q.Log)
	}
}
