package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/retrain/training"
)

// patience is how long a test waits for a process on a busy machine.
const patience = 5 * time.Minute

// rig is a runner whose commands are scripts.
type rig struct {
	*Runner
	t    *testing.T
	dir  string // directory of scripts and of their output
	mu   sync.Mutex
	told map[string][]training.Report
	fail error // error that the reporter returns
}

func newRig(t *testing.T) *rig {
	t.Helper()
	g := &rig{t: t, dir: t.TempDir(), told: map[string][]training.Report{}}
	g.reopen()
	t.Cleanup(g.end)
	return g
}

// reopen creates a new runner on the same directory, like the next start of the service.
func (g *rig) reopen() {
	g.t.Helper()
	r, err := Open(filepath.Join(g.dir, "runs"), zerolog.Nop())
	check(g.t, err)
	r.every, r.grace = 5*time.Millisecond, 300*time.Millisecond
	g.Runner = r
}

func (g *rig) hear(_ context.Context, request string, r training.Report) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told[request] = append(g.told[request], r)
	return g.fail
}

// end stops the supervisors that a test has left running.
func (g *rig) end() {
	requests, err := g.requests()
	check(g.t, err)
	for _, request := range requests {
		var s start
		if begun, _ := g.run(request).read(startedFile, &s); begun && supervises(s.Supervisor, g.run(request)) {
			_ = syscall.Kill(s.Supervisor, syscall.SIGTERM) // fails if it has just ended
			eventually(g.t, "the end of "+request, func() bool { return !g.run(request).held() })
		}
	}
}

// supervises reports whether the process with that id is the supervisor of a run.
func supervises(pid int, r run) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.Contains(string(line), "\x00"+string(r)+"\x00")
}

// script returns a command that runs the given lines of a shell script.
func (g *rig) script(lines ...string) Config {
	g.t.Helper()
	f, err := os.CreateTemp(g.dir, "*.sh")
	check(g.t, err)
	_, err = f.WriteString("#!/bin/sh\n" + strings.Join(lines, "\n") + "\n")
	check(g.t, err)
	check(g.t, f.Close())
	return Config{Run: []string{"/bin/sh", f.Name()}, Directory: g.dir, TimeLimit: model.Duration(time.Minute)}
}

// made returns the line of a script that reports a new version.
func made(version string) string {
	return `echo '{"policy_version": "` + version + `"}' > "$REWARDWATCH_RESULT"`
}

func (g *rig) start(c Config, request string) {
	g.t.Helper()
	check(g.t, g.Start(g.t.Context(), c, body(request, "ranker")))
}

// finish runs the runner until it has reported how a run ended, and returns all of its reports.
func (g *rig) finish(request string) []training.Report {
	g.t.Helper()
	return g.until(request, func(all []training.Report) bool { return len(all) > 0 && all[len(all)-1].State != training.Started })
}

func (g *rig) until(request string, enough func([]training.Report) bool) []training.Report {
	g.t.Helper()
	ctx, cancel := context.WithCancel(g.t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx, g.hear) }()
	all := func() []training.Report {
		g.mu.Lock()
		defer g.mu.Unlock()
		return slices.Clone(g.told[request])
	}
	eventually(g.t, "reports of "+request, func() bool { return enough(all()) })
	cancel()
	check(g.t, <-done)
	return all()
}

// last returns the report of how a run ended.
func (g *rig) last(request string) training.Report {
	g.t.Helper()
	all := g.finish(request)
	return all[len(all)-1]
}

func (g *rig) text(name string) string {
	text, _ := os.ReadFile(filepath.Join(g.dir, name))
	return string(text)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// body is a webhook for a policy.
func body(request, policy string) []byte {
	text, err := json.Marshal(map[string]any{"type": "retrain.requested", "data": map[string]any{
		"id": request, "policy": policy, "config": map[string]any{"learning_rate": 1e-4},
		"contract": map[string]any{
			"objective": policy + " serves as before", "hypothesis": "h", "owner": "o@shop.example",
			"expected": map[string]any{"text": "mean return > 480 over 200 episodes within 24h"},
		},
	}})
	if err != nil {
		panic(err)
	}
	return text
}

func TestCommandMakesAVersion(t *testing.T) {
	g := newRig(t)
	c := g.script("echo training", "echo warned >&2", "pwd > pwd", `cat "$REWARDWATCH_CONFIG" > config`, `cat "$REWARDWATCH_ORDER" > order`, made("v7"))
	g.start(c, "rr_1")
	want := training.Report{State: training.Succeeded, Version: "v7", Log: "training\nwarned\n"}
	if got := g.last("rr_1"); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for name, want := range map[string]string{
		"pwd": g.dir + "\n", "config": `{"learning_rate":0.0001}`, "order": string(body("rr_1", "ranker")),
	} {
		if got := g.text(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestCommandRollsBack(t *testing.T) {
	g := newRig(t)
	c := g.script(`cat "$REWARDWATCH_CONFIG" > config`, made("v2"))
	check(t, g.Start(t.Context(), c, []byte(`{"type": "retrain.rollback", "data": {"id": "rr_1", "policy": "ranker", "versions": {"from": "v3", "to": "v2"}}}`)))
	if got := g.last("rr_1"); got.State != training.Succeeded || g.text("config") != "{}" {
		t.Errorf("%+v with the config %q, want {}", got, g.text("config"))
	}
}

func TestCommandFails(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		err   string // beginning of the error
		log   string
	}{
		"by its exit code": {[]string{"echo CUDA out of memory >&2", made("v7"), "exit 3"}, "the command exited with code 3", "CUDA out of memory\n"},
		"by a signal":      {[]string{"kill -9 $$"}, "the command was killed by signal 9 (killed)", ""},
		"without a result": {[]string{"echo done"}, "the command exited with code 0 but did not write", "done\n"},
		"with another":     {[]string{"echo v7 > $REWARDWATCH_RESULT"}, `the command wrote {"policy_version": "..."}`, ""},
		"with an empty":    {[]string{": > $REWARDWATCH_RESULT"}, `the command wrote {"policy_version": "..."}`, ""},
		"with half a":      {[]string{`printf '{"policy_ver' > $REWARDWATCH_RESULT`}, `the command wrote {"policy_version": "..."}`, ""},
		"without version":  {[]string{`echo '{"version": "v7"}' > $REWARDWATCH_RESULT`}, `the command must write {"policy_version": "..."}`, ""},
		"with a pipe":      {[]string{"mkfifo $REWARDWATCH_RESULT"}, `the command must write {"policy_version": "..."}`, ""},
		"with a huge": {
			[]string{"head -c 100000 /dev/zero > $REWARDWATCH_RESULT"}, `the command must write {"policy_version": "..."}`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			g.start(g.script(c.lines...), "rr_1")
			got := g.last("rr_1")
			if got.State != training.Failed || !strings.HasPrefix(got.Error, c.err) || got.Log != c.log || got.Version != "" {
				t.Errorf("%+v, want an error %q and the log %q", got, c.err, c.log)
			}
		})
	}
}

func TestCommandCannotBeStarted(t *testing.T) {
	g := newRig(t)
	program, directory := g.script(), g.script()
	program.Run = []string{"/no/such/program"}
	directory.Directory = "/no/such/directory"
	for request, c := range map[string]Config{"rr_1": program, "rr_2": directory} {
		g.start(c, request)
		if got := g.last(request); got.State != training.Failed || !strings.HasPrefix(got.Error, "the command could not be started: ") {
			t.Errorf("%s: %+v", request, got)
		}
	}
}

// Names from telemetry reach the command unchanged, and none of their content is executed.
func TestHostileValuesReachTheCommandAsTheyAre(t *testing.T) {
	for name, policy := range map[string]string{
		"shell":   "a; touch pwned; `touch pwned` $(touch pwned) ' \" \\ | > pwned &",
		"lines":   "a\nREWARDWATCH_REQUEST=rr_2\n\r\t",
		"flags":   "--help",
		"unicode": "ranker \u202e\x1b[31m é",
		"empty":   "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			c := g.script(`printf %s "$REWARDWATCH_POLICY" > policy`, `printf %s "$REWARDWATCH_REQUEST" > request`, made("v7"))
			check(t, g.Start(t.Context(), c, body("rr_1", policy)))
			if got := g.last("rr_1"); got.State != training.Succeeded {
				t.Errorf("%+v", got)
			}
			if got := g.text("policy"); got != policy {
				t.Errorf("the command was told of the policy %q, not %q", got, policy)
			}
			if got := g.text("request"); got != "rr_1" {
				t.Errorf("the command was told of the request %q", got)
			}
			if _, err := os.Stat(filepath.Join(g.dir, "pwned")); err == nil {
				t.Error("a value was run")
			}
		})
	}
}

func TestValuesThatNoEnvironmentCanHold(t *testing.T) {
	g := newRig(t)
	policy := "a\x00b" + strings.Repeat("é", 1<<20)
	c := g.script(`printf %s "$REWARDWATCH_POLICY" > policy`, made("v7"))
	check(t, g.Start(t.Context(), c, body("rr_1", policy)))
	if got := g.last("rr_1"); got.State != training.Succeeded {
		t.Errorf("%+v", got)
	}
	got := g.text("policy")
	if want := "a\uFFFDb" + strings.Repeat("é", 10); !strings.HasPrefix(got, want) || len(got) > maxVariable || len(got) < maxVariable-1 {
		t.Errorf("%d bytes, beginning %.30q", len(got), got)
	}
}

func TestIdsThatLeadElsewhere(t *testing.T) {
	g := newRig(t)
	for _, id := range []string{"", ".", "..", "../rr_1", "rr/1", ".new-1", "rr_1\x00", strings.Repeat("r", 200)} {
		if err := g.Start(t.Context(), g.script(made("v7")), body(id, "ranker")); err == nil {
			t.Errorf("%q was taken", id)
		}
	}
}

// The environment of the service may contain secrets, and the log of a training is visible to users.
func TestEnvironmentOfTheCommand(t *testing.T) {
	t.Setenv("LEDGER_URL", "postgres://secret")
	t.Setenv("REWARDWATCH_OTHER", "of the service")
	t.Setenv("HOME", "/home/trainer")
	g := newRig(t)
	c := g.script("exec env", "")
	c.Environment = map[string]string{"CUDA_VISIBLE_DEVICES": "0", "HOME": "/data"}
	g.start(c, "rr_1")
	got := map[string]string{}
	for line := range strings.Lines(g.last("rr_1").Log) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[name] = value
	}
	for _, name := range []string{"PATH", "PWD", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "_", "SHLVL", "OLDPWD"} {
		delete(got, name) // set by the machine and the shell
	}
	at := filepath.Join(g.dir, "runs", "rr_1") + "/"
	want := map[string]string{
		"CUDA_VISIBLE_DEVICES": "0", "HOME": "/data",
		"REWARDWATCH_EVENT": "retrain.requested", "REWARDWATCH_REQUEST": "rr_1", "REWARDWATCH_POLICY": "ranker", "REWARDWATCH_OBJECTIVE": "ranker serves as before",
		"REWARDWATCH_HYPOTHESIS": "h", "REWARDWATCH_OWNER": "o@shop.example",
		"REWARDWATCH_EXPECTED": "mean return > 480 over 200 episodes within 24h",
		"REWARDWATCH_CONFIG":   at + "config.json", "REWARDWATCH_ORDER": at + "order.json", "REWARDWATCH_RESULT": at + "result.json",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

func TestTimeLimit(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		grace time.Duration
		left  string // what the script has written by its end
	}{
		"asked to end":       {[]string{"trap 'echo saved > left; exit 0' TERM", made("v7"), "while :; do sleep 0.01; done"}, patience, "saved\n"},
		"will not end":       {[]string{"trap '' TERM", made("v7"), "while :; do sleep 0.01; done"}, 2 * time.Second, ""},
		"a child of its own": {[]string{made("v7"), `sh -c 'trap "sleep 0.1; echo saved > left; exit" TERM; while :; do sleep 0.01; done'`, ":"}, patience, "saved\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			g.grace = c.grace
			s := g.script(c.lines...)
			s.TimeLimit = model.Duration(4 * time.Second) // which a busy machine needs until the signal is caught
			g.start(s, "rr_1")
			got := g.last("rr_1")
			if got.State != training.Failed || got.Error != "the command was stopped after its time limit of 4s" {
				t.Errorf("%+v", got)
			}
			if got := g.text("left"); got != c.left {
				t.Errorf("it left %q, want %q", got, c.left)
			}
		})
	}
}

// Processes that a command leaves behind end with it, whether they hold the log open or not.
func TestNoProcessIsLeft(t *testing.T) {
	g := newRig(t)
	c := g.script("sleep 1000 & echo $! > first", "sleep 1000 > /dev/null 2>&1 & echo $! > second", made("v7"))
	g.start(c, "rr_1")
	if got := g.last("rr_1"); got.State != training.Succeeded {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"first", "second"} {
		pid, err := strconv.Atoi(strings.TrimSpace(g.text(name)))
		check(t, err)
		eventually(t, "the end of "+name, func() bool { return !lives(pid) })
	}
}

// lives reports whether a process with that id exists and is not a zombie.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestLogIsBounded(t *testing.T) {
	g := newRig(t)
	c := g.script("yes 0123456789 | head -c 40000000", "echo", "echo the end", made("v7"))
	g.start(c, "rr_1")
	got := g.last("rr_1")
	if got.State != training.Succeeded || len(got.Log) != KeptLog+logMargin || !strings.HasSuffix(got.Log, "\nthe end\n") {
		t.Errorf("%s with %d bytes of the log, which end %.40q", got.State, len(got.Log), got.Log[max(0, len(got.Log)-40):])
	}
	var size int64
	for _, name := range []string{logFile, logFile + ".1"} {
		info, err := os.Stat(g.run("rr_1").file(name))
		check(t, err)
		size += info.Size()
	}
	if size > 2*maxLog {
		t.Errorf("%d bytes are kept", size)
	}
}

func TestLogOverTwoFiles(t *testing.T) {
	r := run(t.TempDir())
	l := &rotating{path: r.file(logFile), most: 25000}
	for i := range 2200 { // 24200 bytes: further output begins the second file
		fmt.Fprintf(l, "%010d\n", i)
	}
	fmt.Fprintf(l, "%s", strings.Repeat("x", 5000))
	l.close()
	got := r.tail()
	if len(got) != KeptLog+logMargin || !strings.HasSuffix(got, "0000002199\n"+strings.Repeat("x", 5000)) {
		t.Errorf("%d bytes, ending %q", len(got), got[max(0, len(got)-5020):][:20])
	}
}

func TestRunOutlivesTheService(t *testing.T) {
	g := newRig(t)
	c := g.script("echo x >> starts", "while [ ! -e go ]; do sleep 0.01; done", made("v7"))
	g.start(c, "rr_1")
	g.until("rr_1", func(all []training.Report) bool { return len(all) == 1 && all[0].State == training.Started })
	g.reopen()
	check(t, os.WriteFile(filepath.Join(g.dir, "go"), nil, 0o600))
	if got := g.last("rr_1"); got.State != training.Succeeded || got.Version != "v7" {
		t.Errorf("%+v", got)
	}
	g.reopen()
	before := len(g.finish("rr_1"))
	check(t, g.look(t.Context(), g.hear))
	if after := len(g.finish("rr_1")); after != before {
		t.Errorf("%d reports became %d: it was reported again", before, after)
	}
	if got := g.text("starts"); got != "x\n" {
		t.Errorf("started %q", got)
	}
}

// An order that is delivered again after a crash does not run again, but its outcome is reported again.
func TestStartedAgain(t *testing.T) {
	g := newRig(t)
	c := g.script("echo x >> starts", "exit 4")
	g.start(c, "rr_1")
	g.start(c, "rr_1")
	first := g.finish("rr_1")
	g.start(c, "rr_1")
	all := g.until("rr_1", func(all []training.Report) bool { return len(all) > len(first) })
	if all[len(all)-1] != first[len(first)-1] || all[len(all)-1].State != training.Failed {
		t.Errorf("%+v", all)
	}
	if got := g.text("starts"); got != "x\n" {
		t.Errorf("started %q", got)
	}
}

func TestOneRunOfAPolicy(t *testing.T) {
	g := newRig(t)
	c := g.script("while [ ! -e go ]; do sleep 0.01; done", made("v7"))
	g.start(c, "rr_1")
	err := g.Start(t.Context(), c, body("rr_2", "ranker"))
	if busy, ok := errors.AsType[*BusyError](err); !ok || busy.Request != "rr_1" {
		t.Errorf("%v, want a BusyError of rr_1", err)
	}
	check(t, g.Start(t.Context(), c, body("rr_3", "another")))
	check(t, os.WriteFile(filepath.Join(g.dir, "go"), nil, 0o600))
	g.last("rr_1")
	g.start(c, "rr_2")
	for _, request := range []string{"rr_2", "rr_3"} {
		if got := g.last(request); got.State != training.Succeeded {
			t.Errorf("%s: %+v", request, got)
		}
	}
}

// However the supervisor ends, its command ends before the run counts as failed.
func TestSupervisorIsKilled(t *testing.T) {
	g := newRig(t)
	c := g.script("echo $$ > pid", "sh -c 'echo $$ > child; while [ ! -e go ]; do sleep 0.01; done' &", "exec sleep 1000")
	g.start(c, "rr_1")
	eventually(t, "the command", func() bool { return g.text("child") != "" && g.text("pid") != "" })
	var s start
	_, err := g.run("rr_1").read(startedFile, &s)
	check(t, err)
	check(t, syscall.Kill(s.Supervisor, syscall.SIGKILL))
	pid, err := strconv.Atoi(strings.TrimSpace(g.text("pid")))
	check(t, err)
	eventually(t, "the end of the command", func() bool { return !lives(pid) })
	if p, _, err := g.run("rr_1").phase(); p != running || err != nil {
		t.Errorf("phase %d, %v while a process of the command is there", p, err)
	}
	check(t, os.WriteFile(filepath.Join(g.dir, "go"), nil, 0o600))
	if got := g.last("rr_1"); got.State != training.Failed || got.Error != "the machine or the supervisor stopped before the command exited" {
		t.Errorf("%+v", got)
	}
	g.start(c, "rr_1")
	if got := g.last("rr_1"); got.State != training.Failed {
		t.Errorf("%+v: it was run again", got)
	}
}

func TestSupervisorIsAskedToEnd(t *testing.T) {
	g := newRig(t)
	c := g.script("trap 'echo saved > left; exit 0' TERM", "echo x > begun", "while :; do sleep 0.01; done")
	g.start(c, "rr_1")
	eventually(t, "the command", func() bool { return g.text("begun") != "" })
	var s start
	_, err := g.run("rr_1").read(startedFile, &s)
	check(t, err)
	check(t, syscall.Kill(s.Supervisor, syscall.SIGTERM))
	if got := g.last("rr_1"); got.Error != "the command was stopped because its supervisor was stopped" {
		t.Errorf("%+v", got)
	}
	if got := g.text("left"); got != "saved\n" {
		t.Errorf("it left %q", got)
	}
}

// The periodic check does not start a directory that was claimed by a process that died: the request may have been
// withdrawn meanwhile.
func TestClaimedRunIsStartedByTheDeliveryAlone(t *testing.T) {
	g := newRig(t)
	c := g.script("echo x >> starts", made("v7"))
	o, err := readOrder(body("rr_1", "ranker"))
	check(t, err)
	check(t, g.claim(g.run("rr_1"), c, o, body("rr_1", "ranker")))
	check(t, g.look(t.Context(), g.hear))
	if p, _, err := g.run("rr_1").phase(); p != claimed || err != nil || len(g.told) != 0 {
		t.Errorf("phase %d, %v, %v", p, err, g.told)
	}
	g.start(g.script("echo another", "exit 1"), "rr_1")
	if got := g.last("rr_1"); got.State != training.Succeeded {
		t.Errorf("%+v: who claims first says what is run", got)
	}
}

func TestSupervisorThatCannotStart(t *testing.T) {
	g := newRig(t)
	c := g.script(made("v7"))
	o, err := readOrder(body("rr_1", "ranker"))
	check(t, err)
	check(t, g.claim(g.run("rr_1"), c, o, body("rr_1", "ranker")))
	check(t, os.Remove(g.run("rr_1").file(specFile)))
	if err := g.Start(t.Context(), c, body("rr_1", "ranker")); err == nil || !strings.Contains(err.Error(), "is not a run directory") {
		t.Errorf("%v", err)
	}
}

func TestRunsAreRemovedAfterAWeek(t *testing.T) {
	g := newRig(t)
	c := g.script(made("v7"))
	old := time.Now().Add(-kept - time.Minute)
	for _, request := range []string{"rr_old", "rr_new", "rr_unreported"} {
		check(t, g.Start(t.Context(), c, body(request, request)))
	}
	g.last("rr_old")
	g.last("rr_new")
	check(t, os.Chtimes(g.run("rr_old").file(reportedFile), old, old))
	check(t, os.Chtimes(g.run("rr_new").file(specFile), old, old))
	o, err := readOrder(body("rr_never", "never"))
	check(t, err)
	check(t, g.claim(g.run("rr_never"), c, o, nil))
	check(t, os.Chtimes(g.run("rr_never").file(specFile), old, old))
	check(t, os.Mkdir(filepath.Join(g.directory, ".new-1"), 0o700))
	check(t, os.Mkdir(filepath.Join(g.directory, ".new-2"), 0o700))
	check(t, os.Chtimes(filepath.Join(g.directory, ".new-2"), old, old))
	check(t, g.look(t.Context(), g.hear))
	var names []string
	entries, err := os.ReadDir(g.directory)
	check(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{".new-1", "rr_new", "rr_unreported"}; !slices.Equal(names, want) {
		t.Errorf("left are %v, want %v", names, want)
	}
}

// A file that was only partly written, as on a full disk, never counts.
func TestFullDisk(t *testing.T) {
	r := run(t.TempDir())
	check(t, os.Symlink("/dev/full", r.file(exitFile+".tmp")))
	if err := r.write(exitFile, exit{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v, want that there is no space", err)
	}
	if there, err := r.has(exitFile); there || err != nil {
		t.Errorf("%s is there: %v", exitFile, err)
	}
	check(t, os.Symlink("/dev/full", r.file(logFile)))
	l := &rotating{path: r.file(logFile), most: maxLog}
	if n, err := l.Write([]byte("lost")); n != 4 || err != nil {
		t.Errorf("%d, %v: a command whose output cannot be kept waits", n, err)
	}
	l.close()
}

// A supervisor whose run was removed does not wait for the directory to return.
func TestRunIsRemovedByAPerson(t *testing.T) {
	g := newRig(t)
	g.start(g.script("while [ ! -e go ]; do sleep 0.01; done"), "rr_1")
	var s start
	_, err := g.run("rr_1").read(startedFile, &s)
	check(t, err)
	check(t, os.RemoveAll(string(g.run("rr_1"))))
	check(t, os.WriteFile(filepath.Join(g.dir, "go"), nil, 0o600))
	eventually(t, "the end of the supervisor", func() bool { return !lives(s.Supervisor) })
}

func TestReportThatIsNotWanted(t *testing.T) {
	g := newRig(t)
	g.start(g.script(made("v7")), "rr_1")
	g.fail = fmt.Errorf("rr_1 is withdrawn: %w", training.ErrSettled)
	g.last("rr_1")
	if known, err := g.run("rr_1").has(reportedFile); !known || err != nil {
		t.Errorf("it is told for ever: %v", err)
	}
}

func TestReporterFails(t *testing.T) {
	g := newRig(t)
	g.start(g.script(made("v7")), "rr_1")
	g.fail = os.ErrDeadlineExceeded
	if err := g.Run(t.Context(), g.hear); err == nil {
		t.Error("an outcome that could not be kept is no error")
	}
	g.fail = nil
	if got := g.last("rr_1"); got.State != training.Succeeded {
		t.Errorf("%+v", got)
	}
}
