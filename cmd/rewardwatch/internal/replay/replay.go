package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/ingest/order"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// replayOptions are the flags of replay.
type replayOptions struct {
	config, compare, scores, report, policy, topic string
}

// NewCommand returns the replay command.
func NewCommand(c *terminal.Console) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay [flags] FILE...",
		Short: "Find drift in recorded telemetry",
		Long: "Prints the alarms and telemetry faults that the service would find in NDJSON, CSV and Stable-Baselines3 monitor.csv files\n" +
			"(uncompressed, gzip or zstd; - for standard input). Files are read in the given order, and files of several topics are merged\n" +
			"by time. Does not send alerts or retrain requests.\n" +
			"With --compare, also prints the alarms that a second configuration would add, remove or move.\n" +
			"Exits with 1 if drift or a telemetry fault is found, and with 2 if there is no valid event. Exits with 0 if\nall alarms are improvements.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			return runReplay(cmd.Context(), c, o, files)
		},
	}
	cmd.Flags().StringVar(&o.config, "config", "", "configuration file; the defaults apply if not set")
	cmd.Flags().StringVar(&o.compare, "compare", "", "second configuration file, to compare its alarms with those of --config")
	cmd.Flags().StringVar(&o.scores, "scores", "", "output file for scores: one line per episode (or block of steps), stream and detector")
	cmd.Flags().StringVar(&o.report, "report", "", "output file for a self-contained HTML report with plots")
	cmd.Flags().StringVar(&o.topic, "topic", "", "topic whose format and mapping apply to the files; required if the configuration has more than one topic")
	cmd.Flags().StringVar(&o.policy, "policy", "", "policy to assign to the rows of monitor.csv files, instead of env_id")
	return cmd
}

func runReplay(ctx context.Context, c *terminal.Console, o replayOptions, files []string) error {
	cfg, err := config.Load(o.config)
	if err != nil {
		return err
	}
	read, err := cfg.Ingest.Files(o.topic, files)
	if err != nil {
		return err
	}
	read.Policy = o.policy
	r := newReplay(cfg, c, engine.FileRanges(read, files))
	if len(read.Topics) > 0 {
		r.topics = cfg.Ingest.Kafka.Names()
	}
	if err := r.recorded.ReadAll(ctx, nil); err != nil {
		return err
	}
	if err := r.compareWith(ctx, o.compare); err != nil {
		return err
	}
	if o.scores != "" {
		if r.scores, err = newScoresFile(o.scores); err != nil {
			return err
		}
	}
	if o.report != "" {
		if _, err := os.Stat(filepath.Dir(o.report)); err != nil { // reported now, not after hours of reading
			return fmt.Errorf("write the report: %w", err)
		}
		r.courses = plots.Courses{}
	}
	bar := terminal.NewProgress(c)
	defer bar.Clear()
	read.Stdin, read.Refuse = c.In, r.refusals.Refuse
	read.Progress = func(done, total int64) { bar.Reading("Replaying", r.events, done, total) }
	counts, err := recording.ReadFiles(ctx, read, files, r)
	if err != nil && counts.Read == 0 { // a summary would look like a result
		return err
	}
	if err := errors.Join(err, r.finish(o, files, counts)); err != nil {
		return err
	}
	switch {
	case counts.Accepted == 0:
		return terminal.ErrNoEvent
	case r.found:
		return terminal.ErrDriftFound
	}
	return nil
}

// replay is a processor that turns events into units, and the same workers as the service. It is large because it is a
// whole service in one goroutine.
type replay struct {
	cfg      *config.Config
	console  *terminal.Console
	topics   []string             // topics of the files, by index, if there are several
	registry *prometheus.Registry // for the metrics of the first stage
	intake   *engine.Intake
	recorded *engine.Recordings
	limit    *capacity.StreamLimit
	known    *budget.Calibrations
	workers  map[string]*engine.Worker
	order    []*engine.Worker
	scores   *scoresFile   // nil without --scores
	courses  plots.Courses // nil without --report
	events   int64
	units    int64
	blocks   int64 // number of blocks among the units
	refusals *terminal.Refusals
	seen     map[ingest.Group]int64 // number of units
	log      *alarmLog              // nil if nothing is compared
	other    *replay                // replay of the same events with another configuration; it prints nothing
	compared string                 // the file of that configuration
	faults   *faultLog
	alarmed  []alarmedSignal
	found    bool // a drift that is not an improvement, or a telemetry fault
	failed   error
}

func newReplay(cfg *config.Config, c *terminal.Console, pinned engine.RangeReader) *replay {
	registry := prometheus.NewRegistry()
	return &replay{
		cfg: cfg, console: c, registry: registry, intake: engine.NewIntake(cfg.Settings(), engine.NewIntakeMetrics(registry)),
		recorded: engine.NewRecordings(cfg.Settings(), pinned), limit: capacity.NewStreamLimit(cfg.Limits.Streams), workers: map[string]*engine.Worker{},
		refusals: &terminal.Refusals{Console: c}, known: budget.NewCalibrations(), seen: map[ingest.Group]int64{},
		faults: newFaultLog(),
	}
}

// Process implements ingest.Processor.
func (r *replay) Process(ctx context.Context, batch []ingest.Event) error {
	r.events += int64(len(batch))
	now := order.Believed(time.Now())
	for i := range batch {
		r.intake.Fold(&batch[i], now, func(u *ingest.Unit) {
			if r.failed == nil {
				r.failed = r.observe(ctx, u)
			}
		})
	}
	if r.other != nil && r.failed == nil {
		r.failed = r.other.Process(ctx, batch)
	}
	return r.failed
}

// count counts a unit, unless it is a step of an open episode, which only guards judge.
func (r *replay) count(u *ingest.Unit) {
	switch u.End {
	case ingest.EndOpen:
		return
	case ingest.EndBlock:
		r.blocks++
	}
	r.units++
	r.seen[u.Group]++
}

func (r *replay) observe(ctx context.Context, u *ingest.Unit) error {
	r.count(u)
	d, err := r.worker(ctx, u.Group.Policy)
	if d == nil || err != nil {
		return err
	}
	if err := d.Observe(ctx, u, time.Unix(0, u.EndTS)); err != nil {
		return err
	}
	if u.Shadow || u.End == ingest.EndOpen || r.scores == nil && r.courses == nil {
		return nil
	}
	if r.courses != nil {
		r.courses.Observe(d.Policy.Group(u.Group))
	}
	if r.scores == nil {
		return nil
	}
	for _, line := range scoreLines(u.Pos.Offset, d.Policy.Group(u.Group)) {
		if err := terminal.WriteLine(r.scores, line); err != nil {
			return fmt.Errorf("write scores: %w", err)
		}
	}
	return nil
}

// worker returns the worker of a policy, and creates it if necessary. It returns nil if the policy is not watched.
func (r *replay) worker(ctx context.Context, policy string) (*engine.Worker, error) {
	if d, known := r.workers[policy]; known {
		return d, nil
	}
	cfg, watched := r.cfg.Settings().Policy(policy)
	if !watched {
		r.workers[policy] = nil
		return nil, nil
	}
	d := engine.NewWorker(policy, cfg, r.limit, r)
	d.NameTopics(r.topics)
	d.Policy.Share(r.known)
	if err := r.recorded.Teach(ctx, d.Policy, policy, cfg); err != nil {
		return nil, err
	}
	r.workers[policy] = d
	r.order = append(r.order, d)
	return d, nil
}

// Changed implements effects. It prints the changes on which the service would act.
func (r *replay) Changed(_ context.Context, changes []alerts.Change) error {
	for _, change := range changes {
		a := change.Alarm
		if a == nil || !change.Fired && !a.Resolved {
			continue
		}
		r.found = r.found || !a.Improvement
		r.log.add(*a, r.seen[a.Group])
		if on := (alarmedSignal{a.Group, a.Signal}); !slices.Contains(r.alarmed, on) {
			r.alarmed = append(r.alarmed, on)
		}
		if err := r.console.Print(AlarmLine(*a), func(w io.Writer) error { return terminal.AlarmText(w, *a) }); err != nil {
			return err
		}
	}
	return r.tellFaults(changes)
}

// finish writes the summary, even if the input was incomplete.
func (r *replay) finish(o replayOptions, files []string, counts recording.Counts) error {
	var summaries []*finding.Summary
	var incidents []alerts.Incident
	for _, d := range r.order {
		d.Publish()
		summaries = append(summaries, d.Policy.Summary())
		incidents = append(incidents, d.Shown.Load().Incidents...)
	}
	line := SummaryLine(counts, r.units, summaries, incidents, r.faults.counts)
	line.why, line.unit = engine.NothingJudged(r.intake), r.unitName()
	err := errors.Join(r.conclude(), r.writeReport(o, files, counts, summaries, incidents))
	err = errors.Join(err, r.tellHistories(summaries))
	err = errors.Join(err, r.console.Print(line, func(w io.Writer) error { return summaryText(w, line) }), r.tellIgnored())
	if r.scores != nil {
		err = errors.Join(err, r.scores.finish())
	}
	return err
}

// alarmedSignal is a signal of a group that has had an alarm.
type alarmedSignal struct {
	group  ingest.Group
	signal string
}

// tellHistories prints the histories of signals with alarms, only as JSON, for explain to draw.
func (r *replay) tellHistories(summaries []*finding.Summary) error {
	if r.console.Output != terminal.OutputJSON {
		return nil
	}
	for _, a := range r.alarmed {
		g := groupOf(summaries, a.group)
		if g == nil {
			continue
		}
		past := r.past(a.group)
		if err := r.console.Print(HistoryRecord{"history", wire.HistoryOf(g, a.signal, &past)}, nil); err != nil {
			return err
		}
	}
	return nil
}

// groupOf returns the summary of a group, or nil if there is none.
func groupOf(summaries []*finding.Summary, group ingest.Group) *finding.GroupSummary {
	for _, s := range summaries {
		for i := range s.Groups {
			if s.Groups[i].Group == group {
				return &s.Groups[i]
			}
		}
	}
	return nil
}

// unitName returns the name of the replayed units.
func (r *replay) unitName() finding.UnitName {
	return finding.CountedUnit(r.units, r.blocks, assemble.BlockSteps)
}

// tellIgnored prints which accepted records belong to no unit, and why.
func (r *replay) tellIgnored() error {
	families, err := r.registry.Gather()
	if err != nil {
		return fmt.Errorf("count ignored records: %w", err)
	}
	for _, f := range families {
		if f.GetName() != assemble.MetricEventsIgnored {
			continue
		}
		for _, m := range f.GetMetric() {
			if n := m.GetCounter().GetValue(); n > 0 {
				r.console.Tell("rewardwatch: ignored %.0f records: %s", n, m.GetLabel()[0].GetValue())
			}
		}
	}
	return nil
}

// Idle implements ingest.Processor.
func (r *replay) Idle(context.Context, time.Time) error { return nil }

// Snapshot implements ingest.Processor. A replay keeps no state.
func (r *replay) Snapshot(io.Writer) error { return nil }

// Restore implements ingest.Processor.
func (r *replay) Restore(io.Reader) error { return nil }
