//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
)

// root is the directory of the repository.
var root = absolute("../../..")

func absolute(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		panic(err)
	}
	return path
}

// server is a server that is run by its script under deploy/local.
type server struct {
	script string
	env    []string // settings of the script
}

// do runs the script with one of its verbs.
func (s server) do(verb string) error {
	cmd := exec.Command(filepath.Join(root, "deploy/local", s.script), verb)
	cmd.Env = append(os.Environ(), s.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", s.script, verb, err, out)
	}
	return nil
}

// down stops the server for a while.
func (s server) down(t *testing.T, long time.Duration) {
	t.Helper()
	if err := s.do("stop"); err != nil {
		t.Fatal(err)
	}
	wait(t, long)
	if err := s.do("start"); err != nil {
		t.Fatal(err)
	}
}

// local starts a server with its script under deploy/local, and stops it when the test ends. env holds the script's
// settings.
func local(t *testing.T, script, log string, env ...string) server {
	t.Helper()
	s := server{script, env}
	t.Cleanup(func() {
		logTail(t, log)
		if err := s.do("stop"); err != nil {
			t.Error(err)
		}
	})
	if err := s.do("start"); err != nil {
		t.Fatal(err)
	}
	return s
}

// logTail shows the end of a server's log if the test has failed.
func logTail(t *testing.T, path string) {
	if !t.Failed() {
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Log(err)
		return
	}
	const most = 8 << 10
	t.Logf("the end of %s:\n%s", path, text[max(0, len(text)-most):])
}

// broker is an Apache Kafka broker.
type broker struct {
	server
	address string
}

// startBroker starts a broker that sends its clients to the address advertised; if empty, to its own.
func startBroker(t *testing.T, advertised string) *broker {
	t.Helper()
	dir, ports := t.TempDir(), deploytest.FreePorts(t, 2)
	address := "127.0.0.1:" + ports[0]
	s := local(t, "kafka/kafka.sh", filepath.Join(dir, "kafka.log"),
		"KAFKA_DIR="+dir, "KAFKA_PORT="+ports[0], "KAFKA_CONTROLLER_PORT="+ports[1],
		"KAFKA_ADVERTISED="+cmp.Or(advertised, address))
	return &broker{server: s, address: address}
}

// postgresql is a PostgreSQL server.
type postgresql struct {
	server
	urlFile string // contains the URL of its database
}

func startPostgreSQL(t *testing.T) *postgresql {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // it runs as another user if the tests run as root
		t.Fatal(err)
	}
	s := local(t, "postgresql.sh", filepath.Join(dir, "postgresql.log"), "POSTGRESQL_DIR="+dir, "POSTGRESQL_PORT="+deploytest.FreePorts(t, 1)[0])
	return &postgresql{server: s, urlFile: filepath.Join(dir, "ledger.url")}
}

// admin returns a client of the broker, and a function that closes it.
func (b *broker) admin() (*kafka.Client, func()) {
	transport := &kafka.Transport{}
	return &kafka.Client{Addr: kafka.TCP(b.address), Transport: transport}, transport.CloseIdleConnections
}

func (b *broker) createTopic(t *testing.T, name string, partitions int, settings ...kafka.ConfigEntry) {
	t.Helper()
	admin, done := b.admin()
	defer done()
	resp, err := admin.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: name, NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: settings}},
	})
	if err == nil {
		err = resp.Errors[name]
	}
	if err != nil {
		t.Fatalf("create topic %s: %v", name, err)
	}
}

// bury removes the dead members of a consumer group, as the broker itself would after their session timeout.
func (b *broker) bury(t *testing.T, group string) {
	t.Helper()
	admin, done := b.admin()
	defer done()
	groups, err := admin.DescribeGroups(t.Context(), &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		t.Fatalf("describe group %s: %v", group, err)
	}
	for _, member := range groups.Groups[0].Members {
		resp, err := admin.LeaveGroup(t.Context(), &kafka.LeaveGroupRequest{
			GroupID: group, Members: []kafka.LeaveGroupRequestMember{{ID: member.MemberID}},
		})
		if err == nil {
			err = resp.Error
		}
		if err != nil && !errors.Is(err, kafka.UnknownMemberId) { // its session has just timed out
			t.Fatalf("take %s out of group %s: %v", member.MemberID, group, err)
		}
	}
}

// record is one telemetry record of a topic, whose message may contain several.
type record struct {
	ts        int64
	partition int
	offset    int64
	value     []byte
}

// read returns every record of a topic by partition, in offset order.
func (b *broker) read(t *testing.T, topic string, partitions int) [][]record {
	t.Helper()
	all := make([][]record, partitions)
	for p := range partitions {
		records, err := b.readPartition(t.Context(), topic, p)
		if err != nil {
			t.Fatalf("read %s/%d back: %v", topic, p, err)
		}
		all[p] = records
	}
	return all
}

func (b *broker) readPartition(ctx context.Context, topic string, partition int) ([]record, error) {
	conn, err := kafka.DialLeader(ctx, "tcp", b.address, topic, partition)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	end, err := conn.ReadLastOffset()
	if err != nil || end == 0 {
		return nil, err
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{b.address}, Topic: topic, Partition: partition, MaxBytes: 10 << 20,
		MaxWait: 100 * time.Millisecond, // Close waits as long
	})
	defer reader.Close()
	var records []record
	for {
		m, err := reader.ReadMessage(ctx)
		if err != nil {
			return nil, err
		}
		for line := range bytes.SplitSeq(m.Value, []byte("\n")) {
			var event struct {
				TS int64 `json:"ts"`
			}
			if err := json.Unmarshal(line, &event); err != nil {
				return nil, fmt.Errorf("offset %d: %w", m.Offset, err)
			}
			records = append(records, record{ts: event.TS, partition: partition, offset: m.Offset, value: line})
		}
		if m.Offset == end-1 {
			return records, nil
		}
	}
}

// alertmanager is a real Alertmanager with the configuration of deploy.
type alertmanager struct {
	address string
	pager   *pager // receives its notifications
}

// startAlertmanager starts an Alertmanager. replace holds further replacements in its configuration: old, new, old,
// new.
func startAlertmanager(t *testing.T, replace ...string) *alertmanager {
	t.Helper()
	dir, port := t.TempDir(), deploytest.FreePorts(t, 1)[0]
	a := &alertmanager{address: "127.0.0.1:" + port, pager: startPager(t)}
	config := filepath.Join(dir, "alertmanager.yml")
	rewrite(t, "deploy/alertmanager/alertmanager.yml", config, append(replace,
		"127.0.0.1:9095", a.pager.address(), "group_wait: 10s", "group_wait: 1s", "group_interval: 1m", "group_interval: 1s")...)
	local(t, "alertmanager.sh", filepath.Join(dir, "alertmanager.log"),
		"ALERTMANAGER_DIR="+dir, "ALERTMANAGER_PORT="+port, "ALERTMANAGER_CONFIG="+config)
	return a
}

// firing returns the labels of the firing alerts with a name and a policy.
func (a *alertmanager) firing(name, policy string) ([]map[string]string, error) {
	query := url.Values{"filter": {"alertname=" + strconv.Quote(name), "policy=" + strconv.Quote(policy)}}
	var alerts []struct {
		Labels map[string]string `json:"labels"`
	}
	if err := getJSON("http://"+a.address+"/api/v2/alerts?"+query.Encode(), &alerts); err != nil {
		return nil, err
	}
	var labels []map[string]string
	for _, alert := range alerts {
		labels = append(labels, alert.Labels)
	}
	return labels, nil
}

// prometheus is a real Prometheus with the configuration of deploy.
type prometheus struct {
	address string
}

// startPrometheus starts a Prometheus that scrapes a service every three seconds, and every second evaluates the rules
// that the service's binary writes. A scrape may take until the next one: a failed scrape resolves every alert, and the
// next one raises it again.
func startPrometheus(t *testing.T, s *service, alerts *alertmanager) *prometheus {
	t.Helper()
	dir, port := t.TempDir(), deploytest.FreePorts(t, 1)[0]
	s.writeRules(t, dir)
	config := filepath.Join(dir, "prometheus.yml")
	rewrite(t, "deploy/prometheus/prometheus.yml", config,
		"127.0.0.1:9464", s.address, "127.0.0.1:9093", alerts.address,
		"scrape_interval: 15s", "scrape_interval: 3s", "evaluation_interval: 15s", "evaluation_interval: 1s")
	local(t, "prometheus.sh", filepath.Join(dir, "prometheus.log"),
		"PROMETHEUS_DIR="+dir, "PROMETHEUS_PORT="+port, "PROMETHEUS_CONFIG="+config)
	return &prometheus{address: "127.0.0.1:" + port}
}

// rewrite copies a configuration of the repository with some of its text replaced: old, new, old, new. Each old text
// must exist: a test that replaced nothing would silently run with other settings.
func rewrite(t *testing.T, from, to string, replace ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, from))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(string(text), replace[i]) {
			t.Fatalf("%s does not hold %q", from, replace[i])
		}
	}
	config := strings.NewReplacer(replace...).Replace(string(text))
	if err := os.WriteFile(to, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
}

// value evaluates a query that returns one series, and returns its value.
func (p *prometheus) value(query string) (float64, error) {
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Value  [2]any            `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := getJSON("http://"+p.address+"/api/v1/query?"+url.Values{"query": {query}}.Encode(), &answer); err != nil {
		return 0, err
	}
	if n := len(answer.Data.Result); n != 1 {
		return 0, fmt.Errorf("%s gives %d series", query, n)
	}
	text, ok := answer.Data.Result[0].Value[1].(string)
	if !ok {
		return 0, fmt.Errorf("%s gives %v", query, answer.Data.Result[0].Value)
	}
	return strconv.ParseFloat(text, 64)
}
