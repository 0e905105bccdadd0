//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// disturbed is the service under load, in one or several instances, while it is disturbed.
type disturbed struct {
	setting
	topic     string
	service   *service  // the first instance
	instances instances // of one consumer group
	read      int       // number of partitions that they read, of all topics together
	trainer   *receiver
	load      *load
	alerts    *alertmanager // nil if alerts are not pushed
	replayed  []alarmLine   // of a replay at the end
}

const loadPartitions = 4

// disturb starts a service, which reaches the broker at an address, and a load, on a separate topic.
func (s setting) disturb(t *testing.T, topic, brokers string, seed uint64) *disturbed {
	t.Helper()
	d := s.prepare(t, topic)
	d.add(t, brokers, nil)
	d.begin(t, seed)
	return d
}

// prepare creates the topic.
func (s setting) prepare(t *testing.T, topic string) *disturbed {
	t.Helper()
	s.broker.createTopic(t, topic, loadPartitions)
	d := &disturbed{setting: s, topic: topic, read: loadPartitions, trainer: startReceiver(t)}
	d.trainer.job = func(got delivery) { d.fail(t.Context(), got.order.Data.ID) }
	return d
}

// fail reports that the job of a request has failed, despite disturbances of the service, so that the next incident of
// its policy orders again.
func (d *disturbed) fail(ctx context.Context, request string) {
	for ctx.Err() == nil {
		body := strings.NewReader(`{"state": "failed", "error": "it is a test"}`)
		resp, err := http.Post("http://"+d.service.address+"/api/v1/retrain-requests/"+request+"/status", "application/json", body)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusConflict { // it may already have been reported
				return
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// add configures another instance, with the ledger on PostgreSQL unless ledger is nil.
func (d *disturbed) add(t *testing.T, brokers string, ledger *postgresql) *service {
	t.Helper()
	s := newService(t, d.binary, brokers, d.topic, d.topic, d.trainer, d.alerts)
	replaceIn(t, s.config, "cooldown: 24h", "cooldown: 0s") // every incident orders
	replaceIn(t, s.config, "  targets:", "  breaker: {after: 0}\n  targets:")
	if ledger != nil {
		sqlite := fmt.Sprintf("sqlite: %s", filepath.Join(filepath.Dir(s.config), "ledger.db"))
		replaceIn(t, s.config, sqlite, fmt.Sprintf("postgres_url_file: %q", ledger.urlFile))
	}
	d.instances = append(d.instances, s)
	d.service = d.instances[0]
	return s
}

// begin starts the instances and the load.
func (d *disturbed) begin(t *testing.T, seed uint64) {
	t.Helper()
	for _, s := range d.instances {
		s.launch(t)
	}
	d.load = startLoad(t, d.broker, d.topic, seed)
}

// replaceIn replaces text in a file, which must contain it.
func replaceIn(t *testing.T, path, old, replacement string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(text, []byte(old)) {
		t.Fatalf("%s does not hold %q: %v", path, old, err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte(old), []byte(replacement)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// judged returns when the service has judged the given number of units of each policy.
func (d *disturbed) judged(t *testing.T, units int) {
	t.Helper()
	for _, p := range d.load.policies {
		reaches(t, fmt.Sprintf("%d units of %s are judged", units, p.name), float64(units), func() (float64, error) {
			return d.instances.largest(metrics.MetricUnits, map[string]string{"policy": p.name})
		})
	}
}

// nothingLostNothingTwice ends the load and checks that the service has included every event in its state exactly once:
// it counts and sums what was written, shows what an undisturbed service shows, raised the alarms that a replay raises,
// and ordered each retraining once.
func (d *disturbed) nothingLostNothingTwice(t *testing.T) {
	t.Helper()
	d.load.end()
	t.Logf("%d events were written; the slowest pulse took %s", d.load.events, d.load.slowest)
	records := d.recorded(t)
	if len(records) != d.load.events {
		t.Fatalf("the topic holds %d events, and %d were written", len(records), d.load.events)
	}
	d.sameAsOracle(t, d.instances, d.read)
	if late := d.instances.late(); late > 0 {
		t.Errorf("%g units were judged after one that had ended later", late)
	}
	d.sameAsUndisturbed(t)
	d.sameAlarmsAsReplay(t, records)
	d.orderedOnce(t)
}

// recorded returns the topic in the order of the events' times.
func (d *disturbed) recorded(t *testing.T) []record {
	t.Helper()
	records := slices.Concat(d.broker.read(t, d.topic, loadPartitions)...)
	slices.SortStableFunc(records, func(a, b record) int { return cmp.Compare(a.ts, b.ts) })
	return records
}

// sameAsOracle checks that instances have read the given number of partitions to their ends and that each policy is
// judged by one of them, and checks counts and sums of every policy. Sums are exact.
func (d *disturbed) sameAsOracle(t *testing.T, of instances, partitions int) {
	t.Helper()
	eventually(t, "everything is read", func() error { return of.caughtUp(partitions) })
	for _, p := range d.load.policies {
		labels := map[string]string{"policy": p.name}
		eventually(t, "every unit of "+p.name+" is judged", func() error {
			return exactly(float64(p.ended))(of.only(metrics.MetricUnits, labels))
		})
		for metric, want := range map[string]float64{
			metrics.MetricRewardObservations: p.total.rewards, metrics.MetricRewardPositive: p.total.positive,
			metrics.MetricRewardNegative: p.total.negative,
		} {
			if err := exactly(want)(of.only(metric, labels)); err != nil {
				t.Errorf("%s of %s: %v", metric, p.name, err)
			}
		}
	}
}

// sameAsUndisturbed starts another service, which reads the topic from its beginning undisturbed, and checks that both
// show the same for every stream, to the last digit.
func (d *disturbed) sameAsUndisturbed(t *testing.T) {
	t.Helper()
	other := newService(t, d.binary, d.broker.address, d.topic, d.topic+"-undisturbed", startReceiver(t), nil)
	other.start(t)
	alone := instances{other}
	d.sameAsOracle(t, alone, loadPartitions)
	eventually(t, "both show the same streams", func() error {
		a, errA := d.instances.streams()
		b, errB := alone.streams()
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		return sameText(a, b)
	})
	other.stop(t)
}

// sameText returns an error with the context of the first difference.
func sameText(a, b []byte) error {
	if bytes.Equal(a, b) {
		return nil
	}
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	around := func(text []byte) []byte { return text[max(0, at-300):min(len(text), at+100)] }
	return fmt.Errorf("disturbed:   %s\nundisturbed: %s", around(a), around(b))
}

// sameAlarmsAsReplay checks the alarms that the service has kept against those of a replay, by their IDs. The service
// keeps up to 50 closed incidents per group.
func (d *disturbed) sameAlarmsAsReplay(t *testing.T, records []record) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "telemetry.ndjson")
	writeRecords(t, file, records)
	incidents, err := d.instances.incidents()
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, i := range incidents {
		got = append(got, i.alarmIDs()...)
	}
	d.replayed = d.service.replay(t, file)
	for _, a := range d.replayed {
		want = append(want, a.ID)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the service raised the alarms %v, and a replay %v", got, want)
	}
	t.Logf("%d incidents with %d alarms", len(incidents), len(got))
}

// orderedOnce checks that every incident that orders has one request, and that each request was delivered under one ID.
func (d *disturbed) orderedOnce(t *testing.T) {
	t.Helper()
	var ledger struct {
		Requests []struct {
			ID       string `json:"id"`
			Incident string `json:"origin"`
			State    string `json:"state"`
		} `json:"retrain_requests"`
	}
	eventually(t, "every request is settled", func() error {
		if err := getJSON("http://"+d.service.address+"/api/v1/retrain-requests", &ledger); err != nil {
			return err
		}
		for _, r := range ledger.Requests {
			if r.State == "open" {
				return fmt.Errorf("%s is open", r.ID)
			}
		}
		return nil
	})
	requests := map[string]string{} // by incident
	for _, r := range ledger.Requests {
		if other, twice := requests[r.Incident]; twice {
			t.Errorf("incident %s has the requests %s and %s", r.Incident, other, r.ID)
		}
		requests[r.Incident] = r.ID
	}
	d.orderedAll(t, requests)
	deliveries, repeats, err := d.trainer.received()
	if err != nil {
		t.Error(err)
	}
	acted := map[string]string{} // webhook IDs by request
	for _, got := range deliveries {
		request := got.order.Data.ID
		if other, twice := acted[request]; twice {
			t.Errorf("the trainer acted on request %s twice, by the webhooks %s and %s", request, other, got.id)
		}
		acted[request] = got.id
		if requests[got.order.Data.Incident] != request {
			t.Errorf("the trainer got request %s of incident %s, for which the ledger has %q", request, got.order.Data.Incident, requests[got.order.Data.Incident])
		}
	}
	if len(acted) != len(requests) {
		t.Errorf("the ledger has %d requests, and the trainer acted on %d", len(requests), len(acted))
	}
	t.Logf("%d retrain requests, %d of their deliveries repeated", len(requests), repeats)
}

// orderedAll checks that every incident that should order a retraining has its request in requests, which are by
// incident. An incident does not order if it is provisional, if a person must look at its cause, if its policy has an
// unfinished request, or if its cause was not determined before the load ended.
func (d *disturbed) orderedAll(t *testing.T, requests map[string]string) {
	t.Helper()
	incidents, err := d.instances.incidents()
	if err != nil || len(requests) == 0 {
		t.Fatalf("%d incidents have ordered nothing: %v", len(incidents), err)
	}
	for _, i := range incidents {
		if requests[i.ID] != "" || i.Provisional || alerts.Cause(i.Cause).NeedsPerson() {
			continue
		}
		var why []string
		for _, s := range d.instances {
			reasons, err := s.decisions()
			if err != nil {
				t.Fatal(err)
			}
			why = append(why, reasons[i.ID]...)
		}
		if slices.Contains(why, string(ledger.OpenRequest)) || slices.Contains(why, string(ledger.CauseUnsettled)) && d.tooShort(t, i) {
			continue
		}
		t.Errorf("incident %s has no request: it was decided %v", i.ID, why)
	}
}

func writeRecords(t *testing.T, path string, records []record) {
	t.Helper()
	var text bytes.Buffer
	for _, r := range records {
		text.Write(r.value)
		text.WriteByte('\n')
	}
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tooShort reports whether an incident closed, or the load ended, before the incident's evidence was renewed.
func (d *disturbed) tooShort(t *testing.T, i incident) bool {
	t.Helper()
	const renewedAfter = 20 // in units
	if i.Closed != nil {
		return i.Closed.Ordinal < i.Opened.Ordinal+renewedAfter
	}
	judged, err := d.instances.largest(metrics.MetricUnits, map[string]string{"policy": i.Policy})
	if err != nil {
		t.Fatal(err)
	}
	return judged < i.Opened.Ordinal+renewedAfter
}
