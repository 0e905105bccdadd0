package retrain

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scrapeTimeout bounds the ledger's part of a scrape.
const scrapeTimeout = 5 * time.Second

type metrics struct {
	deliveries *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	retries    prometheus.Counter
	collectors []prometheus.Collector
	reg        prometheus.Registerer
}

func newMetrics(cfg Config) *metrics {
	m := &metrics{
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: MetricDeliveries, Help: "Attempts to deliver a webhook, by result.",
		}, []string{"target", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: MetricDeliveryDuration, Help: "Time that an attempt to deliver a webhook took.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30, 60},
		}, []string{"target"}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: MetricLedgerRetries, Help: "Transactions begun again as the ledger could not be reached.",
		}),
	}
	for _, t := range cfg.Targets {
		m.duration.WithLabelValues(t.Name)
		for _, r := range []Result{
			ResultDelivered, ResultRedirected, ResultGone, ResultThrottled,
			ResultRejected, ResultTimeout, ResultUnreachable, ResultRefused, ResultInvalid, ResultUnsigned,
		} {
			m.deliveries.WithLabelValues(t.Name, string(r))
		}
	}
	return m
}

func (m *metrics) register(reg prometheus.Registerer, ledger *ledgerCollector) error {
	m.reg = reg
	for _, c := range []prometheus.Collector{m.deliveries, m.duration, m.retries, ledger} {
		if err := reg.Register(c); err != nil {
			m.unregister()
			return fmt.Errorf("register metrics: %w", err)
		}
		m.collectors = append(m.collectors, c)
	}
	return nil
}

// unregister takes the metrics back, or a scrape would ask a closed ledger.
func (m *metrics) unregister() {
	for _, c := range m.collectors {
		m.reg.Unregister(c)
	}
}

func (m *metrics) delivered(target string, r Result, took time.Duration) {
	m.deliveries.WithLabelValues(target, string(r)).Inc()
	m.duration.WithLabelValues(target).Observe(took.Seconds())
}

// ledgerCollector reads what the ledger holds when it is scraped, so that the two cannot differ.
type ledgerCollector struct {
	cfg                                                                  Config
	ledger                                                               *ledger
	requests, cooldown, breaker, deadLetters, givenUp, disabled, circuit *prometheus.Desc
	outcomes, took, expected                                             *prometheus.Desc
}

func newLedgerCollector(cfg Config, l *ledger) *ledgerCollector {
	return &ledgerCollector{
		cfg: cfg, ledger: l,
		requests: prometheus.NewDesc(MetricRequests, "Retrain requests in the ledger, by state.", []string{"policy", "state"}, nil),
		outcomes: prometheus.NewDesc(MetricOutcomes, "Retrainings that have come to an end, by outcome.", []string{"policy", "outcome"}, nil),
		took:     prometheus.NewDesc(MetricOutcomeSeconds, "Time from the opening of a retraining to its outcome.", []string{"policy", "outcome"}, nil),
		expected: prometheus.NewDesc(MetricExpected, "Value of the condition that the version of a retraining is to meet, while its outcome is awaited.",
			[]string{"policy", "statistic", "signal", "comparison"}, nil),
		cooldown:    prometheus.NewDesc(MetricCooldown, "Time until an incident of the policy can order a retraining from the target again.", []string{"policy", "target"}, nil),
		breaker:     prometheus.NewDesc(MetricBreakerOpen, "1 where triggers order nothing for the policy, as its last retrainings did not help, 0 otherwise.", []string{"policy"}, nil),
		deadLetters: prometheus.NewDesc(MetricDeadLetters, "Requests that were given up before they could be delivered.", []string{"target"}, nil),
		givenUp:     prometheus.NewDesc(MetricGivenUp, "Times that a request was given up before it could be delivered.", []string{"target"}, nil),
		circuit:     prometheus.NewDesc(MetricCircuitOpen, "1 where so many attempts in a row have failed that the target is tried by one request at a time, 0 otherwise.", []string{"target"}, nil),
		disabled:    prometheus.NewDesc(MetricTargetDisabled, "1 where the target answered 410 Gone and nothing is sent to it, 0 otherwise.", []string{"target"}, nil),
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
}

// Collect implements prometheus.Collector.
func (c *ledgerCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	for desc, collect := range map[*prometheus.Desc]func(context.Context, chan<- prometheus.Metric) error{
		c.requests: c.collectRequests, c.cooldown: c.collectCooldown, c.breaker: c.collectBreaker, c.deadLetters: c.collectDeadLetters,
		c.givenUp: c.collectGivenUp, c.disabled: c.collectDisabled, c.circuit: c.collectCircuits,
		c.outcomes: c.collectOutcomes, c.took: c.collectTimes, c.expected: c.collectExpected,
	} {
		if err := collect(ctx, out); err != nil {
			out <- prometheus.NewInvalidMetric(desc, err)
		}
	}
}

func (c *ledgerCollector) collectRequests(ctx context.Context, out chan<- prometheus.Metric) error {
	counts, err := c.ledger.count(ctx, `SELECT policy, state, count(*) FROM requests GROUP BY policy, state`)
	if err != nil {
		return err
	}
	for policy := range policiesOf(counts) {
		for _, s := range append(unfinishedStates(), finalStates()...) {
			out <- gauge(c.requests, float64(counts[pair{policy, string(s)}]), policy, string(s))
		}
	}
	return nil
}

// policiesOf gives the policies of counts by policy and something else.
func policiesOf(counts map[pair]int64) map[string]bool {
	policies := map[string]bool{}
	for k := range counts {
		policies[k[0]] = true
	}
	return policies
}

// outcomeStates are the ends of a request whose order was delivered.
func outcomeStates() []State { return []State{StateMet, StateMissed, StateInconclusive, StateFailed} }

// collectOutcomes counts what never leaves the ledger: the counter outlives a restart.
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

// byOutcome gives how many retrainings of each policy had each outcome, and the sum of the times they took.
func (c *ledgerCollector) byOutcome(ctx context.Context, each func(policy, state string, n, milliseconds int64)) error {
	const of = ` FROM requests WHERE kind = 'retrain' GROUP BY policy, state`
	counts, err := c.ledger.count(ctx, `SELECT policy, state, count(*)`+of)
	if err != nil {
		return err
	}
	sums, err := c.ledger.count(ctx, `SELECT policy, state, CAST(coalesce(sum(closed_at - opened_at), 0) AS BIGINT)`+of)
	if err != nil {
		return err
	}
	for policy := range policiesOf(counts) {
		for _, s := range outcomeStates() {
			k := pair{policy, string(s)}
			each(policy, string(s), counts[k], sums[k])
		}
	}
	return nil
}

func (c *ledgerCollector) collectExpected(ctx context.Context, out chan<- prometheus.Metric) error {
	awaited, err := c.ledger.expecting(ctx)
	for policy, v := range awaited {
		e := v.Expected
		out <- gauge(c.expected, e.Value, policy, e.Statistic, e.Signal, e.Comparison)
	}
	return err
}

func (c *ledgerCollector) collectCooldown(ctx context.Context, out chan<- prometheus.Metric) error {
	opened, err := c.ledger.count(ctx, `SELECT policy, trigger_key, max(opened_at) FROM requests GROUP BY policy, trigger_key`)
	if err != nil {
		return err
	}
	remaining := map[pair]time.Duration{}
	for _, t := range c.cfg.Triggers {
		if t.On != OnIncident {
			continue
		}
		for k, at := range opened {
			if k[1] == t.key() {
				to := pair{k[0], t.Target}
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
	policies, err := c.ledger.count(ctx, `SELECT policy, '', count(*) FROM requests GROUP BY policy`)
	if err != nil {
		return err
	}
	tripped, err := c.cfg.Breaker.trippedUntil(ctx, c.ledger.db, "")
	for k := range policies {
		value := 0.0
		if time.Now().Before(tripped[k[0]]) {
			value = 1
		}
		out <- gauge(c.breaker, value, k[0])
	}
	return err
}

func (c *ledgerCollector) collectDeadLetters(ctx context.Context, out chan<- prometheus.Metric) error {
	counts, err := c.byTarget(ctx, `SELECT target, '', count(*) FROM requests WHERE state = 'dead_letter' GROUP BY target`)
	for k, n := range counts {
		out <- gauge(c.deadLetters, float64(n), k[0])
	}
	return err
}

// collectGivenUp counts in the history, which only grows: the counter outlives a restart, and a dead letter that comes
// while another leaves is seen.
func (c *ledgerCollector) collectGivenUp(ctx context.Context, out chan<- prometheus.Metric) error {
	counts, err := c.byTarget(ctx, `SELECT r.target, '', count(*) FROM history h JOIN requests r ON r.id = h.request
		WHERE h.state = 'dead_letter' GROUP BY r.target`)
	for k, n := range counts {
		out <- prometheus.MustNewConstMetric(c.givenUp, prometheus.CounterValue, float64(n), k[0])
	}
	return err
}

// byTarget counts by target, 0 for a target of the configuration that has none.
func (c *ledgerCollector) byTarget(ctx context.Context, query string) (map[pair]int64, error) {
	counts, err := c.ledger.count(ctx, query)
	if err != nil {
		return nil, err
	}
	for _, t := range c.cfg.Targets {
		counts[pair{t.Name, ""}] += 0
	}
	return counts, nil
}

func (c *ledgerCollector) collectDisabled(ctx context.Context, out chan<- prometheus.Metric) error {
	return c.flag(c.disabled, out, func(t Target) (bool, error) { return isDisabled(ctx, c.ledger.db, t) })
}

func (c *ledgerCollector) collectCircuits(ctx context.Context, out chan<- prometheus.Metric) error {
	return c.flag(c.circuit, out, func(t Target) (bool, error) {
		until, err := circuit(ctx, c.ledger.db, t.Name)
		return !until.IsZero(), err
	})
}

// flag gives 1 or 0 for each target.
func (c *ledgerCollector) flag(desc *prometheus.Desc, out chan<- prometheus.Metric, holds func(Target) (bool, error)) error {
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

func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

type pair [2]string

// count reads rows of two names and a number.
func (l *ledger) count(ctx context.Context, query string) (map[pair]int64, error) {
	rows, err := l.db.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("count in the ledger: %w", err)
	}
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
	counts := map[pair]int64{}
	for rows.Next() {
		var k pair
		var n int64
		if err := rows.Scan(&k[0], &k[1], &n); err != nil {
			return nil, fmt.Errorf("count in the ledger: %w", err)
		}
		counts[k] = n
	}
	return counts, rows.Err()
}
