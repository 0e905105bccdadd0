// Package calibrate measures false alarms and detection delays on recorded telemetry.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/measure"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// calibrateOptions are the flags of calibrate.
type calibrateOptions struct {
	config, policy, topic string
	seconds               float64
	seed                  uint64
}

// NewCommand returns the calibrate command.
func NewCommand(c *terminal.Console) *cobra.Command {
	var o calibrateOptions
	cmd := &cobra.Command{
		Use:   "calibrate [flags] FILE...",
		Short: "Measure false alarms and detection delays on your own telemetry",
		Long: "Reads NDJSON, CSV and Stable-Baselines3 monitor.csv files (plain, gzip or zstd; - for standard input). Freezes the\n" +
			"baseline of each policy and group as configured. Then measures how often false alarms occur and how quickly changes\n" +
			"are detected, on episodes (or blocks of steps) drawn from the telemetry.\n" +
			"Exits with 1 if a false alarm budget cannot be met, and with 2 if there is nothing to calibrate.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error { return runCalibrate(cmd.Context(), c, o, files) },
	}
	cmd.Flags().StringVar(&o.config, "config", "", "configuration file; the defaults apply if not set")
	cmd.Flags().StringVar(&o.topic, "topic", "", "topic whose format and mapping apply to the files; required if the configuration has more than one topic")
	cmd.Flags().StringVar(&o.policy, "policy", "", "policy to assign to the rows of monitor.csv files, instead of env_id")
	cmd.Flags().Float64Var(&o.seconds, "seconds", 20, "approximate time to spend on each policy; more time yields more accurate results")
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "random seed; the same seed yields the same results")
	return cmd
}

// ErrNotKept ends a calibration that found a budget that cannot be met: exit status 1, with no further message.
var ErrNotKept = errors.New("a false alarm budget cannot be met")

func runCalibrate(ctx context.Context, c *terminal.Console, o calibrateOptions, files []string) error {
	if !(o.seconds > 0) {
		return errors.New("--seconds must be greater than 0")
	}
	cfg, err := config.Load(o.config)
	if err != nil {
		return err
	}
	read, err := cfg.Ingest.Files(o.topic, files)
	if err != nil {
		return err
	}
	read.Policy = o.policy
	bar := terminal.NewProgress(c)
	defer bar.Clear()
	r := newCalibration(cfg, c, engine.FileRanges(read, files))
	if err := r.recorded.ReadAll(ctx, nil); err != nil {
		return err
	}
	read.Stdin, read.Refuse = c.In, r.refusals.Refuse
	read.Progress = func(done, total int64) { bar.Reading("Reading", r.events, done, total) }
	counts, err := recording.ReadFiles(ctx, read, files, r)
	switch {
	case err != nil:
		return err
	case counts.Accepted == 0:
		return terminal.ErrNoEvent
	}
	return r.report(ctx, o, counts, bar)
}

// mostKept is the number of units that are kept per group: the newest before its baseline is frozen, and the first
// after it. If no episode ends, these units are the smallest blocks; decisions are joined to blocks when there are too
// many.
const mostKept = 20_000

// calibration is a processor that keeps the units of every group: those of its baseline, and the healthy ones after
// it.
type calibration struct {
	cfg          *config.Config
	console      *terminal.Console
	refusals     *terminal.Refusals
	intake       *engine.Intake
	recorded     *engine.Recordings
	limit        *capacity.StreamLimit
	calibrations *budget.Calibrations
	policies     map[string]*calibratedPolicy // nil for a policy that is not watched
	order        []*calibratedPolicy
	events       int64
	units        int64
	blocks       int64 // number of blocks among the units
	failed       error
}

// calibratedPolicy is a policy whose bank judges the units as the service would.
type calibratedPolicy struct {
	name    string
	cfg     watch.Config
	bank    *bank.Policy
	learned []*ingest.Unit // units of the recording that the baseline is from, if any
	judged  *ingest.Unit   // the last unit as the bank judges it: without the levels of raters
	groups  map[ingest.Group]*calibratedGroup
	order   []*calibratedGroup
}

// calibratedGroup is a group and its units.
type calibratedGroup struct {
	key       ingest.Group
	units     int64
	accepted  string          // id of its baseline, "" before there is one
	recorded  bool            // the baseline is from a recording
	recording map[unitKey]int // units of the recording; the telemetry may contain them too, and they are not held out
	recent    []*ingest.Unit  // units that the next baseline may be taken from
	baseline  []*ingest.Unit  // units that the baseline was taken from, and others before them
	heldOut   []*ingest.Unit  // healthy units after the baseline
	leftOut   int64           // units after the baseline that were not healthy
	incidents int64           // after the baseline
	open      bool            // an incident is open
}

func newCalibration(cfg *config.Config, c *terminal.Console, pinned engine.RangeReader) *calibration {
	return &calibration{
		cfg: cfg, console: c, refusals: &terminal.Refusals{Console: c},
		intake: engine.NewIntake(cfg.Settings(), engine.NewIntakeMetrics(engine.Unregistered{})), recorded: engine.NewRecordings(cfg.Settings(), pinned),
		limit: capacity.NewStreamLimit(cfg.Limits.Streams), calibrations: budget.NewCalibrations(),
		policies: map[string]*calibratedPolicy{},
	}
}

// Process implements ingest.Processor.
func (r *calibration) Process(ctx context.Context, batch []ingest.Event) error {
	r.events += int64(len(batch))
	now := order.Believed(time.Now())
	for i := range batch {
		r.intake.Fold(&batch[i], now, func(u *ingest.Unit) {
			if r.failed == nil {
				r.failed = r.observe(ctx, u)
			}
		})
	}
	return r.failed
}

func (r *calibration) observe(ctx context.Context, u *ingest.Unit) error {
	if u.End == ingest.EndOpen {
		return nil
	}
	r.units++
	if u.End == ingest.EndBlock {
		r.blocks++
	}
	p, err := r.policy(ctx, u.Group.Policy)
	if p == nil || err != nil || u.Shadow {
		return err
	}
	p.observe(u)
	return nil
}

// policy returns the policy with a name, and starts it if necessary. It returns nil if the policy is not watched.
func (r *calibration) policy(ctx context.Context, name string) (*calibratedPolicy, error) {
	if p, known := r.policies[name]; known {
		return p, nil
	}
	cfg, watched := r.cfg.Settings().Policy(name)
	if !watched {
		r.policies[name] = nil
		return nil, nil
	}
	p := newCalibratedPolicy(name, cfg, r.limit)
	p.bank.Share(r.calibrations)
	if err := p.learn(ctx, r.recorded); err != nil {
		return nil, err
	}
	r.policies[name] = p
	r.order = append(r.order, p)
	return p, nil
}

func newCalibratedPolicy(name string, cfg watch.Config, limit *capacity.StreamLimit) *calibratedPolicy {
	p := &calibratedPolicy{name: name, cfg: cfg, bank: bank.NewPolicy(name, cfg, limit), groups: map[ingest.Group]*calibratedGroup{}}
	p.bank.Adjusting(p.judges)
	return p
}

func (p *calibratedPolicy) judges(u *ingest.Unit) { p.judged = u }

// learn makes the bank learn the baseline from a recording, if the baseline is from one.
func (p *calibratedPolicy) learn(ctx context.Context, recorded *engine.Recordings) error {
	p.bank.Adjusting(func(u *ingest.Unit) { p.learned = append(p.learned, u) })
	defer p.bank.Adjusting(p.judges)
	return recorded.Teach(ctx, p.bank, p.name, p.cfg)
}

// group returns the group with a key, and starts it if necessary.
func (p *calibratedPolicy) group(key ingest.Group) *calibratedGroup {
	if g := p.groups[key]; g != nil {
		return g
	}
	g := &calibratedGroup{key: key, accepted: p.bank.Accepted(key), recorded: p.cfg.Baseline.From != watch.FromWarmup}
	if g.recorded {
		g.baseline = p.recordedBaseline(g)
		g.recording = keysOf(g.baseline)
	}
	p.groups[key] = g
	p.order = append(p.order, g)
	return g
}

// recordedBaseline returns the units of the recording from which the baseline of a group was taken: the first ones, as
// many as the baseline has or as its blocks were made of.
func (p *calibratedPolicy) recordedBaseline(g *calibratedGroup) []*ingest.Unit {
	var units []*ingest.Unit
	for _, u := range p.learned {
		if u.Group == g.key && len(units) < mostKept {
			units = append(units, u)
		}
	}
	if len(units) == 0 {
		return nil
	}
	size := p.bank.Group(g.key).Baseline.Units
	return units[:sort.Search(len(units), func(n int) bool { return len(p.bank.Whole(g.key, units[:n])) >= size })]
}

// unitKey identifies a unit of a recording by everything but its position: the recording may be a separate file that
// was cut out of the telemetry. Returns and rewards are compared as bits, since NaN does not equal itself.
type unitKey struct {
	agent, episode     string
	start, end, length int64
	result, reward     uint64
}

func keyOf(u *ingest.Unit) unitKey {
	return unitKey{
		u.Agent, u.Episode, u.StartTS, u.EndTS, u.Length, math.Float64bits(u.Return), math.Float64bits(u.Reward.Mean),
	}
}

func keysOf(units []*ingest.Unit) map[unitKey]int {
	keys := map[unitKey]int{}
	for _, u := range units {
		keys[keyOf(u)]++
	}
	return keys
}

// inBaseline reports whether a unit is part of the baseline. It finds each unit of the baseline only once.
func (g *calibratedGroup) inBaseline(u *ingest.Unit) bool {
	key := keyOf(u)
	if g.recording[key] == 0 {
		return false
	}
	g.recording[key]--
	return true
}

// observe judges a unit. It keeps the unit for the baseline or, if the unit counts for the false alarm rate, as held
// out.
func (p *calibratedPolicy) observe(u *ingest.Unit) {
	g := p.group(u.Group)
	g.units++
	if len(g.heldOut) >= mostKept {
		g.heldOut = p.joined(g, g.heldOut)
	}
	if g.accepted != "" && !p.follows() && len(g.heldOut) >= mostKept {
		return
	}
	p.judged = u // for units that the bank ignores because it has no room
	found := p.bank.Observe(u, time.Unix(0, u.EndTS))
	u = p.judged
	if id := p.bank.Accepted(u.Group); id != g.accepted {
		g.begin(id, append(g.recent, u), p.follows())
		return
	}
	if g.accepted == "" || p.follows() {
		p.keep(g, u)
	}
	if g.accepted == "" || g.inBaseline(u) {
		return
	}
	switch {
	case !p.bank.Healthy(u):
		g.leftOut++
	case len(g.heldOut) < mostKept:
		g.heldOut = append(g.heldOut, u)
	}
	for _, f := range found {
		g.apply(f)
	}
}

// follows reports whether a new version can start a new baseline.
func (p *calibratedPolicy) follows() bool { return p.cfg.OnNewVersion == watch.OnNewVersionRebaseline }

// keep stores a unit that the next baseline may be taken from.
func (p *calibratedPolicy) keep(g *calibratedGroup, u *ingest.Unit) {
	if g.recent = append(g.recent, u); len(g.recent) <= 2*mostKept {
		return
	}
	if g.recent = p.joined(g, g.recent); len(g.recent) > mostKept {
		g.recent = slices.Clone(g.recent[len(g.recent)-mostKept:])
	}
}

// joined returns the units with decisions joined to blocks, if the group judges such blocks.
func (p *calibratedPolicy) joined(g *calibratedGroup, units []*ingest.Unit) []*ingest.Unit {
	if joined := p.bank.Whole(g.key, units); len(joined) > 0 && joined[0].Decisions != nil {
		return joined
	}
	return units
}

// begin starts over with a baseline that was frozen at the last of units. If byVersion is set, the baseline contains
// only units of that unit's version.
func (g *calibratedGroup) begin(id string, units []*ingest.Unit, byVersion bool) {
	if version := units[len(units)-1].Versions.Policy; byVersion {
		units = slices.DeleteFunc(units, func(u *ingest.Unit) bool { return u.Versions.Policy != version })
	}
	g.accepted, g.recorded, g.recording, g.baseline, g.recent = id, false, nil, units, nil
	g.heldOut, g.leftOut, g.incidents, g.open = nil, 0, 0, false
}

// apply leaves out the units since the onset of a drift: until its incident ends they do not count for the false
// alarm rate.
func (g *calibratedGroup) apply(f finding.Finding) {
	switch {
	case f.Kind == finding.GroupQuiet:
		g.open = false
	case f.Kind == finding.StreamChanged && f.To == finding.Drift && f.From != finding.TelemetryFault:
		if !g.open {
			g.open = true
			g.incidents++
		}
		healthy := len(g.heldOut)
		for healthy > 0 && !g.heldOut[healthy-1].Pos.Before(f.OnsetFrom.Pos) {
			healthy--
		}
		g.leftOut += int64(len(g.heldOut) - healthy)
		g.heldOut = g.heldOut[:healthy]
	}
}

// Idle implements ingest.Processor.
func (r *calibration) Idle(context.Context, time.Time) error { return nil }

// Snapshot implements ingest.Processor. A calibration keeps no state.
func (r *calibration) Snapshot(io.Writer) error { return nil }

// Restore implements ingest.Processor.
func (r *calibration) Restore(io.Reader) error { return nil }

// report measures every group and prints the results.
func (r *calibration) report(ctx context.Context, o calibrateOptions, counts recording.Counts, bar *terminal.Progress) error {
	sum := newCalibrationSummary(counts, r.units, r.blocks)
	lacking := ""
	if r.units == 0 {
		lacking = engine.NothingJudged(r.intake)
	}
	for _, p := range r.order {
		for _, g := range p.order {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("calibrate: %w", err)
			}
			line := p.calibrate(g, o, func(share float64) { bar.Show("Measuring "+terminal.Printable(g.key.String()), share, "") })
			sum.add(line)
			if line.Missing != nil && lacking == "" {
				lacking = g.key.String() + ": " + *line.Missing
			}
			if err := r.console.Print(line, func(w io.Writer) error { return calibrationText(w, line) }); err != nil {
				return err
			}
		}
	}
	err := r.console.Print(sum, func(w io.Writer) error { return calibrationSummaryText(w, sum) })
	switch {
	case err != nil:
		return err
	case sum.Calibrated == 0:
		return fmt.Errorf("nothing to calibrate: %s", lacking)
	case !sum.Kept:
		return ErrNotKept
	}
	return nil
}

// accepted returns the number of groups with an accepted baseline.
func (p *calibratedPolicy) accepted() (n int) {
	for _, g := range p.order {
		if g.accepted != "" {
			n++
		}
	}
	return n
}

// calibrate measures one group and returns the result. All groups of a policy share the time allowed for the policy.
func (p *calibratedPolicy) calibrate(g *calibratedGroup, o calibrateOptions, progress func(share float64)) Calibration {
	judged := p.bank.Group(g.key)
	line := p.describe(g, judged)
	if g.accepted == "" {
		line.Missing = new(p.missing(g, judged))
		return line
	}
	g.baseline, g.heldOut = p.ofBaseline(g, judged.Baseline.Units), p.bank.Whole(g.key, g.heldOut)
	with := measure.Measuring{
		Units: g.baseline, Seed: o.seed, Seconds: o.seconds / float64(p.accepted()), Progress: progress,
	}
	if len(g.heldOut) >= judged.Baseline.Units {
		with.Units, with.HeldOut = g.heldOut, true
	}
	line.HeldOut = new(len(g.heldOut))
	line.measured(g, with, measure.Measure(p.bank.Armed(g.key), with), judged)
	return line
}

// ofBaseline returns the units of a group's baseline: all units of its recording, or the last units of its warm-up.
func (p *calibratedPolicy) ofBaseline(g *calibratedGroup, units int) []*ingest.Unit {
	all := p.bank.Whole(g.key, g.baseline)
	if g.recorded {
		return all
	}
	return all[max(0, len(all)-units):]
}

// missing returns what a group needs for an accepted baseline.
func (p *calibratedPolicy) missing(g *calibratedGroup, judged finding.GroupSummary) string {
	want := int64(p.cfg.Baseline.Units)
	switch {
	case p.cfg.Baseline.From == watch.FromWarmup && g.units < want:
		return fmt.Sprintf("%d of %d %s for a baseline, %d missing", g.units, want, judged.UnitName().Many(), want-g.units)
	case len(judged.Streams) == 0:
		return "none of the signals is monitored"
	}
	for _, s := range judged.Streams {
		if s.Missing != "" {
			return s.Missing
		}
	}
	return fmt.Sprintf("incidents and faults leave fewer than %s, which is not enough for a baseline", judged.UnitName().Count(want))
}
