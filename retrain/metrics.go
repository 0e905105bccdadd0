package retrain

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// scrapeTimeout bounds the ledger's part of a scrape.
const scrapeTimeout = 5 * time.Second

type metrics struct {
	deliveries *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	retries    prometheus.Counter
	unread     prometheus.Counter
	collectors []prometheus.Collector
	reg        prometheus.Registerer
}

func newMetrics(cfg Config) *metrics {
	m := &metrics{
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: MetricDeliveries, Help: "Webhook delivery attempts, by result.",
		}, []string{"target", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: MetricDeliveryDuration, Help: "Duration of webhook delivery attempts.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30, 60},
		}, []string{"target"}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: MetricLedgerRetries, Help: "Transactions retried because the ledger could not be reached.",
		}),
		unread: prometheus.NewCounter(prometheus.CounterOpts{
			Name: MetricLedgerUnread, Help: "Scrapes with missing series because the ledger could not be read.",
		}),
	}
	for _, t := range cfg.Targets {
		m.duration.WithLabelValues(t.Name)
		for _, r := range []target.Result{
			target.ResultDelivered, target.ResultRedirected, target.ResultGone, target.ResultThrottled,
			target.ResultRejected, target.ResultTimeout, target.ResultUnreachable, target.ResultRefused, target.ResultInvalid, target.ResultUnsigned,
		} {
			m.deliveries.WithLabelValues(t.Name, string(r))
		}
	}
	return m
}

func (m *metrics) register(reg prometheus.Registerer, ledger *ledgerCollector) error {
	m.reg = reg
	suspended := prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: MetricLedgerSuspended, Help: "1 if the ledger is unavailable, 0 otherwise."},
		func() float64 {
			if ledger.ledger.Suspended() != nil {
				return 1
			}
			return 0
		})
	ledger.unread = m.unread
	for _, c := range []prometheus.Collector{m.deliveries, m.duration, m.retries, m.unread, suspended, ledger} {
		if err := reg.Register(c); err != nil {
			m.unregister()
			return fmt.Errorf("register metrics: %w", err)
		}
		m.collectors = append(m.collectors, c)
	}
	return nil
}

// unregister unregisters the metrics: otherwise a scrape would query a closed ledger.
func (m *metrics) unregister() {
	for _, c := range m.collectors {
		m.reg.Unregister(c)
	}
}

func (m *metrics) delivered(target string, r target.Result, took time.Duration) {
	m.deliveries.WithLabelValues(target, string(r)).Inc()
	m.duration.WithLabelValues(target).Observe(took.Seconds())
}

// ledgerCollector reads the ledger at each scrape, so that metrics and ledger cannot differ.
type ledgerCollector struct {
	cfg                                                                  Config
	ledger                                                               *ledger.Ledger
	requests, cooldown, breaker, deadLetters, givenUp, disabled, circuit *prometheus.Desc
	outcomes, took, expected                                             *prometheus.Desc
	lastExpected, lastObserved, lastStep, retrying                       *prometheus.Desc
	unread                                                               prometheus.Counter

	mu     sync.Mutex                 // of scrapes
	orders map[string]recipe.Expected // of the last retraining of each policy, by request: what was ordered never changes
}

func newLedgerCollector(cfg Config, l *ledger.Ledger) *ledgerCollector {
	return &ledgerCollector{
		cfg: cfg, ledger: l,
		requests: prometheus.NewDesc(MetricRequests, "Retrain requests in the ledger, by state.", []string{"policy", "state"}, nil),
		outcomes: prometheus.NewDesc(MetricOutcomes, "Finished retrainings, by outcome.", []string{"policy", "outcome"}, nil),
		took:     prometheus.NewDesc(MetricOutcomeSeconds, "Time from a retrain request to its outcome.", []string{"policy", "outcome"}, nil),
		expected: prometheus.NewDesc(MetricExpected, "Value that the new version must reach, while the outcome of the retraining is pending.",
			[]string{"policy", "statistic", "signal", "comparison"}, nil),
		lastExpected: prometheus.NewDesc(MetricLastExpected, "Value required by the contract of the last delivered retrain request, with the state of that request.",
			[]string{"policy", "request", "statistic", "signal", "comparison", "state"}, nil),
		lastObserved: prometheus.NewDesc(MetricLastObserved, "Value observed for the last delivered retraining, once its outcome is known.",
			[]string{"policy", "request"}, nil),
		lastStep: prometheus.NewDesc(MetricLastStep, "Unix time at which the last request of a policy entered each state, and who caused it.",
			[]string{"policy", "request", "kind", "step", "by"}, nil),
		retrying:    prometheus.NewDesc(MetricRetrying, "Requests whose delivery failed at least once and will be retried.", []string{"target"}, nil),
		cooldown:    prometheus.NewDesc(MetricCooldown, "Time until an incident of the policy can request another retraining from the target.", []string{"policy", "target"}, nil),
		breaker:     prometheus.NewDesc(MetricBreakerOpen, "1 if triggers are paused for the policy because its most recent retrainings did not help, 0 otherwise.", []string{"policy"}, nil),
		deadLetters: prometheus.NewDesc(MetricDeadLetters, "Requests in the ledger that could not be delivered.", []string{"target"}, nil),
		givenUp:     prometheus.NewDesc(MetricGivenUp, "Deliveries that were given up, after repeated failures or because a retry could not succeed.", []string{"target"}, nil),
		circuit:     prometheus.NewDesc(MetricCircuitOpen, "1 if the target receives only one request at a time after repeated failures, 0 otherwise.", []string{"target"}, nil),
		disabled:    prometheus.NewDesc(MetricTargetDisabled, "1 if the target responded with 410 Gone and is disabled, 0 otherwise.", []string{"target"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *ledgerCollector) Describe(out chan<- *prometheus.Desc) {
	out <- c.requests
	out <- c.cooldown
	out <- c.breaker
	out <- c.deadLetters
	out <- c.givenUp
	out <- c.disabled
	out <- c.circuit
	out <- c.outcomes
	out <- c.took
	out <- c.expected
	out <- c.lastExpected
	out <- c.lastObserved
	out <- c.lastStep
	out <- c.retrying
}

// Collect implements prometheus.Collector. It omits what the ledger cannot return: an error would fail the whole
// scrape.
func (c *ledgerCollector) Collect(out chan<- prometheus.Metric) {
	var failed error
	defer func() {
		if failed != nil {
			c.unread.Inc()
			c.ledger.Noticed(failed)
		}
	}()
	if failed = c.ledger.Suspended(); failed != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	for _, collect := range []func(context.Context, chan<- prometheus.Metric) error{
		c.collectRequests, c.collectCooldown, c.collectBreaker, c.collectDeadLetters, c.collectGivenUp, c.collectDisabled, c.collectCircuits,
		c.collectOutcomes, c.collectTimes, c.collectExpected, c.collectLast, c.collectSteps, c.collectRetrying,
	} {
		if err := collect(ctx, out); err != nil {
			failed = err
		}
	}
}

func (c *ledgerCollector) collectRequests(ctx context.Context, out chan<- prometheus.Metric) error {
	counts, err := c.ledger.CountRequests(ctx)
	if err != nil {
		return err
	}
	for policy := range policiesOf(counts) {
		for _, s := range ledger.States() {
			out <- gauge(c.requests, float64(counts[ledger.Pair{policy, string(s)}]), policy, string(s))
		}
	}
	return nil
}

// policiesOf returns the policies in counts by policy and a second name.
func policiesOf(counts map[ledger.Pair]int64) map[string]bool {
	policies := map[string]bool{}
	for k := range counts {
		policies[k[0]] = true
	}
	return policies
}

// outcomeStates returns the final states of a request whose order was delivered.
func outcomeStates() []ledger.State {
	return []ledger.State{ledger.StateMet, ledger.StateMissed, ledger.StateInconclusive, ledger.StateFailed}
}

// collectOutcomes counts rows that never leave the ledger, so the counter survives restarts.
func (c *ledgerCollector) collectOutcomes(ctx context.Context, out chan<- prometheus.Metric) error {
	return c.byOutcome(ctx, func(policy, state string, n, _ int64) {
		out <- prometheus.MustNewConstMetric(c.outcomes, prometheus.CounterValue, float64(n), policy, state)
	})
}

func (c *ledgerCollector) collectTimes(ctx context.Context, out chan<- prometheus.Metric) error {
	return c.byOutcome(ctx, func(policy, state string, n, milliseconds int64) {
		out <- prometheus.MustNewConstSummary(c.took, uint64(n), float64(milliseconds)/1000, nil, policy, state)
	})
}

// byOutcome calls each with the number of retrainings of each policy and outcome, and the sum of the times they took.
func (c *ledgerCollector) byOutcome(ctx context.Context, each func(policy, state string, n, milliseconds int64)) error {
	counts, sums, err := c.ledger.CountRetrainings(ctx)
	if err != nil {
		return err
	}
	for policy := range policiesOf(counts) {
		for _, s := range outcomeStates() {
			k := ledger.Pair{policy, string(s)}
			each(policy, string(s), counts[k], sums[k])
		}
	}
	return nil
}

func (c *ledgerCollector) collectExpected(ctx context.Context, out chan<- prometheus.Metric) error {
	awaited, err := c.ledger.Expected(ctx)
	for policy, v := range awaited {
		e := v.Expected
		out <- gauge(c.expected, e.Value, policy, e.Statistic, e.Signal, e.Comparison)
	}
	return err
}

// collectLast exports what the last delivered retraining of each policy must show, and what it has shown.
func (c *ledgerCollector) collectLast(ctx context.Context, out chan<- prometheus.Metric) error {
	last, err := c.ledger.LastDelivered(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.orders
	c.orders = make(map[string]recipe.Expected, len(last))
	for _, s := range last {
		e, known := before[s.Request]
		if !known {
			if e, err = c.ledger.ExpectedOf(ctx, s.Request); err != nil {
				return err
			}
		}
		c.orders[s.Request] = e
		if e.Over == 0 { // builds without contracts expected nothing
			continue
		}
		out <- gauge(c.lastExpected, e.Value, s.Policy, s.Request, e.Statistic, e.Signal, e.Comparison, string(s.State))
		if s.Observed.Valid {
			out <- gauge(c.lastObserved, s.Observed.Float64, s.Policy, s.Request)
		}
	}
	return nil
}

// The steps that are not states: a person's approval of a request, and a person's end of a request that its target
// has received.
const (
	stepApproved  = "approved"
	stepUntracked = "untracked"
)

// Kinds returns the values of the label kind of MetricLastStep.
func Kinds() (kinds []string) {
	for _, k := range recipe.Kinds() {
		kinds = append(kinds, string(k))
	}
	return kinds
}

// Steps returns the values of the label step of MetricLastStep.
func Steps() []string {
	steps := []string{stepApproved, stepUntracked}
	for _, s := range ledger.States() {
		steps = append(steps, string(s))
	}
	return steps
}

// collectSteps exports what was done with the last request of each policy: the newest time of each step, so that
// the number of series is bounded even if a request is delivered again and again.
func (c *ledgerCollector) collectSteps(ctx context.Context, out chan<- prometheus.Metric) error {
	all, err := c.ledger.LastSteps(ctx, time.Now().Add(-alerts.ExportedAfterEnd))
	if err != nil {
		return err
	}
	newest := map[ledger.Pair]ledger.Entered{} // by request and step
	var before ledger.Entered
	for _, s := range all {
		if before.Request != s.Request {
			before = ledger.Entered{}
		}
		if before.State != s.State { // a late report of the delivery repeats the state
			newest[ledger.Pair{s.Request, stepOf(before.State, s.State)}] = s
		}
		before = s
	}
	for k, s := range newest {
		out <- gauge(c.lastStep, float64(s.At.UnixMilli())/1000, s.Policy, s.Request, string(s.Kind), k[1], s.By)
	}
	return nil
}

// stepOf returns the name of the change from one state to another.
func stepOf(from, to ledger.State) string {
	switch {
	case from == ledger.StateAwaitingApproval && (to == ledger.StateOpen || to == ledger.StateQueued):
		return stepApproved
	case from.AtTarget() && to == ledger.StateRejected:
		return stepUntracked
	}
	return string(to)
}

func (c *ledgerCollector) collectRetrying(ctx context.Context, out chan<- prometheus.Metric) error {
	counts, err := c.byTarget(ctx, c.ledger.CountRetrying)
	for k, n := range counts {
		out <- gauge(c.retrying, float64(n), k[0])
	}
	return err
}

func (c *ledgerCollector) collectCooldown(ctx context.Context, out chan<- prometheus.Metric) error {
	opened, err := c.ledger.LastOpenings(ctx)
	if err != nil {
		return err
	}
	remaining := map[ledger.Pair]time.Duration{}
	for _, t := range c.cfg.Triggers {
		if t.On != OnIncident {
			continue
		}
		for k, at := range opened {
			if k[1] == t.key() {
				to := ledger.Pair{k[0], t.Target}
				remaining[to] = max(remaining[to], time.Until(cooldownEnd(t, time.UnixMilli(at))))
			}
		}
	}
	for k, left := range remaining {
		out <- gauge(c.cooldown, left.Seconds(), k[0], k[1])
	}
	return nil
}

func (c *ledgerCollector) collectBreaker(ctx context.Context, out chan<- prometheus.Metric) error {
	counts, err := c.ledger.CountRequests(ctx)
	if err != nil {
		return err
	}
	failing, err := c.ledger.Failing(ctx, c.cfg.Breaker.After)
	tripped := c.cfg.Breaker.trippedUntil(failing)
	for policy := range policiesOf(counts) {
		value := 0.0
		if time.Now().Before(tripped[policy]) {
			value = 1
		}
		out <- gauge(c.breaker, value, policy)
	}
	return err
}

func (c *ledgerCollector) collectDeadLetters(ctx context.Context, out chan<- prometheus.Metric) error {
	counts, err := c.byTarget(ctx, c.ledger.CountDeadLetters)
	for k, n := range counts {
		out <- gauge(c.deadLetters, float64(n), k[0])
	}
	return err
}

// collectGivenUp counts in the history, which only grows. So the counter survives restarts, and a new dead letter
// shows even if another one is resent.
func (c *ledgerCollector) collectGivenUp(ctx context.Context, out chan<- prometheus.Metric) error {
	counts, err := c.byTarget(ctx, c.ledger.CountGivenUp)
	for k, n := range counts {
		out <- prometheus.MustNewConstMetric(c.givenUp, prometheus.CounterValue, float64(n), k[0])
	}
	return err
}

// byTarget counts by target, with 0 for a configured target without any.
func (c *ledgerCollector) byTarget(ctx context.Context, count func(context.Context) (map[ledger.Pair]int64, error)) (map[ledger.Pair]int64, error) {
	counts, err := count(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range c.cfg.Targets {
		counts[ledger.Pair{t.Name, ""}] += 0
	}
	return counts, nil
}

func (c *ledgerCollector) collectDisabled(ctx context.Context, out chan<- prometheus.Metric) error {
	return c.flag(c.disabled, out, func(t target.Target) (bool, error) { return c.ledger.IsDisabled(ctx, t) })
}

func (c *ledgerCollector) collectCircuits(ctx context.Context, out chan<- prometheus.Metric) error {
	return c.flag(c.circuit, out, func(t target.Target) (bool, error) {
		until, err := c.ledger.Circuit(ctx, t.Name)
		return !until.IsZero(), err
	})
}

// flag exports 1 or 0 for each target.
func (c *ledgerCollector) flag(desc *prometheus.Desc, out chan<- prometheus.Metric, holds func(target.Target) (bool, error)) error {
	for _, t := range c.cfg.Targets {
		held, err := holds(t)
		if err != nil {
			return err
		}
		value := 0.0
		if held {
			value = 1
		}
		out <- gauge(desc, value, t.Name)
	}
	return nil
}

// gauge returns a value with labels. A label with text from a person may contain any bytes.
func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	for i := range labels {
		labels[i] = alerts.LabelValue(labels[i])
	}
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}
