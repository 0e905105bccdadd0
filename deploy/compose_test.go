//go:build e2e

package deploy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
)

// No container is started: the test checks Compose's interpretation of the file, the programs check the files that they
// would receive, and the agents run on this machine.
func TestE2ECompose(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "rewardwatch")
	run(t, "..", "go", "build", "-o", binary, "./cmd/rewardwatch")
	project, err := loadCompose(t, map[string]string{"REWARDWATCH_TOKEN": "x"})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("token", func(t *testing.T) {
		if _, err := loadCompose(t, nil); err == nil || !strings.Contains(err.Error(), "must be a random text") {
			t.Errorf("without a token: %v", err)
		}
	})
	t.Run("services", func(t *testing.T) { checkServices(t, project) })
	t.Run("files", func(t *testing.T) {
		run(t, "", binary, "validate", inContainer(t, project, "rewardwatch")+"/etc/rewardwatch/rewardwatch.yml")
		run(t, "", "promtool", "check", "config", inContainer(t, project, "prometheus")+"/etc/prometheus/prometheus.yml")
		run(t, "", "amtool", "check-config", inContainer(t, project, "alertmanager")+"/etc/alertmanager/alertmanager.yml")
	})
	t.Run("hosts", func(t *testing.T) { knownHosts(t, project) })
	t.Run("Kafka", func(t *testing.T) { acceptedByKafka(t, project.Services["kafka"]) })
	t.Run("agents", func(t *testing.T) { agentsDrift(t, binary) })
}

// loadCompose loads the file as Compose does, with an environment.
func loadCompose(t *testing.T, environment types.Mapping) (*types.Project, error) {
	t.Helper()
	details := types.ConfigDetails{WorkingDir: "compose", ConfigFiles: types.ToConfigFiles([]string{"compose/compose.yaml"}), Environment: environment}
	return loader.LoadWithContext(t.Context(), details)
}

// checkServices checks that mounted files exist, that images have versions, and that ports are only reachable from this
// machine.
func checkServices(t *testing.T, project *types.Project) {
	t.Helper()
	for name, s := range project.Services {
		if s.Build == nil && !regexp.MustCompile(`^[a-z/-]+:v?\d+\.\d+\.\d+$`).MatchString(s.Image) {
			t.Errorf("%s has the image %s", name, s.Image)
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s can be reached at %q", name, p.HostIP)
			}
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
				t.Errorf("%s gets %s, read-only %v: %v", name, v.Source, v.ReadOnly, err)
			}
		}
	}
	service := project.Services["rewardwatch"]
	if !service.ReadOnly || len(service.CapDrop) != 1 {
		t.Error("the service is not confined")
	}
	if _, err := os.Stat(filepath.Join(service.Build.Context, service.Build.Dockerfile)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(project.Services["agents"].Build.Context, "pyproject.toml")); err != nil {
		t.Error(err)
	}
}

// inContainer returns a directory with the files that a service receives.
func inContainer(t *testing.T, project *types.Project, service string) string {
	t.Helper()
	root := t.TempDir()
	for _, v := range project.Services[service].Volumes {
		if v.Type != types.VolumeTypeBind {
			continue
		}
		at := filepath.Join(root, v.Target)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(read(t, v.Source)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// knownHosts checks that files refer to services by their names and the ports that they listen on.
func knownHosts(t *testing.T, project *types.Project) {
	t.Helper()
	ports := map[string]string{"kafka": "9092", "rewardwatch": "9464", "prometheus": "9090", "alertmanager": "9093", "grafana": "3000"}
	found := 0
	for _, file := range []string{"compose.yaml", "rewardwatch.yml", "prometheus.yml", "datasource.yml"} {
		for _, at := range regexp.MustCompile(`["/]([a-z]+):(\d{4})\b`).FindAllStringSubmatch(read(t, "compose/"+file), -1) {
			found++
			if _, exists := project.Services[at[1]]; !exists || ports[at[1]] != at[2] {
				t.Errorf("%s names %s:%s", file, at[1], at[2])
			}
		}
	}
	if found < 7 {
		t.Errorf("only %d addresses", found)
	}
	if !strings.Contains(read(t, "grafana/provisioning/datasources/rewardwatch.yml"), "uid: rewardwatch-prometheus") || !strings.Contains(read(t, "compose/datasource.yml"), "uid: rewardwatch-prometheus") {
		t.Error("the source of the dashboards has another id")
	}
}

// acceptedByKafka lets Kafka's own tool read the settings and prepare a directory, as the image does before it starts
// the broker.
func acceptedByKafka(t *testing.T, kafka types.ServiceConfig) {
	t.Helper()
	run(t, "", "local/kafka/kafka.sh", "fetch")
	_, version, _ := strings.Cut(kafka.Image, ":")
	if jars, err := filepath.Glob("../.cache/kafka/lib/kafka-clients-" + version + ".jar"); err != nil || len(jars) != 1 {
		t.Errorf("the image has version %s, which is not the one of the tests: %v", version, err)
	}
	dir := t.TempDir()
	var settings strings.Builder
	for name, value := range kafka.Environment {
		key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "KAFKA_")), "_", ".")
		if key == "log.dirs" {
			value = &dir
		} else if !strings.Contains("\n"+read(t, "local/kafka/server.properties")+"controller.quorum.voters=", "\n"+key+"=") {
			t.Errorf("%s sets %s, and Kafka ignores what it does not know", name, key)
		}
		fmt.Fprintf(&settings, "%s=%s\n", key, *value)
	}
	file := filepath.Join(t.TempDir(), "server.properties")
	if err := os.WriteFile(file, []byte(settings.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, "", "java", "-Xmx256m", "-cp", "../.cache/kafka/lib/*", "kafka.tools.StorageTool", "format", "-t", "cmV3YXJkd2F0Y2gtbG9jYQ", "-c", file)
	if _, err := os.Stat(filepath.Join(dir, "meta.properties")); err != nil {
		t.Error(err)
	}
}

// agentsDrift lets the agents send their telemetry to a service without Kafka, which finds the drift of one policy and
// nothing else.
func agentsDrift(t *testing.T, binary string) {
	dir, at := t.TempDir(), "127.0.0.1:"+deploytest.FreePorts(t, 1)[0]
	config := regexp.MustCompile(`(?s)^.*?(policies:.*)alerts:.*$`).ReplaceAllString(read(t, "compose/rewardwatch.yml"), fmt.Sprintf(
		"ingest: {log: {directory: %q}, dead_letters: {directory: %q}}\ncheckpoint: {directory: %q}\nhttp: {listen: %q}\n$1", dir+"/log", dir+"/letters", dir+"/state", at))
	file := filepath.Join(dir, "rewardwatch.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	background(t, nil, binary, "run", "--config", file)
	var answer struct {
		Incidents []struct{ Policy string }
	}
	ask := func() bool {
		got, err := http.Get("http://" + at + "/api/v1/incidents")
		if err != nil {
			return false
		}
		defer got.Body.Close()
		return got.StatusCode == http.StatusOK && json.NewDecoder(got.Body).Decode(&answer) == nil
	}
	soon := time.Now().Add(2 * time.Minute)
	for !ask() {
		if time.Now().After(soon) {
			t.Fatal("the service does not start")
		}
		<-time.After(50 * time.Millisecond)
	}
	background(t, []string{"PYTHONPATH=../ingest/emitters/python", "REWARDWATCH_URL=http://" + at}, "python3", "compose/agents.py", "--per-second", "200", "--healthy", "400")
	for ask(); len(answer.Incidents) == 0; ask() {
		if time.Now().After(soon) {
			t.Fatal("the service finds nothing")
		}
		<-time.After(50 * time.Millisecond)
	}
	if len(answer.Incidents) != 1 || answer.Incidents[0].Policy != "checkout-ranker" {
		t.Errorf("there are the incidents %+v", answer.Incidents)
	}
}

// background runs a program until the test ends.
func background(t *testing.T, environment []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), environment...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		_ = cmd.Wait()         // it was killed
		if t.Failed() {
			t.Logf("%s:\n%s", name, said.String())
		}
	})
}
