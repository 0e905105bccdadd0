package metrics

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// Collector exports the summaries of all banks. A scrape reads the last published summaries and never the state in use.
type Collector struct {
	summaries   func() []*finding.Summary
	groupLabels []string // of all policies; "" for a group that lacks one
	limit       int
	now         func() time.Time
	families    map[string]family
	limitHits   atomic.Uint64
	reserved    func() int // series of guards, which count towards the limit
	texts       sync.Pool  // of *text
}

// family is what all series with one name share.
type family struct {
	desc   *prometheus.Desc
	help   string
	labels []string // names of the labels in addition to those of the policy and the group
}

// metricHelp describes the metrics with a policy, in the order of the reference: name, help, and the labels in addition
// to those of the policy and the group.
type metricHelp struct {
	name, help string
	labels     []string
}

func help() []metricHelp {
	sample := []string{"signal", "sample"}
	detector := []string{"signal", "detector"}
	version := []string{"policy_version", "env_version", "reward_version"}
	return []metricHelp{
		{MetricSignalMean, "Mean of the signal over the episodes or blocks of the sample.", sample},
		{MetricSignalStddev, "Standard deviation of the signal over the episodes or blocks of the sample.", sample},
		{MetricSignalQuantile, "Quantile of the signal over the episodes or blocks of the sample.", append(slices.Clone(sample), "q")},
		{MetricSignalDecile, "Share of the sample's episodes or blocks in each decile of the baseline.", append(slices.Clone(sample), "bin")},
		{MetricRewardPositive, "Sum of the positive rewards.", nil},
		{MetricRewardNegative, "Sum of the absolute values of the negative rewards.", nil},
		{MetricRewardObservations, "Number of rewards, excluding NaN and infinite values.", nil},
		{MetricActionRatio, "Share of the action in the sample.", []string{"action", "sample"}},
		{MetricActionDivergence, "Divergence between the actions of the last 200 episodes or blocks and the baseline.", []string{"measure"}},
		{MetricActionChance, "95th percentile of the divergence if the actions are unchanged and the steps are independent.", []string{"measure"}},
		{MetricActionEntropy, "Entropy of the sample's actions, in bits.", []string{"sample"}},
		{
			MetricOffPolicyValue, "Estimated return per episode or block of another policy on current traffic, with the bounds of its confidence sequence. Not exported if there is not enough data for an estimate.",
			[]string{"reference", "bound"},
		},
		{MetricOffPolicyActual, "Mean return of the episodes or blocks of the off-policy estimate.", nil},
		{MetricOffPolicyEffective, "Effective sample size of the off-policy estimate.", nil},
		{MetricOffPolicyWeight, "Mean weight of the off-policy estimate. Near 1 if the current policy takes all actions of the accepted policy.", nil},
		{MetricDetectorScore, "Detector statistic relative to its threshold. An alarm fires at 1, or, for a falling return while the policy learns, later.", detector},
		{MetricDetectorStatistic, "Statistic of the detector's leading branch.", detector},
		{MetricDetectorThreshold, "Threshold of the detector's leading branch.", detector},
		{MetricComparisonAlarms, "Drift detections by a detector that is shown for comparison only and never pages.", detector},
		{MetricComparisonARL0, "Mean number of episodes or blocks between false alarms of a comparison detector, on independent draws from the baseline.", detector},
		{MetricEffectSize, "Shift of the mean over the last 200 episodes or blocks, in baseline standard deviations.", []string{"signal"}},
		{MetricProgress, "Trend in the return of a learning policy: 1 improving, 2 plateau, 3 regressing, 4 collapsed.", []string{"signal"}},
		{MetricProgressChange, "Change in return over the most recent quarter of the past week, with its 99% confidence interval.", []string{"signal", "bound"}},
		{MetricStreamState, "State of the stream: 0 warming_up, 1 ok, 2 drift, 3 telemetry_fault.", []string{"signal"}},
		{MetricStreamFault, "The rule that detects the stream's current telemetry fault. Always 1.", []string{"signal", "rule"}},
		{MetricBaselineInfo, "ID of the baseline. Always 1.", []string{"baseline"}},
		{MetricBaselineAge, "Time since the baseline was frozen.", nil},
		{MetricBaselineUnits, "Episodes or blocks in the baseline.", nil},
		{MetricDependenceFactor, "Variance inflation of the mean due to dependence between episodes or blocks.", []string{"signal"}},
		{MetricFalseAlarmUnits, "Minimum mean number of episodes or blocks between false alarms, set by the budget.", nil},
		{
			MetricExpectedUnits, "Expected mean number of episodes or blocks between false alarms, as quantiles over baselines.",
			[]string{"q"},
		},
		{MetricAllowance, "Allowance for the sampling error of the baseline, in standard errors.", nil},
		{MetricOverlap, "Sum of the false alarm rates of all branches, divided by the false alarm rate of the group.", nil},
		{
			MetricPromise, "Confidence in the false alarm budget, and the branch with the largest share of false alarms. Always 1.",
			[]string{"confidence", "weakest"},
		},
		{
			MetricBranches, "Detector branches of the signal, by whether they are armed.",
			[]string{"signal", "state"},
		},
		{MetricUnits, "Episodes or blocks received.", nil},
		{MetricUnfinished, "Share of episodes without an end, which are not judged: around the first 200 and the last 200.", []string{"sample"}},
		{MetricUnitsIgnored, "Episodes or blocks of replaced policy versions, which were not judged.", nil},
		{MetricVersionInfo, "Policy, environment and reward versions of the most recent episode or block. Always 1.", version},
		{MetricVersionSince, "Unix time of the first episode or block of each of the newest versions.", version},
	}
}

// NewCollector returns the collector of the banks whose summaries the function returns. It exports at most limit
// series: healthy streams lose theirs first, those in drift or in a fault never do.
func NewCollector(summaries func() []*finding.Summary, groupLabels []string, limit int, now func() time.Time) *Collector {
	c := &Collector{
		summaries: summaries, groupLabels: groupLabels, limit: limit, now: now, families: map[string]family{},
		reserved: func() int { return 0 },
	}
	for _, m := range help() {
		labels := append([]string{"policy"}, groupLabels...)
		c.families[m.name] = family{prometheus.NewDesc(m.name, m.help, append(labels, m.labels...), nil), m.help, m.labels}
	}
	const hits = "Streams and guards whose series were omitted because of limits.series."
	c.families[MetricSeriesLimitHits] = family{desc: prometheus.NewDesc(MetricSeriesLimitHits, hits, nil, nil), help: hits}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range c.families {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.export(&samples{Collector: c, pairs: pairs{}, out: out})
	out <- &sample{desc: c.families[MetricSeriesLimitHits].desc, kind: prometheus.CounterValue, value: float64(c.limitHits.Load())}
}

// output receives the series of a scrape.
type output interface {
	// begin sets the group of the next series.
	begin(g *finding.GroupSummary)
	add(s *series)
}

// export writes all series except that of the limit. It reads the summaries once: otherwise a stream that changed
// its state between two reads would be exported twice, and the whole scrape would fail.
func (c *Collector) export(out output) {
	scrape, summaries := &scrape{Collector: c, room: c.limit - c.reserved(), out: out}, c.summaries()
	for _, urgent := range []bool{true, false} {
		for _, s := range summaries {
			for i := range s.Groups {
				scrape.group(&s.Groups[i], urgent)
			}
		}
	}
}

// scrape is one export of all summaries.
type scrape struct {
	*Collector
	// room is the number of series that may still be exported. It is 0 after the first stream that does not fit, so
	// that the series of a large fleet are not built in vain.
	room  int
	out   output
	begun *finding.GroupSummary // group whose series are being written
}

// group exports the urgent streams of a group, or everything else as far as there is room.
func (c *scrape) group(g *finding.GroupSummary, urgent bool) {
	c.begun = nil
	for i := range g.Streams {
		s := &g.Streams[i]
		if (s.State == finding.Drift || s.State == finding.TelemetryFault) != urgent {
			continue
		}
		if urgent || c.hasRoom() {
			c.emit(g, c.streamSeries(s), urgent)
		}
	}
	if !urgent && c.hasRoom() {
		c.emit(g, c.groupSeries(g), false)
	}
}

// hasRoom reports whether more series that are not urgent may be exported, and counts a hit of the limit if not.
func (c *scrape) hasRoom() bool {
	if c.room <= 0 {
		c.limitHits.Add(1)
	}
	return c.room > 0
}

// emit exports series of a group if there is room or if they are urgent.
func (c *scrape) emit(g *finding.GroupSummary, all []series, urgent bool) {
	if !urgent && len(all) > c.room {
		c.limitHits.Add(1)
		c.room = 0
		return
	}
	c.room -= len(all)
	if c.begun != g { // most groups of a large fleet have no series in most passes
		c.out.begin(g)
		c.begun = g
	}
	for i := range all {
		c.out.add(&all[i])
	}
}

// samples is the output to a registry.
type samples struct {
	*Collector
	pairs  pairs
	shared []*dto.LabelPair // the labels of the policy and the group, which all of the group's series share
	out    chan<- prometheus.Metric
}

func (o *samples) begin(g *finding.GroupSummary) {
	group := g.Group.Map()
	o.shared = []*dto.LabelPair{{Name: proto.String("policy"), Value: proto.String(g.Group.Policy)}}
	for _, name := range o.groupLabels {
		o.shared = append(o.shared, &dto.LabelPair{Name: proto.String(name), Value: proto.String(group[name])})
	}
}

func (o *samples) add(s *series) {
	f := o.families[s.name]
	o.out <- &sample{f.desc, s.kind, s.value, o.pairs.join(o.shared, f.labels, s.labels)}
}

// series is one sample to export; its labels do not include those of the policy and the group.
type series struct {
	name   string
	kind   prometheus.ValueType
	value  float64
	labels []string
}

func gauge(name string, value float64, labels ...string) series {
	return series{name, prometheus.GaugeValue, value, labels}
}

func counter(name string, value float64, labels ...string) series {
	return series{name, prometheus.CounterValue, value, labels}
}

func (c *Collector) groupSeries(g *finding.GroupSummary) []series {
	all := []series{
		counter(MetricUnits, float64(g.Units)),
		counter(MetricUnitsIgnored, float64(g.Lineage.Ignored)),
		counter(MetricRewardPositive, g.Positive),
		counter(MetricRewardNegative, g.Negative),
		counter(MetricRewardObservations, float64(g.Rewards)),
		gauge(MetricVersionInfo, 1, g.Versions.Policy, g.Versions.Env, g.Versions.Reward),
	}
	if g.Unfinished.Now.Ended > 0 {
		all = append(all, gauge(MetricUnfinished, g.Unfinished.Usual.Share(), "baseline"), gauge(MetricUnfinished, g.Unfinished.Now.Share(), "current"))
	}
	if g.VersionsTS != 0 {
		all = append(all, gauge(MetricVersionSince, float64(g.VersionsTS)/float64(time.Second), g.Versions.Policy, g.Versions.Env, g.Versions.Reward))
	}
	if g.Baseline.ID != "" {
		all = append(all,
			gauge(MetricBaselineInfo, 1, g.Baseline.ID),
			gauge(MetricBaselineAge, c.now().Sub(g.FrozenAt).Seconds()),
			gauge(MetricBaselineUnits, float64(g.Baseline.Units)),
			gauge(MetricFalseAlarmUnits, g.Promise.N))
		all = append(all, promiseSeries(&g.Promise)...)
	}
	for _, a := range g.ActionShare {
		if g.Baseline.ID != "" {
			all = append(all, gauge(MetricActionRatio, a.Baseline, a.Action, "baseline"))
		}
		all = append(all, gauge(MetricActionRatio, a.Current, a.Action, "current"))
	}
	all = append(all, actionMixSeries(&g.ActionMix)...)
	return append(all, offPolicySeries(g.OffPolicy)...)
}

// offPolicySeries returns the off-policy estimate; without support, only the figures that show how much is missing.
func offPolicySeries(o *finding.OffPolicy) []series {
	if o == nil {
		return nil
	}
	all := []series{
		gauge(MetricOffPolicyActual, o.Actual), gauge(MetricOffPolicyEffective, o.Effective), gauge(MetricOffPolicyWeight, o.MeanWeight),
	}
	if !o.Known() {
		return all
	}
	return append(all,
		gauge(MetricOffPolicyValue, o.Value, o.Reference, "estimate"),
		gauge(MetricOffPolicyValue, o.Low, o.Reference, "low"),
		gauge(MetricOffPolicyValue, o.High, o.Reference, "high"))
}

func actionMixSeries(m *finding.ActionMix) []series {
	var all []series
	if m.BaselineActions > 0 {
		all = append(all, gauge(MetricActionEntropy, m.BaselineEntropy, "baseline"))
	}
	if m.CurrentActions > 0 {
		all = append(all, gauge(MetricActionEntropy, m.CurrentEntropy, "current"))
	}
	for _, d := range m.Divergences {
		all = append(all,
			gauge(MetricActionDivergence, d.Value, d.Measure),
			gauge(MetricActionChance, d.Chance95, d.Measure))
	}
	return all
}

// promiseSeries returns the calibrated figures, or only the confidence if no detector is armed.
func promiseSeries(p *finding.Promise) []series {
	var all []series
	if p.Confidence != "" {
		all = append(all, gauge(MetricPromise, 1, p.Confidence, p.Weakest))
	}
	if p.Overlap != 0 {
		all = append(all, gauge(MetricOverlap, p.Overlap))
	}
	if p.Allowance == 0 {
		return all
	}
	return append(all,
		gauge(MetricAllowance, p.Allowance),
		gauge(MetricExpectedUnits, p.Low, "0.1"),
		gauge(MetricExpectedUnits, p.ARL0, "0.5"),
		gauge(MetricExpectedUnits, p.High, "0.9"))
}

func (c *Collector) streamSeries(s *finding.StreamSummary) []series {
	all := []series{gauge(MetricStreamState, float64(s.State), s.Signal)}
	if s.State == finding.TelemetryFault {
		all = append(all, gauge(MetricStreamFault, 1, s.Signal, s.Fault))
	}
	all = append(all, distributionSeries(s.Signal, "baseline", &s.Baseline, true)...)
	all = append(all, distributionSeries(s.Signal, "current", &s.Current, s.Baseline.Units > 0)...)
	if s.Baseline.Units > 0 {
		all = append(all, gauge(MetricEffectSize, s.Effect, s.Signal))
	}
	if s.Factor > 0 {
		all = append(all,
			gauge(MetricDependenceFactor, s.Factor, s.Signal),
			gauge(MetricBranches, float64(s.Branches), s.Signal, "armed"),
			gauge(MetricBranches, float64(len(s.Dropped)), s.Signal, "dropped"))
	}
	if p := s.Progress; p != nil {
		all = append(all, gauge(MetricProgress, float64(p.State), s.Signal), gauge(MetricProgressChange, p.Low, s.Signal, "low"),
			gauge(MetricProgressChange, p.Change, s.Signal, "estimate"), gauge(MetricProgressChange, p.High, s.Signal, "high"))
	}
	for _, d := range s.Detectors {
		all = append(all, gauge(MetricDetectorStatistic, d.Statistic, s.Signal, d.Detector))
		if d.Threshold > 0 {
			all = append(all,
				gauge(MetricDetectorScore, d.Score, s.Signal, d.Detector),
				gauge(MetricDetectorThreshold, d.Threshold, s.Signal, d.Detector))
		}
		if d.Gauge != nil {
			all = append(all,
				counter(MetricComparisonAlarms, float64(d.Gauge.Drifts), s.Signal, d.Detector),
				gauge(MetricComparisonARL0, d.Gauge.ARL0, s.Signal, d.Detector))
		}
	}
	return all
}

func distributionSeries(signal, sample string, d *finding.Distribution, histogram bool) []series {
	if d.Units == 0 {
		return nil
	}
	all := []series{
		gauge(MetricSignalMean, d.Mean, signal, sample),
		gauge(MetricSignalStddev, d.SD, signal, sample),
		gauge(MetricSignalQuantile, d.Q10, signal, sample, "0.1"),
		gauge(MetricSignalQuantile, d.Q50, signal, sample, "0.5"),
		gauge(MetricSignalQuantile, d.Q90, signal, sample, "0.9"),
	}
	if histogram {
		for bin, share := range d.HistogramRatio {
			all = append(all, gauge(MetricSignalDecile, share, signal, sample, strconv.Itoa(bin)))
		}
	}
	return all
}
