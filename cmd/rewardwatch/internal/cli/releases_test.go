package cli

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// updateState writes the state of the next release. It is a separate flag because each state has other IDs and times:
// changed texts of commands are no reason to write it.
var updateState = flag.Bool("update-state", false, "write the state of the release in the making")

const (
	// releases contains, for each release, the directory of a service when it stopped, with its configuration and what
	// it showed.
	releases = "testdata/releases"
	// stateInTheMaking is rewritten by `go test ./cmd/rewardwatch/internal/cli -run StateOfReleases -update-state`
	// until its release is tagged. From then on it does not change, and the next release gets its own state.
	stateInTheMaking = "0.1"
)

// keptState is what a service shows of its state, in the terms of the API.
type keptState struct {
	Units     int64                 `json:"units"`
	LastUnit  string                `json:"last_unit"`
	Baseline  keptBaseline          `json:"baseline"`
	Incidents []keptIncident        `json:"incidents"`
	Requests  []keptRequest         `json:"requests"`
	Signals   map[string]keptSignal `json:"signals"`
}

// keptSignal is the state of a signal's detectors: a lost window or sum shows in its statistic.
type keptSignal struct {
	Units     int64    `json:"units"`
	Current   string   `json:"current"`   // mean and deviation of the current units
	Detectors []string `json:"detectors"` // with their statistics
}

// digits is the format of a statistic: processors that fuse multiplication and addition differ in the last digits.
const digits = "%.9g"

type keptBaseline struct {
	ID    string `json:"id"`
	Units int    `json:"units"`
}

type keptIncident struct {
	ID        string   `json:"id"`
	State     string   `json:"state"`
	Severity  string   `json:"severity"`
	Cause     string   `json:"cause"`
	Evidence  []string `json:"evidence"`
	Opened    int64    `json:"opened"` // ordinal
	Alarms    []string `json:"alarms"` // ID, signal, onset, unit, detectors and score
	Decisions []string `json:"decisions"`
}

type keptRequest struct {
	ID     string       `json:"id"`
	Origin string       `json:"origin"`
	State  ledger.State `json:"state"`
	Recipe string       `json:"recipe"`
	Target string       `json:"target"`
}

// shown returns what the service shows.
func (p *process) shown(t *testing.T) keptState {
	t.Helper()
	var (
		streams struct {
			Streams []struct {
				Signal    string             `json:"signal"`
				Units     int64              `json:"units"`
				LastUnit  string             `json:"last_unit_ts"`
				Current   *wire.Distribution `json:"current"`
				Detectors []wire.Detector    `json:"detectors"`
			}
		}
		baselines struct{ Baselines []wire.Baseline }
		requests  struct {
			Requests []keptRequest `json:"retrain_requests"`
		}
	)
	for path, into := range map[string]any{"streams": &streams, "baselines": &baselines, "retrain-requests": &requests} {
		if !p.get("/api/v1/"+path, into) {
			t.Fatalf("%s gives no answer", path)
		}
	}
	if len(baselines.Baselines) != 1 || baselines.Baselines[0].ID == nil {
		t.Fatalf("baselines %+v, want one", baselines.Baselines)
	}
	b := baselines.Baselines[0]
	s := keptState{Units: p.units(), Baseline: keptBaseline{*b.ID, b.Units}, Requests: requests.Requests, Signals: map[string]keptSignal{}}
	for _, of := range streams.Streams {
		one := keptSignal{Units: of.Units, Current: "none"}
		if c := of.Current; c != nil {
			one.Current = fmt.Sprintf("%d units, mean "+digits+", deviation "+digits, c.Units, c.Mean, c.SD)
		}
		for _, d := range of.Detectors {
			one.Detectors = append(one.Detectors, fmt.Sprintf("%s %s "+digits, d.Detector, d.Branch, d.Statistic))
		}
		s.LastUnit, s.Signals[of.Signal] = of.LastUnit, one
	}
	for _, i := range p.incidents() {
		one := keptIncident{ID: i.ID, State: i.State, Severity: string(i.Severity), Cause: string(i.Cause), Evidence: i.Evidence, Opened: i.Opened.Ordinal}
		for _, a := range i.Alarms {
			one.Alarms = append(one.Alarms, fmt.Sprintf("%s %s since %d, found at %d by %q with "+digits,
				a.ID, a.Signal, a.Onset.Ordinal, a.At.Ordinal, a.Detectors, a.Score))
		}
		for _, d := range i.Decisions {
			one.Decisions = append(one.Decisions, fmt.Sprintf("%s by %s: %s", d.Decision, d.By, d.Why))
		}
		s.Incidents = append(s.Incidents, one)
	}
	return s
}

// Files in the directory of a release. The service had received lastFile before it stopped, and receives nextFile
// afterwards.
const (
	configFile = "rewardwatch.yml"
	lastFile   = "last.ndjson"
	nextFile   = "next.ndjson"
	auditFile  = "audit.log"
	ledgerFile = "data/ledger.db"
)

// keptAround is what a service showed when it stopped, and after it had received nextFile.
type keptAround struct {
	Stopped keptState `json:"stopped"`
	Next    keptState `json:"next"`
}

// A service continues from the state of a release: the incident, baseline, waiting request, decisions and audit log are
// unchanged, no telemetry is lost or judged twice, and its own saves can be read again. The statistics of all detectors
// continue as well: a drift that began before the stop is found after it, at the same unit and with the same score.
func TestStateOfReleasesIsRead(t *testing.T) {
	t.Parallel()
	if *updateState {
		writeState(t, filepath.Join(releases, stateInTheMaking))
	}
	files, err := filepath.Glob(releases + "/*.tar.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".tar.gz")
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			goesOnFromRelease(t, name)
		})
	}
}

func goesOnFromRelease(t *testing.T, name string) {
	t.Helper()
	var want keptAround
	if err := json.Unmarshal([]byte(testkit.Read(t, name+".json")), &want); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	archive(t, "-xzf", name+".tar.gz", "--no-same-owner", "-C", dir)
	audited := testkit.Read(t, filepath.Join(dir, auditFile))

	p := startServiceIn(t, dir, configFile)
	sameShown(t, "after the start", p.shown(t), want.Stopped)
	p.receives(t, dir, lastFile) // again, like an agent that received no response
	p.receives(t, dir, nextFile)
	testkit.Eventually(t, "the next units", func() bool { return p.units() >= want.Next.Units })
	p.interrupt(t)

	p = startServiceIn(t, dir, configFile)
	sameShown(t, "after its own save", p.shown(t), want.Next)
	id := want.Stopped.Requests[0].ID
	if code, answer := p.decide(t, "retrain-requests/"+id+"/reject", `{"by":"bob","why":"known"}`); code != http.StatusOK {
		t.Errorf("rejecting the waiting request: %d %s", code, answer)
	}
	if r := p.shown(t).Requests[0]; r.State != ledger.StateRejected {
		t.Errorf("the rejected request is %s", r.State)
	}
	p.interrupt(t)
	more, goesOn := strings.CutPrefix(testkit.Read(t, filepath.Join(dir, auditFile)), audited)
	if !goesOn || audited == "" || strings.Count(more, "\n") != 1 || !strings.Contains(more, id) {
		t.Errorf("the audit log does not go on with one entry, but with\n%s", more)
	}
}

func sameShown(t *testing.T, when string, got, want keptState) {
	t.Helper()
	if g, w := indented(t, got), indented(t, want); g != w {
		t.Errorf("%s, the service shows\n%s, want\n%s", when, g, w)
	}
}

func indented(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// receives posts a file of the directory, with an ID that the service recognizes.
func (p *process) receives(t *testing.T, dir, file string) {
	t.Helper()
	if code, answer := p.send(t, file, testkit.Read(t, filepath.Join(dir, file))); code != http.StatusOK {
		t.Fatalf("%s: %d %s", file, code, answer)
	}
}

// decide posts a decision, like a command on the machine of the service.
func (p *process) decide(t *testing.T, path, body string) (int, string) {
	t.Helper()
	return p.post(t, path, body, http.Header{"Content-Type": {"application/json"}})
}

// archive runs tar.
func archive(t *testing.T, args ...string) {
	t.Helper()
	if said, err := exec.CommandContext(t.Context(), "tar", args...).CombinedOutput(); err != nil {
		t.Fatalf("tar %v: %v\n%s", args, err, said)
	}
}

// releaseConfig has its state at the default path in the working directory.
const releaseConfig = `
ingest:
  log: {directory: data/telemetry, max_age: 0s}
policies:
  - match: "*"
    baseline: {units: 100}
    false_alarms: {budget: 1, per: 20000 episodes}
retrain:
  recipes: recipes
  targets: [{name: trainer, webhook: "http://127.0.0.1:1/", secret_file: secret}]
  triggers: [{on: incident, recipe: ranker, target: trainer, approval: true}]
http: {listen: "127.0.0.1:0", audit_log: audit.log, external_url: "https://rewardwatch.example"}
`

// writeState writes the state of a service with an open incident, a decision on it, a waiting request, open episodes,
// and a drift that is not found yet, and what the service shows then and after further telemetry.
func writeState(t *testing.T, name string) {
	t.Helper()
	dir := t.TempDir()
	f := newFleet(21, 3)
	f.episodes(130)
	f.mean, f.version = -1.4, "2"
	f.episodes(34)
	f.shares = [3]float64{.3, .3, .4} // not found before the service has stopped
	f.episodes(6)
	last := len(f.lines)
	f.episodes(3)
	next := len(f.lines)
	stopped := f.ended
	f.episodes(40)
	lines := func(from, to int) []byte { return append(bytes.Join(f.lines[from:to], []byte("\n")), '\n') }
	for file, content := range map[string][]byte{
		configFile: []byte(releaseConfig), "secret": []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"),
		lastFile: lines(last, next), nextFile: lines(next, len(f.lines)),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "recipes"), os.DirFS("../config/testdata/recipes")); err != nil {
		t.Fatal(err)
	}

	p := startServiceIn(t, dir, configFile)
	if code, answer := p.send(t, "first", string(lines(0, last))); code != http.StatusOK {
		t.Fatalf("%d %s", code, answer)
	}
	p.receives(t, dir, lastFile)
	testkit.Eventually(t, "all units", func() bool { return p.units() == int64(stopped) })
	testkit.Eventually(t, "a request", func() bool { return len(p.shown(t).Requests) == 1 })
	if code, answer := p.decide(t, "incidents/"+p.incidents()[0].ID+"/mute", `{"by":"alice","why":"known","for":"1h"}`); code != http.StatusOK {
		t.Fatalf("mute gives %d %s", code, answer)
	}
	p.interrupt(t)
	waitsForLong(t, filepath.Join(dir, ledgerFile))
	archive(t, "-czf", name+".tar.gz", "-C", dir, ".")

	var around keptAround
	p = startServiceIn(t, dir, configFile)
	around.Stopped = p.shown(t)
	p.receives(t, dir, nextFile)
	testkit.Eventually(t, "all units", func() bool { return p.units() == int64(f.ended) })
	p.interrupt(t)
	p = startServiceIn(t, dir, configFile)
	around.Next = p.shown(t)
	p.interrupt(t)
	if err := os.WriteFile(name+".json", []byte(indented(t, around)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// waitsForLong makes the requests of a ledger expire in a hundred years instead of a day, since later builds read it.
func waitsForLong(t *testing.T, file string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `UPDATE requests SET due_at = $1`, time.Now().AddDate(100, 0, 0).UnixMilli())
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
