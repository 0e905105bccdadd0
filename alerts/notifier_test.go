package alerts

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/certtest"
)

// receiver is an Alertmanager that needs no network, so that tests run on the clock of synctest.
type receiver struct {
	mu      sync.Mutex
	status  int    // status of its answers; 0 for a refused connection
	refuses string // policy whose batch it answers with 400
	pushes  []pushed
}

// pushed is one alert as received.
type pushed struct {
	at time.Time
	message
}

var errRefusedConnection = errors.New("connection refused")

// RoundTrip receives a push.
func (r *receiver) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status == 0 {
		return nil, errRefusedConnection
	}
	var messages []message
	if err := json.NewDecoder(request.Body).Decode(&messages); err != nil {
		return nil, err
	}
	status := r.status
	if slices.ContainsFunc(messages, func(m message) bool { return r.refuses != "" && m.Labels["policy"] == r.refuses }) {
		status = http.StatusBadRequest
	}
	if status == http.StatusOK {
		for _, m := range messages {
			r.pushes = append(r.pushes, pushed{at: time.Now(), message: m})
		}
	}
	answer := httptest.NewRecorder()
	answer.WriteHeader(status)
	result := answer.Result()
	result.Request = request // as a transport does
	return result, nil
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// taken returns the alerts that were accepted since the last call.
func (r *receiver) taken() []pushed {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.pushes
	r.pushes = nil
	return out
}

// running is a notifier that runs in a synctest bubble.
type running struct {
	*Notifier
	reg  *prometheus.Registry
	stop func()
}

// start runs a notifier with one URL per receiver until the test ends.
func start(t *testing.T, receivers ...*receiver) running {
	t.Helper()
	return startWith(t, nil, receivers...)
}

// startWith is like start, with notes of earlier notifications.
func startWith(t *testing.T, notes *Notes, receivers ...*receiver) running {
	t.Helper()
	cfg := DefaultAlertmanagerConfig()
	for i := range receivers {
		cfg.URLs = append(cfg.URLs, fmt.Sprintf("http://alertmanager-%d:9093", i))
	}
	reg := prometheus.NewPedanticRegistry()
	n, err := NewNotifier(cfg, Links{}, notes, zerolog.Nop(), reg)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range n.senders {
		s.client = &http.Client{Transport: receivers[i], Timeout: time.Duration(cfg.Timeout)}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return running{Notifier: n, reg: reg, stop: stop}
}

// pass lets time pass and waits until everything that this triggers is done.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// inBubble runs a test on the clock of synctest.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func TestFiringAlertIsKeptAlive(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{status: 200}, NewTracker()
		n := start(t, am)
		f := drift("return", 100)
		began := time.Now().Add(-time.Minute)
		f.At.TS = began.UnixNano()
		n.Update(b.Apply(f))
		synctest.Wait()
		first := am.taken()
		if len(first) != 1 || first[0].at != time.Now() {
			t.Fatalf("not pushed at once: %+v", first)
		}
		if !first[0].StartsAt.Equal(began) || !first[0].EndsAt.Equal(time.Now().Add(firingFor)) {
			t.Errorf("from %v to %v", first[0].StartsAt, first[0].EndsAt)
		}
		pass(10*time.Minute + time.Second)
		kept := am.taken()
		if len(kept) != 20 {
			t.Errorf("sent %d times in ten minutes", len(kept))
		}
		for _, p := range kept {
			if !p.EndsAt.Equal(p.at.Add(firingFor)) || !p.StartsAt.Equal(began) || fmt.Sprint(p.Labels) != fmt.Sprint(first[0].Labels) {
				t.Errorf("another alert was kept alive: %+v", p)
			}
		}
	})
}

func TestRenewalWaitsForTheNextPushAndNewsDoesNot(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{status: 200}, NewTracker()
		n := start(t, am)
		n.Update(b.Apply(drift("return", 100)))
		pass(time.Second)
		am.taken()

		renewed := drift("return", 150)
		renewed.Kind, renewed.Score = finding.StreamUpdated, 1.5
		n.Update(b.Apply(renewed))
		pass(time.Second)
		if got := am.taken(); got != nil {
			t.Errorf("a renewed score was pushed at once: %+v", got)
		}
		pass(resendEvery)
		if got := am.taken(); len(got) != 1 || !strings.Contains(got[0].Annotations["description"], "score 1.5") {
			t.Errorf("got %+v", got)
		}

		n.Update(b.Apply(drift("reward", 160)))
		synctest.Wait()
		got := am.taken()
		if len(got) != 1 || got[0].Annotations["signals"] != "return, reward" {
			t.Errorf("a new alarm was not pushed at once: %+v", got)
		}
	})
}

// improving returns a notifier that has pushed the alert of an improvement.
func improving(t *testing.T) (*receiver, *Tracker, running) {
	am, b := &receiver{status: 200}, NewTracker()
	n := start(t, am)
	better := drift("return", 95)
	better.Improvement = true
	n.Update(b.Apply(better))
	pass(time.Second)
	am.taken()
	return am, b, n
}

// Alertmanager treats an incident with another severity as a different alert, so the previous alert ends.
func TestAlertOfAnotherSeverityEndsTheFormer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b, n := improving(t)
		n.Update(b.Apply(satisfies(-5)))
		now := time.Now()
		pass(time.Second)
		ends := map[string]bool{}
		for _, p := range am.taken() {
			ends[p.Labels["severity"]] = p.EndsAt.Equal(now)
			goesOn := strings.HasSuffix(p.Annotations["summary"], "; the incident continues with severity critical") &&
				p.Annotations["description"] == "The severity of the incident changed from info to critical. This alert resolves, and an alert with the new severity fires."
			if goesOn != p.EndsAt.Equal(now) {
				t.Errorf("the %s alert says %q", p.Labels["severity"], p.Annotations)
			}
		}
		if want := map[string]bool{"info": true, "critical": false}; !maps.Equal(ends, want) {
			t.Errorf("severities, and whether they end: %v, want %v", ends, want)
		}
		n.Update(b.Apply(quiet(150)))
		pass(time.Minute)
		expectPending(t, n, 0)
		if len(n.alerts) != 0 {
			t.Errorf("still remembers %d alerts", len(n.alerts))
		}
	})
}

// An incident that ends with a different severity does not continue.
func TestAlertThatEndsWithAnotherSeverityDoesNotGoOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b, n := improving(t)
		changes := b.Apply(quiet(150))
		for _, c := range changes {
			c.Incident.Severity, c.Incident.Closed = Critical, true
		}
		n.Update(changes)
		pass(time.Second)
		for _, p := range am.taken() {
			if strings.Contains(p.Annotations["summary"], "continues") {
				t.Errorf("the %s alert says %q", p.Labels["severity"], p.Annotations)
			}
		}
	})
}

func TestResolvedAlertIsRepeatedUntilConfirmed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{status: 200}, NewTracker()
		n := start(t, am)
		n.Update(b.Apply(drift("return", 100)))
		pass(time.Second)
		am.taken()

		am.answer(http.StatusInternalServerError)
		n.Update(b.Apply(quiet(150)))
		resolved := time.Now()
		pass(time.Minute)
		expectPending(t, n, 1)
		am.answer(http.StatusOK)
		pass(maxBackoff)
		got := am.taken()
		if len(got) != 1 || !got[0].EndsAt.Equal(resolved) {
			t.Errorf("got %+v, want it resolved at %v", got, resolved)
		}
		expectPending(t, n, 0)
		pass(10 * time.Minute)
		if got := am.taken(); got != nil {
			t.Errorf("sent again: %+v", got)
		}
		if len(n.alerts) != 0 {
			t.Errorf("still remembers %d alerts", len(n.alerts))
		}
	})
}

func TestOnlyTheLatestStateOutlivesAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{}, NewTracker() // down at start
		n := start(t, am)
		n.Update(b.Apply(drift("return", 100)))
		for i := range int64(300) { // news every second does not shorten the backoff
			n.Update(b.Apply(drift(fmt.Sprintf("observation.%d", i), 100)))
			pass(time.Second)
		}
		n.Update(b.Apply(drift("reward", 101)))
		n.Update(b.Apply(quiet(150)))
		n.Update(b.Apply(drift("return", 200)))
		pass(time.Minute)
		expectPending(t, n, 2)
		am.answer(http.StatusOK)
		pass(maxBackoff)
		got := am.taken()
		if len(got) != 2 {
			t.Fatalf("got %+v", got)
		}
		slices.SortFunc(got, func(a, b pushed) int { return a.EndsAt.Compare(b.EndsAt) })
		if got[0].EndsAt.After(got[0].at) || !got[1].EndsAt.After(got[1].at) {
			t.Errorf("got %+v, want the first incident resolved and the second firing", got)
		}
		expectPending(t, n, 0)
		if sent := testutil.ToFloat64(n.metrics.sent); sent != 1 {
			t.Errorf("%v pushes sent", sent)
		}
		if failed := testutil.ToFloat64(n.metrics.failed); failed < 10 || failed > 40 {
			t.Errorf("%v pushes failed in six minutes", failed)
		}
	})
}

func TestBackoffStartsAnewAfterASuccess(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{}, NewTracker()
		n := start(t, am)
		n.Update(b.Apply(drift("return", 100)))
		pass(5 * time.Minute)
		am.answer(http.StatusOK)
		pass(maxBackoff)
		am.answer(0)
		n.Update(b.Apply(drift("reward", 101)))
		synctest.Wait()
		am.taken()
		am.answer(http.StatusOK)
		pass(minBackoff)
		if got := am.taken(); len(got) != 1 {
			t.Errorf("the first retry of a new outage came late: %+v", got)
		}
	})
}

func TestEveryAlertmanagerIsTrackedBySelf(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		up, down, b := &receiver{status: 200}, &receiver{status: 503}, NewTracker()
		n := start(t, up, down)
		n.Update(b.Apply(drift("return", 100)))
		pass(2 * time.Second)
		if got := up.taken(); len(got) != 1 {
			t.Errorf("one that is down holds up another: %+v", got)
		}
		expectPending(t, n, 0) // one has accepted it
		n.Update(b.Apply(quiet(150)))
		pass(2 * time.Second)
		if got := up.taken(); len(got) != 1 || got[0].EndsAt.After(got[0].at) {
			t.Errorf("got %+v", got)
		}
		pass(2 * time.Minute)
		if got := up.taken(); got != nil {
			t.Errorf("told again because another one does not know yet: %+v", got)
		}
		down.answer(http.StatusOK)
		pass(maxBackoff)
		if got := down.taken(); len(got) != 1 || got[0].EndsAt.After(got[0].at) {
			t.Errorf("got %+v", got)
		}
	})
}

func TestFaultMayComeAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{status: 200}, NewTracker()
		n := start(t, am)
		want := map[string]string{"alertname": "TelemetryFault", "policy": "checkout", "env": "prod", "severity": "warning"}
		for i, f := range []finding.Finding{
			faulty("return", fault.Constant, 10), goes("return", finding.TelemetryFault, finding.OK, 40),
			faulty("return", fault.NonFinite, 50), goes("return", finding.TelemetryFault, finding.OK, 80),
		} {
			n.Update(b.Apply(f))
			pass(time.Second)
			got := am.taken()
			if len(got) != 1 || got[0].EndsAt.After(got[0].at) != (i%2 == 0) || fmt.Sprint(got[0].Labels) != fmt.Sprint(want) {
				t.Errorf("after finding %d: %+v", i, got)
			}
		}
	})
}

func TestFaultThatComesAgainBeforeItsEndWasTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{status: 200}, NewTracker()
		n := start(t, am)
		n.Update(b.Apply(faulty("return", fault.Constant, 10)))
		pass(time.Second)
		am.taken()
		am.answer(http.StatusBadGateway)
		again := time.Now()
		n.Update(applied(b, goes("return", finding.TelemetryFault, finding.OK, 40), faulty("return", fault.Constant, 50)))
		pass(10 * time.Second)
		am.answer(http.StatusOK)
		pass(maxBackoff)
		got := am.taken()
		if len(got) == 0 || !got[0].EndsAt.After(got[0].at) || !got[0].StartsAt.Equal(again) {
			t.Errorf("got %+v, want it firing since %v", got, again)
		}
		n.Update(b.Apply(goes("return", finding.TelemetryFault, finding.OK, 80)))
		synctest.Wait()
		if got := am.taken(); len(got) != 1 || !got[0].EndsAt.Equal(time.Now()) {
			t.Errorf("got %+v, want it resolved now", got)
		}
	})
}

func TestResyncTakesOverWhatIsOpen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{status: 200}, NewTracker()
		applied(b, drift("return", 100), quiet(150), drift("return", 200), faulty("observation.x", fault.Constant, 210))
		n := start(t, am)
		n.Resync(b.Incidents(), b.Faults())
		synctest.Wait()
		got := am.taken()
		if len(got) != 2 || got[0].Labels["alertname"] != "TelemetryFault" || got[1].Labels["incident"] != b.Incidents()[1].ID {
			t.Errorf("got %+v", got)
		}
	})
}

func TestStopOffersOnceMoreAndResolvesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{}, NewTracker()
		n := start(t, am)
		n.Update(b.Apply(drift("return", 100)))
		pass(3 * time.Minute)
		am.answer(http.StatusOK)
		n.stop()
		if got := am.taken(); len(got) != 1 || !got[0].EndsAt.Equal(got[0].at.Add(firingFor)) {
			t.Errorf("got %+v", got)
		}
	})
}

func TestResolvedAlertIsForgottenWhenNobodyTakesIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{}, NewTracker()
		n := start(t, am)
		n.Update(applied(b, drift("return", 100), quiet(150)))
		pass(resolvedFor)
		expectPending(t, n, 1)
		pass(maxBackoff + time.Second)
		expectPending(t, n, 0)
	})
}

func TestManyAlertsGoInSeveralPushes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{status: 200}, NewTracker()
		n := start(t, am)
		var changes []Change
		for i := range 2*maxBatch + 1 {
			f := drift("return", 100)
			f.Group = ingest.NewGroup(fmt.Sprintf("policy-%d", i))
			changes = append(changes, b.Apply(f)...)
		}
		n.Update(changes)
		synctest.Wait()
		if got := am.taken(); len(got) != 2*maxBatch+1 {
			t.Errorf("%d alerts pushed", len(got))
		}
		if sent := testutil.ToFloat64(n.metrics.sent); sent != 3 {
			t.Errorf("in %v pushes", sent)
		}
	})
}

func TestRefusedBatchDoesNotHoldUpTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{status: 200, refuses: "policy-000"}, NewTracker()
		n := start(t, am)
		var changes []Change
		for i := range 2*maxBatch + 1 {
			f := drift("return", 100)
			f.Group = ingest.NewGroup(fmt.Sprintf("policy-%03d", i))
			changes = append(changes, b.Apply(f)...)
		}
		n.Update(changes)
		synctest.Wait()
		taken, failed := len(am.taken()), testutil.ToFloat64(n.metrics.failed)
		if failed != 1 || (taken != maxBatch+1 && taken != 2*maxBatch) { // alerts go by key: the refused batch may be the short one
			t.Errorf("%d alerts taken, %v pushes failed", taken, failed)
		}
		expectPending(t, n, 2*maxBatch+1-taken)
	})
}

func TestNotifierWithoutURLsDoesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := NewTracker()
		n := start(t)
		n.Update(applied(b, drift("return", 100), faulty("reward", fault.Constant, 110)))
		n.Resync(b.Incidents(), b.Faults())
		expectPending(t, n, 0)
		n.stop()
	})
}

func expectPending(t *testing.T, n running, want int) {
	t.Helper()
	text := fmt.Sprintf(`
# HELP rewardwatch_notifications_unconfirmed Alerts whose current state has not been accepted by any Alertmanager.
# TYPE rewardwatch_notifications_unconfirmed gauge
rewardwatch_notifications_unconfirmed %d
`, want)
	if err := testutil.GatherAndCompare(n.reg, strings.NewReader(text), MetricNotifyPending); err != nil {
		t.Error(err)
	}
}

func TestBackoff(t *testing.T) {
	for failures, most := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 6: maxBackoff, 1000: maxBackoff,
	} {
		for range 100 {
			if d := backoff(failures); d > most || d <= most/2 {
				t.Errorf("after %d failures: %v", failures, d)
			}
		}
	}
}

// TestPushOverTheNetwork checks the request itself.
func TestPushOverTheNetwork(t *testing.T) {
	requests := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests <- fmt.Sprintf("%s %s %s\n%s", r.Method, r.URL.Path, r.Header.Get("Content-Type"), body)
	}))
	defer server.Close()
	cfg := DefaultAlertmanagerConfig()
	cfg.URLs = []string{server.URL + "/prefix/"}
	n, err := NewNotifier(cfg, Links{Grafana: "https://grafana.example", Console: "https://rewardwatch.example"}, nil, zerolog.Nop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	f := faulty("return", fault.Constant, 10)
	f.At.TS = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano()
	n.Update(NewTracker().Apply(f))
	var got string
	select {
	case got = <-requests:
	case <-time.After(time.Minute):
		t.Fatal("nothing was pushed")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	whole := got
	got = got[:strings.LastIndex(got, `"endsAt"`)] // the clock's
	if !strings.Contains(whole, `"generatorURL":"https://rewardwatch.example/policies/checkout"`) {
		t.Errorf("no generatorURL in %s", whole)
	}
	want := `POST /prefix/api/v2/alerts application/json
[{"labels":{"alertname":"TelemetryFault","env":"prod","policy":"checkout","severity":"warning"},` +
		`"annotations":{"dashboard_url":"https://grafana.example/d/rewardwatch-policy?var-policy=checkout","description":"Since episode 10 (2026-01-02 03:04:05 UTC, agent a-1, id e-10). Signals with wrong values are not ` +
		`judged until 20 episodes (or blocks of steps) without the fault have arrived.",` +
		`"runbook_url":"https://github.com/rewardwatch/rewardwatch/blob/main/docs/runbooks.md#telemetryfault","signals":"return (constant)",` +
		`"since":"episode 10 (2026-01-02 03:04:05 UTC, agent a-1, id e-10)",` +
		`"summary":"checkout{env=\"prod\"}: the telemetry of return (constant) is faulty"},"startsAt":"2026-01-02T03:04:05Z",`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestRefusedPushSaysWhy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such tenant", http.StatusForbidden)
	}))
	defer server.Close()
	s := &sender{url: server.URL, client: server.Client()}
	err := s.push(t.Context(), nil)
	if !errors.Is(err, errRefused) || !strings.HasSuffix(err.Error(), "403 Forbidden: no such tenant") {
		t.Errorf("got %v", err)
	}
}

// A redirected POST would become a GET that is answered with 200: no one would be notified, and no one would notice.
func TestRedirectIsNoSuccess(t *testing.T) {
	reached := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			reached <- r.Method
			return
		}
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer server.Close()
	reg := prometheus.NewRegistry()
	n, err := NewNotifier(AlertmanagerConfig{URLs: []string{server.URL}, Timeout: model.Duration(time.Minute)}, Links{}, nil, zerolog.Nop(), reg)
	if err != nil {
		t.Fatal(err)
	}
	n.Update(applied(NewTracker(), drift("return", 100)))
	if err := n.pushDue(t.Context(), n.senders[0]); !errors.Is(err, errRefused) {
		t.Errorf("a redirect gives %v, want errRefused", err)
	}
	if n.unconfirmed() != 1 || len(reached) > 0 {
		t.Errorf("%v alerts are unconfirmed, want 1; the redirect was followed %d times", n.unconfirmed(), len(reached))
	}
	if sent, failed := testutil.ToFloat64(n.metrics.sent), testutil.ToFloat64(n.metrics.failed); sent != 0 || failed != 1 {
		t.Errorf("%v pushes sent, %v failed", sent, failed)
	}
	n.senders[0].client.CloseIdleConnections()
}

// The alert of the incident contains the link, and a separate alert sends it to channels that were already notified,
// because Alertmanager sends no message for a changed annotation.
func TestAlertAsksForApprovalWhileARequestWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{status: 200}, NewTracker()
		n := start(t, am)
		changes := b.Apply(drift("return", 100))
		i := changes[0].Incident
		asks := func(when string, want map[string]string) {
			t.Helper()
			synctest.Wait()
			got := map[string]string{}
			for _, m := range am.taken() {
				got[m.Labels["alertname"]] = m.Annotations["approval_url"]
				if !m.EndsAt.After(time.Now()) {
					got[m.Labels["alertname"]] = "resolved"
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s: pushed %v, want %v", when, got, want)
			}
		}
		const link = "https://rw.example/retrain/rr_1/decide?token=a.b"
		n.AskApproval(i, "rr_1", link) // before the alert: the request is durable first
		n.Update(changes)
		asks("as the incident opens", map[string]string{AlertRewardDrift: link, AlertRetrainAwaitsApproval: link})
		pass(time.Second)
		n.Update(b.Apply(drift("reward", 160)))
		asks("with another alarm", map[string]string{AlertRewardDrift: link})
		pass(time.Second)
		n.AskApproval(i, "rr_1", link)
		asks("the same link", map[string]string{})
		pass(time.Second)
		n.AskApproval(i, "rr_1", "")
		asks("when it is decided", map[string]string{AlertRewardDrift: "", AlertRetrainAwaitsApproval: "resolved"})
		pass(time.Second)
		n.AskApproval(i, "rr_2", link)
		asks("with a request that opens later", map[string]string{AlertRewardDrift: link, AlertRetrainAwaitsApproval: link})
		if len(n.asked) != 1 {
			t.Errorf("%d links are kept", len(n.asked))
		}
		pass(time.Second)
		muted := *i
		muted.Decisions = []Decision{{Kind: Muted, Until: time.Now().Add(time.Hour)}}
		muted.MutedUntil = time.Now().Add(time.Hour)
		n.Update([]Change{{Incident: &muted}})
		asks("when it is muted", map[string]string{AlertRewardDrift: "resolved", AlertRetrainAwaitsApproval: "resolved"})
		pass(time.Second)
		n.AskApproval(&muted, "rr_2", link)
		asks("while it is muted", map[string]string{})
	})
}

// A notifier can push to an Alertmanager with a private CA that requires a certificate and a token. Without them it
// delivers nothing, and with unusable files there is no notifier. If an Alertmanager, or a proxy in front of it,
// repeats parts of a request, they are logged without its credentials.
func TestRefusalsShowNoCredentials(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cr3t-of-the-service\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, before := range []int{0, maxAnswer - 30, maxAnswer - 40} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, password, _ := r.BasicAuth()
			w.WriteHeader(http.StatusBadGateway)
			_, _ = fmt.Fprintf(w, "%s Authorization: %s %s!", strings.Repeat("x", before), r.Header.Get("Authorization"), password)
		}))
		for _, cfg := range []AlertmanagerConfig{{TokenFile: secret}, {Username: "ann", PasswordFile: secret}} {
			cfg.URLs, cfg.Timeout = []string{server.URL}, model.Duration(time.Minute)
			n, err := NewNotifier(cfg, Links{}, nil, zerolog.Nop(), prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			n.Update(applied(NewTracker(), drift("return", 100)))
			err = n.pushDue(t.Context(), n.senders[0])
			said := fmt.Sprint(err)
			if !errors.Is(err, errRefused) || !strings.Contains(said, "Authorization:") || strings.Contains(said, "s3cr") || strings.Contains(said, base64.StdEncoding.EncodeToString([]byte("ann:s3cr"))) {
				t.Errorf("after %d bytes, %v", before, err)
			}
			n.senders[0].client.CloseIdleConnections()
		}
		server.Close()
	}
}

func TestNotifierAuthenticates(t *testing.T) {
	authority, dir := certtest.NewAuthority(t), t.TempDir()
	cert, key, token := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "token")
	authority.Issue(t, cert, key)
	if err := os.WriteFile(token, []byte("s3cr3t\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cr3t" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: authority.Pool, ClientAuth: tls.RequireAndVerifyClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	trusted := ingest.Certificates{CAFile: authority.File, CertFile: cert, KeyFile: key}
	for name, tt := range map[string]struct {
		cfg       AlertmanagerConfig
		delivered bool
	}{
		"all":                       {AlertmanagerConfig{TLS: trusted, TokenFile: token}, true},
		"no token":                  {AlertmanagerConfig{TLS: trusted}, false},
		"no client certificate":     {AlertmanagerConfig{TLS: ingest.Certificates{CAFile: authority.File}, TokenFile: token}, false},
		"authorities of the system": {AlertmanagerConfig{TLS: ingest.Certificates{CertFile: cert, KeyFile: key}, TokenFile: token}, false},
	} {
		tt.cfg.URLs, tt.cfg.Timeout = []string{server.URL}, model.Duration(time.Minute)
		n, err := NewNotifier(tt.cfg, Links{}, nil, zerolog.Nop(), prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		n.Update(applied(NewTracker(), drift("return", 100)))
		if err := n.pushDue(t.Context(), n.senders[0]); (err == nil) != tt.delivered {
			t.Errorf("%s: %v", name, err)
		}
		n.senders[0].client.CloseIdleConnections()
	}
	for _, cfg := range []AlertmanagerConfig{{TokenFile: filepath.Join(dir, "none")}, {TLS: ingest.Certificates{CAFile: key}}} {
		if _, err := NewNotifier(cfg, Links{}, nil, zerolog.Nop(), prometheus.NewRegistry()); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
