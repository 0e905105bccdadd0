package main

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

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// calibrateOptions are the flags of calibrate.
type calibrateOptions struct {
	config, policy string
	seconds        float64
	seed           uint64
}

func newCalibrateCommand(c *console) *cobra.Command {
	var o calibrateOptions
	cmd := &cobra.Command{
		Use:   "calibrate [flags] FILE...",
		Short: "Measure false alarms and detection delay on your own telemetry",
		Long: "Reads NDJSON and Stable-Baselines3 monitor.csv files (plain, gzip, zstd; - is the standard input), freezes the\n" +
			"baseline of each policy and group as configured, and measures on units drawn from the telemetry how often false\n" +
			"alarms come and how soon changes are found.\n" +
			"Exits with 1 where a budget of false alarms cannot be kept, and with 2 where nothing can be calibrated.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error { return runCalibrate(cmd.Context(), c, o, files) },
	}
	cmd.Flags().StringVar(&o.config, "config", "", "configuration file; the defaults hold without one")
	cmd.Flags().StringVar(&o.policy, "policy", "", "policy of the rows of monitor.csv files, instead of their env_id")
	cmd.Flags().Float64Var(&o.seconds, "seconds", 20, "about how long to measure each policy; more is more exact")
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "where the random numbers start; the same one gives the same figures")
	return cmd
}

// errNotKept ends a calibration that found a budget which cannot be kept: exit 1, and nothing more to say.
var errNotKept = errors.New("a budget of false alarms cannot be kept")

func runCalibrate(ctx context.Context, c *console, o calibrateOptions, files []string) error {
	if !(o.seconds > 0) {
		return errors.New("--seconds must be greater than 0")
	}
	cfg, err := LoadConfig(o.config)
	if err != nil {
		return err
	}
	bar := newProgress(c)
	defer bar.clear()
	r := newCalibration(cfg, c, fileRanges(ingest.FilesConfig{Policy: o.policy}, files))
	if err := r.recorded.readAll(ctx, nil); err != nil {
		return err
	}
	counts, err := ingest.ReadFiles(ctx, ingest.FilesConfig{
		Policy: o.policy, Stdin: c.in, Refuse: r.refusals.refuse, Progress: func(done, total int64) {
			bar.reading("Reading", r.events, done, total)
		},
	}, files, r)
	switch {
	case err != nil:
		return err
	case counts.Accepted == 0:
		return errNoEvent
	}
	return r.report(ctx, o, counts, bar)
}

// mostKept is how many units of a group are kept, before its baseline is frozen and after it: the newest and the first.
// Where no episode ends, they are the smallest blocks.
const mostKept = 20_000

// calibration is a processor that keeps the units of every group: those of its baseline, and the healthy ones after it.
type calibration struct {
	cfg          *Config
	console      *console
	refusals     *refusals
	episodes     *assemble.Assembler
	recorded     *recordings
	limit        *bank.StreamLimit
	calibrations *bank.Calibrations
	policies     map[string]*calibratedPolicy // nil where a policy is not watched
	order        []*calibratedPolicy
	events       int64
	units        int64
	failed       error
}

// calibratedPolicy is a policy whose bank judges the units as the service would.
type calibratedPolicy struct {
	name    string
	cfg     bank.Config
	bank    *bank.Policy
	learned []*ingest.Unit // of the recording that the baseline is from, where it is from one
	groups  map[ingest.Group]*calibratedGroup
	order   []*calibratedGroup
}

// calibratedGroup is a group and its units.
type calibratedGroup struct {
	key       ingest.Group
	units     int64
	accepted  string          // id of its baseline, "" before there is one
	recorded  bool            // the baseline is from a recording
	recording map[unitKey]int // its units, which the telemetry may hold too: they are not held out
	recent    []*ingest.Unit  // those that the next baseline may be taken from
	baseline  []*ingest.Unit  // those that the baseline was taken from, with others before them
	heldOut   []*ingest.Unit  // healthy ones that came after it
	leftOut   int64           // units after it that were not healthy
	incidents int64           // after the baseline
	open      bool            // an incident
}

func newCalibration(cfg *Config, c *console, pinned rangeReader) *calibration {
	return &calibration{
		cfg: cfg, console: c, refusals: &refusals{console: c},
		episodes: newAssembler(cfg, assemble.NewMetrics(unregistered{})), recorded: newRecordings(cfg, pinned),
		limit: bank.NewStreamLimit(cfg.Limits.Streams), calibrations: bank.NewCalibrations(),
		policies: map[string]*calibratedPolicy{},
	}
}

// Process implements ingest.Processor.
func (r *calibration) Process(ctx context.Context, batch []ingest.Event) error {
	r.events += int64(len(batch))
	for i := range batch {
		r.episodes.Fold(&batch[i], func(u *ingest.Unit) {
			if r.failed == nil {
				r.failed = r.observe(ctx, u)
			}
		})
	}
	return r.failed
}

func (r *calibration) observe(ctx context.Context, u *ingest.Unit) error {
	r.units++
	p, err := r.policy(ctx, u.Group.Policy)
	if p == nil || err != nil || u.Shadow {
		return err
	}
	p.observe(u)
	return nil
}

// policy finds a policy, or starts it; nil where it is not watched.
func (r *calibration) policy(ctx context.Context, name string) (*calibratedPolicy, error) {
	if p, known := r.policies[name]; known {
		return p, nil
	}
	cfg, watched := r.cfg.policy(name)
	if !watched {
		r.policies[name] = nil
		return nil, nil
	}
	p := &calibratedPolicy{
		name: name, cfg: cfg, bank: bank.NewPolicy(name, cfg, r.limit), groups: map[ingest.Group]*calibratedGroup{},
	}
	p.bank.Share(r.calibrations)
	if err := r.recorded.teach(ctx, p.bank, name, cfg); err != nil {
		return nil, err
	}
	if cfg.Baseline.From != bank.FromWarmup {
		units, err := r.recorded.units(ctx, cfg.Baseline)
		if err != nil {
			return nil, err
		}
		p.learned = units[name]
	}
	r.policies[name] = p
	r.order = append(r.order, p)
	return p, nil
}

// group finds a group, or starts it.
func (p *calibratedPolicy) group(key ingest.Group) *calibratedGroup {
	if g := p.groups[key]; g != nil {
		return g
	}
	g := &calibratedGroup{key: key, accepted: p.bank.Accepted(key), recorded: p.cfg.Baseline.From != bank.FromWarmup}
	if g.recorded {
		g.baseline = p.recordedBaseline(key)
		g.recording = keysOf(g.baseline)
	}
	p.groups[key] = g
	p.order = append(p.order, g)
	return g
}

// recordedBaseline gives the units of the recording that the baseline of a group was taken from: as many of the first as it
// has, or those that its blocks were made of.
func (p *calibratedPolicy) recordedBaseline(key ingest.Group) []*ingest.Unit {
	var units []*ingest.Unit
	for _, u := range p.learned {
		if u.Group == key && len(units) < mostKept {
			units = append(units, u)
		}
	}
	if len(units) == 0 {
		return nil
	}
	size := p.bank.Group(key).Baseline.Units
	return units[:sort.Search(len(units), func(n int) bool { return len(p.bank.Whole(key, units[:n])) >= size })]
}

// unitKey is all that tells a unit of a recording from others, but for where it stands: the recording may be a file of its
// own that was cut out of the telemetry. Returns and rewards are bits, as NaN equals nothing.
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

// inBaseline reports whether the baseline was taken from a unit. Each of its units is found once.
func (g *calibratedGroup) inBaseline(u *ingest.Unit) bool {
	key := keyOf(u)
	if g.recording[key] == 0 {
		return false
	}
	g.recording[key]--
	return true
}

// observe judges a unit, and keeps it for the baseline or, where it is a measure of false alarms, as one that came after.
func (p *calibratedPolicy) observe(u *ingest.Unit) {
	g := p.group(u.Group)
	g.units++
	if g.accepted != "" && !p.follows() && len(g.heldOut) >= mostKept {
		return
	}
	found := p.bank.Observe(u, time.Unix(0, u.EndTS))
	if id := p.bank.Accepted(u.Group); id != g.accepted {
		g.begin(id, append(g.recent, u), p.follows())
		return
	}
	if g.accepted == "" || p.follows() {
		g.keep(u)
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

// follows reports whether a new version may bring a new baseline.
func (p *calibratedPolicy) follows() bool { return p.cfg.OnNewVersion == bank.OnNewVersionRebaseline }

// keep remembers a unit that the next baseline may be taken from.
func (g *calibratedGroup) keep(u *ingest.Unit) {
	if g.recent = append(g.recent, u); len(g.recent) > 2*mostKept {
		g.recent = slices.Clone(g.recent[mostKept:])
	}
}

// begin starts again with a baseline that was frozen with the last of the units; by version, it was taken from those of
// the same one alone.
func (g *calibratedGroup) begin(id string, units []*ingest.Unit, byVersion bool) {
	if version := units[len(units)-1].Versions.Policy; byVersion {
		units = slices.DeleteFunc(units, func(u *ingest.Unit) bool { return u.Versions.Policy != version })
	}
	g.accepted, g.recorded, g.recording, g.baseline, g.recent = id, false, nil, units, nil
	g.heldOut, g.leftOut, g.incidents, g.open = nil, 0, 0, false
}

// apply leaves out the units since the onset of a drift: until its incident ends they are no measure of false alarms.
func (g *calibratedGroup) apply(f bank.Finding) {
	switch {
	case f.Kind == bank.GroupQuiet:
		g.open = false
	case f.Kind == bank.StreamChanged && f.To == bank.Drift && f.From != bank.TelemetryFault:
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

// Snapshot implements ingest.Processor; a calibration keeps no state.
func (r *calibration) Snapshot(io.Writer) error { return nil }

// Restore implements ingest.Processor.
func (r *calibration) Restore(io.Reader) error { return nil }

// report measures every group and prints what was found.
func (r *calibration) report(ctx context.Context, o calibrateOptions, counts ingest.Counts, bar *progress) error {
	sum := newCalibrationSummary(counts, r.units)
	lacking := ""
	switch {
	case r.units == 0:
		lacking = noUnits
	case len(r.order) == 0:
		lacking = "no policy in the telemetry is watched"
	}
	for _, p := range r.order {
		for _, g := range p.order {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("calibrate: %w", err)
			}
			line := p.calibrate(g, o, func(share float64) { bar.show("Measuring "+printable(g.key.String()), share, "") })
			sum.add(line)
			if line.Missing != nil && lacking == "" {
				lacking = g.key.String() + ": " + *line.Missing
			}
			if err := r.console.print(line, func(w io.Writer) error { return calibrationText(w, line) }); err != nil {
				return err
			}
		}
	}
	err := r.console.print(sum, func(w io.Writer) error { return calibrationSummaryText(w, sum) })
	switch {
	case err != nil:
		return err
	case sum.Calibrated == 0:
		return fmt.Errorf("nothing can be calibrated: %s", lacking)
	case !sum.Kept:
		return errNotKept
	}
	return nil
}

// accepted counts the groups that have an accepted baseline.
func (p *calibratedPolicy) accepted() (n int) {
	for _, g := range p.order {
		if g.accepted != "" {
			n++
		}
	}
	return n
}

// calibrate measures one group and says what was found. The time allowed to a policy is that of all its groups.
func (p *calibratedPolicy) calibrate(g *calibratedGroup, o calibrateOptions, progress func(share float64)) calibrationJSON {
	judged := p.bank.Group(g.key)
	line := p.describe(g, judged)
	if g.accepted == "" {
		line.Missing = new(p.missing(g, judged))
		return line
	}
	g.baseline, g.heldOut = p.ofBaseline(g, judged.Baseline.Units), p.bank.Whole(g.key, g.heldOut)
	with := bank.Measuring{
		Units: g.baseline, Seed: o.seed, Seconds: o.seconds / float64(p.accepted()), Progress: progress,
	}
	if len(g.heldOut) >= judged.Baseline.Units {
		with.Units, with.HeldOut = g.heldOut, true
	}
	line.HeldOut = new(len(g.heldOut))
	line.measured(g, with, p.bank.Measure(g.key, with), judged)
	return line
}

// ofBaseline gives the units of a group's baseline: those of its recording, or the last of its warm-up.
func (p *calibratedPolicy) ofBaseline(g *calibratedGroup, units int) []*ingest.Unit {
	all := p.bank.Whole(g.key, g.baseline)
	if g.recorded {
		return all
	}
	return all[max(0, len(all)-units):]
}

// missing says what a group without an accepted baseline lacks.
func (p *calibratedPolicy) missing(g *calibratedGroup, judged bank.GroupSummary) string {
	want := int64(p.cfg.Baseline.Units)
	switch {
	case p.cfg.Baseline.From == bank.FromWarmup && g.units < want:
		return fmt.Sprintf("%d of %d units for a baseline, %d are missing", g.units, want, want-g.units)
	case len(judged.Streams) == 0:
		return "no signal of it is followed"
	}
	for _, s := range judged.Streams {
		if s.Missing != "" {
			return s.Missing
		}
	}
	return fmt.Sprintf("incidents and faults left fewer than %d units for a baseline", want)
}
