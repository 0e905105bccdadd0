//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
)

// build builds the tested binary with the release flags, so that packages are compiled once for it and for the image.
func build(t *testing.T) string {
	t.Helper()
	return buildWith(t)
}

// buildWith builds it with more flags.
func buildWith(t *testing.T, flags ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "rewardwatch")
	cmd := exec.Command("go", slices.Concat([]string{"build", "-trimpath", "-o", binary}, flags, []string{"./cmd/rewardwatch"})...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build rewardwatch: %v\n%s", err, out)
	}
	return binary
}

// service is `rewardwatch run` with the configuration of deploy, in a separate directory.
type service struct {
	binary, config, address string
	log                     *os.File
	process                 *exec.Cmd // nil while it is not running
	life                    *life     // of the process
	late                    float64   // number of units that were judged out of order by preceding processes
}

// newService writes the configuration, with the brokers at an address. Without an Alertmanager to push to, alerts come
// from Prometheus's rules.
func newService(t *testing.T, binary, brokers, topic, group string, trainer *receiver, push *alertmanager) *service {
	t.Helper()
	dir := t.TempDir()
	s := &service{
		binary: binary, config: filepath.Join(dir, "rewardwatch.yml"), address: "127.0.0.1:" + deploytest.FreePorts(t, 1)[0],
		log: createLog(t, "rewardwatch.log"),
	}
	urls := "[]"
	if push != nil {
		urls = fmt.Sprintf("[%q]", "http://"+push.address)
	}
	rewrite(t, "deploy/rewardwatch.yml", s.config,
		"127.0.0.1:9092", brokers,
		"topic: agent-telemetry", fmt.Sprintf("topic: %q", topic),
		"group: rewardwatch", fmt.Sprintf("group: %q", group),
		"/var/lib/rewardwatch", dir,
		"every: 10s", "every: 1s",
		`- match: "*"`, `- {match: "*", false_alarms: {budget: 1, per: "20000 episodes"}}`,
		`["http://127.0.0.1:9093"]`, urls,
		"https://trainer.example/retrain", trainer.server.URL+"\n      allow_private: true",
		"/etc/rewardwatch/recipes", filepath.Join(root, "deploy", "recipes"),
		"/etc/rewardwatch/trainer.secret", trainer.secretFile,
		"127.0.0.1:9464", s.address)
	t.Cleanup(func() {
		s.kill(t)
		logTail(t, s.log.Name())
	})
	return s
}

// launch runs the service, also after it was killed or stopped.
func (s *service) launch(t *testing.T) {
	t.Helper()
	s.process = exec.Command(s.binary, "run", "--config", s.config, "--output", "json")
	s.process.Stdout, s.process.Stderr = s.log, s.log
	if err := s.process.Start(); err != nil {
		t.Fatalf("run the service: %v", err)
	}
	s.life = s.watch()
}

// start launches the service and returns when it is ready.
func (s *service) start(t *testing.T) {
	t.Helper()
	s.launch(t)
	eventually(t, "the service is ready", func() error {
		_, err := get("http://" + s.address + "/-/ready")
		return err
	})
}

// kill ends the service as a power cut would. It does nothing if the service is not running.
func (s *service) kill(t *testing.T) {
	t.Helper()
	if s.process == nil {
		return
	}
	s.life.look()
	if err := s.process.Process.Kill(); err != nil {
		t.Errorf("kill the service: %v", err)
	}
	err := s.process.Wait()
	if status, ok := s.process.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("the service had ended by itself: %v", err)
	}
	s.ended()
}

// ended records that the process has ended.
func (s *service) ended() {
	s.process = nil
	s.late += s.life.end()
}

// decisions returns the log messages of the service about retraining, by incident.
func (s *service) decisions() (map[string][]string, error) {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return nil, err
	}
	reasons := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		var said struct{ Message, Incident, Reason string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Message == "retraining decision" {
			reasons[said.Incident] = append(reasons[said.Incident], said.Reason)
		}
	}
	return reasons, nil
}

// writeRules writes the alerting rules for the service's configuration.
func (s *service) writeRules(t *testing.T, dir string) {
	t.Helper()
	out, err := exec.Command(s.binary, "rules", "--config", s.config, "-o", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("write the rules: %v\n%s", err, out)
	}
}

// stop stops the service as its supervisor would.
func (s *service) stop(t *testing.T) {
	t.Helper()
	s.life.look()
	s.signal(t, syscall.SIGTERM)
	if err := s.process.Wait(); err != nil {
		t.Errorf("the service did not stop cleanly: %v", err)
	}
	s.ended()
}

func (s *service) signal(t *testing.T, number syscall.Signal) {
	t.Helper()
	if err := s.process.Process.Signal(number); err != nil {
		t.Fatalf("send the service %s: %v", number, err)
	}
}

// metrics scrapes the service.
func (s *service) metrics() (map[string]*dto.MetricFamily, error) {
	body, err := get("http://" + s.address + "/metrics")
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(body))
}

// unitWord matches help texts with the word unit, instead of episodes or blocks.
var unitWord = regexp.MustCompile(`(?i)^# HELP .*\bunits?\b.*`)

// lintMetrics checks names, labels and help of the metrics with the real promtool.
func (s *service) lintMetrics(t *testing.T) {
	t.Helper()
	body, err := get("http://" + s.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = bytes.NewReader(body)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(body)) {
		if unitWord.MatchString(line) {
			t.Errorf("say episodes or blocks: %s", line)
		}
	}
}

// build returns the running build, as named by its metrics.
func (s *service) build(t *testing.T) string {
	t.Helper()
	families, err := s.metrics()
	built := families[names.MetricBuildInfo].GetMetric()
	if err != nil || len(built) != 1 {
		t.Fatalf("the service shows %d builds: %v", len(built), err)
	}
	return fmt.Sprint(built[0].GetLabel())
}

// samples returns the values of a metric's series with the labels, at least one.
func (s *service) samples(name string, labels map[string]string) ([]float64, error) {
	families, err := s.metrics()
	if err != nil {
		return nil, err
	}
	var values []float64
	for _, m := range families[name].GetMetric() {
		if carries(m, labels) {
			values = append(values, m.GetGauge().GetValue()+m.GetCounter().GetValue()) // one of them is 0
		}
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("/metrics has no %s%v", name, labels)
	}
	return values, nil
}

func carries(m *dto.Metric, labels map[string]string) bool {
	found := 0
	for _, l := range m.GetLabel() {
		if value, ok := labels[l.GetName()]; ok {
			if value != l.GetValue() {
				return false
			}
			found++
		}
	}
	return found == len(labels)
}

// largest returns the largest value of a metric's series with the labels.
func (s *service) largest(name string, labels map[string]string) (float64, error) {
	values, err := s.samples(name, labels)
	if err != nil {
		return math.NaN(), err
	}
	return slices.Max(values), nil
}

// incident is the part of an incident of the API that the tests need.
type incident struct {
	ID          string `json:"id"`
	State       string `json:"state"`
	Policy      string `json:"policy"`
	Opened      at     `json:"opened"`
	Closed      *at    `json:"closed"`
	Provisional bool   `json:"provisional"`
	Cause       string `json:"cause"`
	Group       struct {
		Guard string `json:"guard"`
	} `json:"group"`
	Alarms []struct {
		ID     string `json:"id"`
		Signal string `json:"signal"`
	} `json:"alarms"`
}

// at is a unit of a group.
type at struct {
	Ordinal float64 `json:"ordinal"`
}

func (i incident) alarmIDs() []string {
	ids := make([]string, len(i.Alarms))
	for n, a := range i.Alarms {
		ids[n] = a.ID
	}
	return ids
}

// incidents returns the incidents that are open or have recently closed.
func (s *service) incidents() ([]incident, error) {
	var answer struct {
		Incidents []incident        `json:"incidents"`
		Faults    []json.RawMessage `json:"telemetry_faults"`
	}
	if err := getJSON("http://"+s.address+"/api/v1/incidents", &answer); err != nil {
		return nil, err
	}
	if len(answer.Faults) > 0 {
		return nil, fmt.Errorf("telemetry faults: %s", answer.Faults)
	}
	return answer.Incidents, nil
}

// alarmLine is the part of an alarm printed by replay that the tests need.
type alarmLine struct {
	Event    string `json:"event"`
	State    string `json:"state"`
	ID       string `json:"id"`
	Incident string `json:"incident"`
	Signal   string `json:"signal"`
	Cause    string `json:"cause"`
}

// replay replays recorded telemetry with the service's configuration and returns the alarms in order.
func (s *service) replay(t *testing.T, file string) []alarmLine {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(s.binary, "replay", "--config", s.config, "--output", "json", file)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	const drift = 1
	if !errors.As(err, &exit) || exit.ExitCode() != drift {
		t.Fatalf("replay found no drift: %v\n%s%s", err, out, &stderr)
	}
	var fired []alarmLine
	for line := range strings.Lines(string(out)) {
		var a alarmLine
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("replay printed %q: %v", line, err)
		}
		if a.Event == "alarm" && a.State == "firing" {
			fired = append(fired, a)
		}
	}
	return fired
}
