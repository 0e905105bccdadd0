//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// TestE2EServers shares one broker among the tests of the service; each test has its own topic.
func TestE2EServers(t *testing.T) {
	s := setting{broker: startBroker(t, ""), binary: build(t)}
	t.Run("telemetry is read", s.telemetryIsRead) // sets environment variables

	run := func(name string, test func(*testing.T)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each has its own topics, service and other servers
			test(t)
		})
	}
	run("lander with pushed alerts", s.landerPushesAlerts)
	run("cart-pole with alerting rules", s.cartPoleAlertsByRules)
	for _, f := range restartedFleets() {
		run("killed and restarted on "+f.topic, func(t *testing.T) { s.restarted(t, f) })
	}
	run("lake is retrained", s.lakeIsRetrained)
	run("lake is missed", s.lakeIsMissed)
	run("learner is held", s.learnerIsHeld)
	run("killed at random moments", s.killed)
	run("instances join and leave", s.joinedAndLeft)
	run("committed transactions are judged", s.readCommitted)
	run("decompression bombs", s.bombed)
	run("compacted topic is refused", s.compactedRefused)
}

// setting holds what the tests share.
type setting struct {
	broker *broker
	binary string
}

// landerPushesAlerts: gravity increases without any indication in the telemetry. The service pushes to Alertmanager
// itself.
func (s setting) landerPushesAlerts(t *testing.T) {
	f := fleet{
		env: "LunarLander-v3", policy: "lander", agents: 1, topic: "lander", partitions: 1,
		phases: []phase{{Episodes: 600}, {Episodes: 120, Physics: map[string]any{"gravity": -11.9}}, {Episodes: 500}},
	}
	alertmanager := startAlertmanager(t)
	run := s.watch(t, f, alertmanager, true)

	run.phase(t)
	run.healthy(t)

	run.agent.proceed(t)
	run.phase(t)
	incident := run.drifted(t)
	if incident.Cause != string(alerts.CauseUnknown) {
		t.Errorf("the cause is %s, where nothing was known", incident.Cause)
	}
	eventually(t, "Alertmanager has the incident", func() error {
		return onlyAlert(alertmanager, f.policy, map[string]string{"incident": incident.ID, "env": f.env, "severity": "critical"})
	})
	run.paged(t, "firing")
	run.orderedOnce(t, incident)
	run.sameAsReplay(t, incident)

	run.agent.proceed(t)
	run.phase(t)
	run.recovered(t)
	run.service.stop(t)
}

// cartPoleAlertsByRules: the pole becomes shorter when a new version of the environment is announced. Three agents
// write to three partitions, and Prometheus raises the alert with the rules that the binary writes.
func (s setting) cartPoleAlertsByRules(t *testing.T) {
	f := fleet{
		env: "CartPole-v1", policy: "balancer", agents: 3, topic: "cart-pole", partitions: 3,
		phases: []phase{
			{Episodes: 600},
			{Episodes: 120, Physics: map[string]any{"length": 0.2}, Versions: map[string]string{"env_version": "2"}},
			{Episodes: 510, Versions: map[string]string{"env_version": "1"}},
		},
	}
	alertmanager := startAlertmanager(t)
	run := s.watch(t, f, alertmanager, false)

	run.phase(t)
	run.healthy(t)

	run.agent.proceed(t)
	run.phase(t)
	incident := run.drifted(t)
	if incident.Cause != string(alerts.CauseEnvironment) {
		t.Errorf("the cause is %s, where the version of the environment changed", incident.Cause)
	}
	eventually(t, "Prometheus raises the alert", func() error {
		return run.query(`ALERTS{alertname="RewardDrift",alertstate="firing",policy="balancer"}`, 1)
	})
	eventually(t, "Alertmanager has the alert", func() error {
		return onlyAlert(alertmanager, f.policy, map[string]string{"env": f.env, "severity": "critical"})
	})
	run.paged(t, "firing")
	order := run.orderedOnce(t, incident)
	if v := order.Data.Versions; v.Before.Env != "1" || v.After.Env != "2" {
		t.Errorf("the versions of the environment are %q before and %q after", v.Before.Env, v.After.Env)
	}
	run.sameAsReplay(t, incident)

	run.agent.proceed(t)
	run.phase(t)
	run.recovered(t)
	run.service.stop(t)
}

// restartedFleets returns one fleet that writes to one partition, and one that writes to several.
func restartedFleets() []fleet {
	return []fleet{
		{
			env: "LunarLander-v3", policy: "lander", agents: 1, topic: "one-partition", partitions: 1,
			phases: []phase{
				{Episodes: 550},
				{Episodes: 150, Physics: map[string]any{"enable_wind": true, "wind_power": 15.0, "turbulence_power": 1.5}},
			},
		},
		{
			env: "CartPole-v1", policy: "balancer", agents: 4, topic: "four-partitions", partitions: 4,
			phases: []phase{{Episodes: 600}, {Episodes: 200, Physics: map[string]any{"gravity": 20.0}}},
		},
	}
}

// restarted kills the service during the warm-up, stops it gracefully at the end of the warm-up, and kills it again
// during the incident, always while the agents write. The alarms are those of an undisturbed replay, and one retraining
// is ordered; its webhook may be repeated with the same ID.
func (s setting) restarted(t *testing.T, f fleet) {
	s.broker.createTopic(t, f.topic, f.partitions)
	trainer := startReceiver(t)
	w := &watched{fleet: f, broker: s.broker, trainer: trainer}
	w.service = newService(t, s.binary, s.broker.address, f.topic, f.topic, trainer, nil)
	w.service.start(t)
	w.agent = startAgent(t, s.broker, f)

	w.judged(t, 60)
	w.kill(t)
	w.judged(t, 300)
	w.service.stop(t)
	w.service.start(t)
	w.phase(t)

	w.agent.proceed(t)
	w.judged(t, f.episodes(1)+f.phases[1].Episodes/2)
	w.kill(t)
	w.phase(t)

	incident := w.incident(t, "open")
	w.sameAsReplay(t, incident)
	w.ordered(t, incident)
	w.service.stop(t)
}

// judged returns when the service has judged the given number of units.
func (w *watched) judged(t *testing.T, units int) {
	t.Helper()
	reaches(t, fmt.Sprintf("%d units are judged", units), float64(units), func() (float64, error) {
		return w.service.largest(metrics.MetricUnits, w.labels())
	})
}

// kill kills the service and restarts it.
func (w *watched) kill(t *testing.T) {
	t.Helper()
	w.service.kill(t)
	w.broker.bury(t, w.fleet.topic)
	w.service.start(t)
}

// watched is a fleet together with everything that watches it.
type watched struct {
	fleet      fleet
	episodes   int // number of episodes of the completed phases
	broker     *broker
	service    *service
	agent      *agent
	trainer    *receiver
	alerts     *alertmanager
	prometheus *prometheus
}

// watch starts everything that watches a fleet, and the fleet's first phase. Incidents are pushed to Alertmanager if
// push is true; otherwise alerts come from Prometheus's rules.
func (s setting) watch(t *testing.T, f fleet, alerts *alertmanager, push bool) *watched {
	t.Helper()
	s.broker.createTopic(t, f.topic, f.partitions)
	w := &watched{fleet: f, broker: s.broker, trainer: startReceiver(t), alerts: alerts}
	pushTo := alerts
	if !push {
		pushTo = nil
	}
	w.service = newService(t, s.binary, s.broker.address, f.topic, f.topic, w.trainer, pushTo)
	w.service.start(t)
	w.prometheus = startPrometheus(t, w.service, alerts)
	w.agent = startAgent(t, s.broker, f)
	return w
}

// phase returns when the agents have finished a phase and the service has judged all of it.
func (w *watched) phase(t *testing.T) {
	t.Helper()
	w.episodes += w.agent.wait(t).Episodes
	judged := func() (float64, error) { return w.service.largest(metrics.MetricUnits, w.labels()) }
	reaches(t, "the service has judged every episode", float64(w.episodes), judged)
	if err := exactly(float64(w.episodes))(judged()); err != nil {
		t.Fatalf("episodes that are judged: %v", err)
	}
	eventually(t, "the service has caught up", func() error {
		return exactly(0)(w.service.largest(ingest.MetricLagRecords, nil))
	})
}

// labels returns the labels of the fleet's group.
func (w *watched) labels(more ...string) map[string]string {
	labels := map[string]string{"policy": w.fleet.policy, "env": w.fleet.env}
	for i := 0; i+1 < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	return labels
}

// healthy checks that the returns are judged, without findings.
func (w *watched) healthy(t *testing.T) {
	t.Helper()
	if err := w.states(finding.OK); err != nil {
		t.Fatal(err)
	}
	incidents, err := w.service.incidents()
	if err != nil || len(incidents) > 0 {
		t.Fatalf("there are incidents %+v before anything has changed: %v", incidents, err)
	}
	deliveries, _, err := w.trainer.received()
	if err != nil || len(deliveries) > 0 {
		t.Fatalf("webhooks %+v came before anything has changed: %v", deliveries, err)
	}
	eventually(t, "Prometheus sees it healthy", func() error { return w.query(w.stateQuery(), float64(finding.OK)) })
}

// states checks the state of the returns in /metrics.
func (w *watched) states(want finding.State) error {
	return exactly(float64(want))(w.service.largest(metrics.MetricStreamState, w.labels("signal", "return")))
}

func (w *watched) stateQuery() string {
	return fmt.Sprintf("%s{policy=%q,env=%q,signal=%q}", metrics.MetricStreamState, w.fleet.policy, w.fleet.env, "return")
}

func (w *watched) query(query string, want float64) error {
	return exactly(want)(w.prometheus.value(query))
}

// drifted checks that the metrics and Prometheus show the alarm, and returns its incident.
func (w *watched) drifted(t *testing.T) incident {
	t.Helper()
	if err := w.states(finding.Drift); err != nil {
		t.Fatal(err)
	}
	w.service.lintMetrics(t)
	eventually(t, "Prometheus sees the drift", func() error { return w.query(w.stateQuery(), float64(finding.Drift)) })
	return w.incident(t, "open")
}

// incident returns the only incident, which must be in the given state.
func (w *watched) incident(t *testing.T, state string) incident {
	t.Helper()
	all, err := w.service.incidents()
	if err != nil || len(all) != 1 || all[0].State != state {
		t.Fatalf("the incidents are %+v, and not one that is %s: %v", all, state, err)
	}
	i := all[0]
	t.Logf("incident %s is %s: cause %s, alarms %+v", i.ID, i.State, i.Cause, i.Alarms)
	return i
}

// ordered checks that the trainer received one valid webhook about the incident, and returns it with the number of its
// repeats.
func (w *watched) ordered(t *testing.T, i incident) (o order, repeats int) {
	t.Helper()
	var all []delivery
	eventually(t, "the trainer has its order", func() (err error) {
		all, repeats, err = w.trainer.received()
		if err == nil && len(all) != 1 {
			err = fmt.Errorf("it has %d", len(all))
		}
		return err
	})
	o = all[0].order
	if o.Type != "retrain.requested" || o.Data.Incident != i.ID || o.Data.Policy != w.fleet.policy || o.Data.Cause != i.Cause {
		t.Errorf("the order is %+v; incident %+v", o, i)
	}
	if want := o.Data.Policy + " performs as well as when it was accepted"; o.Data.Contract.Objective != want || o.Data.Config.Run != "checkout-ranker-"+o.Data.ID {
		t.Errorf("contract %+v, config %+v, want those of deploy/recipes filled", o.Data.Contract, o.Data.Config)
	}
	if all[0].id == "" || o.Data.ID == "" {
		t.Errorf("webhook-id %q, request %q: neither may be empty", all[0].id, o.Data.ID)
	}
	return o, repeats
}

// orderedOnce additionally checks that the webhook was not repeated, as there was no reason to.
func (w *watched) orderedOnce(t *testing.T, i incident) order {
	t.Helper()
	o, repeats := w.ordered(t, i)
	if repeats > 0 {
		t.Errorf("the webhook came %d more times", repeats)
	}
	return o
}

// recovered checks that the incident has closed, that there are no alarms other than those of a replay, and that all
// receivers were notified.
func (w *watched) recovered(t *testing.T) {
	t.Helper()
	i := w.incident(t, "closed")
	w.sameAsReplay(t, i)
	w.orderedOnce(t, i)
	if err := w.states(finding.OK); err != nil {
		t.Fatal(err)
	}
	for _, metric := range []string{alerts.MetricIncidentsOpened, alerts.MetricIncidentsClosed} {
		if err := exactly(1)(w.service.largest(metric, w.labels())); err != nil {
			t.Errorf("%s: %v", metric, err)
		}
	}
	eventually(t, "Prometheus sees it recovered", func() error { return w.query(w.stateQuery(), float64(finding.OK)) })
	eventually(t, "Alertmanager has resolved the alert", func() error {
		firing, err := w.alerts.firing("RewardDrift", w.fleet.policy)
		if err == nil && len(firing) > 0 {
			err = fmt.Errorf("%v still fire", firing)
		}
		return err
	})
	w.paged(t, "resolved")
	w.paged(t, "firing")
}

// paged checks that Alertmanager has sent one page with a status.
func (w *watched) paged(t *testing.T, status string) {
	t.Helper()
	eventually(t, "one page says "+status, func() error { return w.alerts.pager.paged(status, w.fleet.policy) })
}

// sameAsReplay copies the topic to a file, in the order in which the service judges it, and checks that a replay of the
// file produces the incident's alarms, by their IDs.
func (w *watched) sameAsReplay(t *testing.T, i incident) {
	t.Helper()
	file := w.record(t)
	var ids []string
	for _, a := range w.service.replay(t, file) {
		if a.Incident != i.ID {
			t.Errorf("replay gives an incident %s, and not %s only: %+v", a.Incident, i.ID, a)
		}
		ids = append(ids, a.ID)
	}
	if got := i.alarmIDs(); !slices.Equal(got, ids) {
		late, err := w.service.largest(names.MetricLateUnits, nil)
		t.Errorf("alarms from Kafka %v, from the file %v; units judged late by this process: %v %v", got, ids, late, err)
	}
}

// record writes the topic to a file: one partition in offset order, several merged by time.
func (w *watched) record(t *testing.T) string {
	t.Helper()
	records := slices.Concat(w.broker.read(t, w.fleet.topic, w.fleet.partitions)...)
	if w.fleet.partitions > 1 {
		slices.SortStableFunc(records, func(a, b record) int { return cmp.Compare(a.ts, b.ts) })
	}
	file := filepath.Join(t.TempDir(), "telemetry.ndjson")
	writeRecords(t, file, records)
	return file
}

// onlyAlert checks that one RewardDrift alert fires for a policy and that it has the labels.
func onlyAlert(a *alertmanager, policy string, labels map[string]string) error {
	firing, err := a.firing("RewardDrift", policy)
	if err != nil {
		return err
	}
	if len(firing) != 1 {
		return fmt.Errorf("%d alerts fire: %v", len(firing), firing)
	}
	for name, want := range labels {
		if got := firing[0][name]; got != want {
			return fmt.Errorf("its label %s is %q, not %q", name, got, want)
		}
	}
	return nil
}

// exactly returns a check that a queried value equals want.
func exactly(want float64) func(float64, error) error {
	return func(got float64, err error) error {
		if err == nil && got != want {
			err = fmt.Errorf("it is %g, not %g", got, want)
		}
		return err
	}
}

func atLeast(least float64) func(float64, error) error {
	return func(got float64, err error) error {
		if err == nil && got < least {
			err = fmt.Errorf("it is %g, below %g", got, least)
		}
		return err
	}
}
