package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/alerts"
	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/console"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// replayOptions are the flags of replay.
type replayOptions struct {
	config, compare, scores, report, policy string
}

func newReplayCommand(c *console) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay [flags] FILE...",
		Short: "Run recorded telemetry through the path of the service",
		Long: "Reads NDJSON and Stable-Baselines3 monitor.csv files (plain, gzip, zstd; - is the standard input) one after\n" +
			"the other and prints the alarms that the service would have raised. Nothing is delivered.\n" +
			"With --compare, prints also which alarms another configuration would add, remove or move.\n" +
			"Exits with 1 where drift was found, and with 2 where no valid event was.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			return runReplay(cmd.Context(), c, o, files)
		},
	}
	cmd.Flags().StringVar(&o.config, "config", "", "configuration file; the defaults hold without one")
	cmd.Flags().StringVar(&o.compare, "compare", "", "another configuration file, whose alarms are compared with those of --config")
	cmd.Flags().StringVar(&o.scores, "scores", "", "file to write a line to for each unit, stream and detector")
	cmd.Flags().StringVar(&o.report, "report", "", "HTML file to write what was found to, with plots; it needs nothing else to be looked at")
	cmd.Flags().StringVar(&o.policy, "policy", "", "policy of the rows of monitor.csv files, instead of their env_id")
	return cmd
}

// errNoEvent ends a replay that found nothing to judge.
var errNoEvent = errors.New("no valid event in the input")

func runReplay(ctx context.Context, c *console, o replayOptions, files []string) error {
	cfg, err := LoadConfig(o.config)
	if err != nil {
		return err
	}
	r := newReplay(cfg, c, fileRanges(ingest.FilesConfig{Policy: o.policy}, files))
	if err := r.recorded.readAll(ctx, nil); err != nil {
		return err
	}
	if err := r.compareWith(ctx, o.compare); err != nil {
		return err
	}
	if o.scores != "" {
		f, err := os.Create(o.scores)
		if err != nil {
			return fmt.Errorf("write scores: %w", err)
		}
		r.scores = bufio.NewWriter(f)
		defer func() { _ = f.Close() }() // what matters was said when it was flushed
	}
	if o.report != "" {
		if _, err := os.Stat(filepath.Dir(o.report)); err != nil { // hours of reading would be lost
			return fmt.Errorf("write the report: %w", err)
		}
		r.courses = pages.Courses{}
	}
	bar := newProgress(c)
	defer bar.clear()
	counts, err := ingest.ReadFiles(ctx, ingest.FilesConfig{
		Policy: o.policy, Stdin: c.in, Refuse: r.refusals.refuse,
		Progress: func(done, total int64) { bar.reading("Replaying", r.events, done, total) },
	}, files, r)
	if err := errors.Join(err, r.finish(o, files, counts)); err != nil {
		return err
	}
	switch {
	case counts.Accepted == 0:
		return errNoEvent
	case r.drifted:
		return errDriftFound
	}
	return nil
}

// replay is the whole path in one goroutine: a processor that folds events into units, and the same desks as the
// service has.
type replay struct {
	cfg      *Config
	console  *console
	registry *prometheus.Registry // of what the assembler counts
	episodes *assemble.Assembler
	recorded *recordings
	limit    *bank.StreamLimit
	known    *bank.Calibrations
	desks    map[string]*desk
	order    []*desk
	scores   *bufio.Writer // nil without --scores
	courses  pages.Courses // nil without --report
	events   int64
	units    int64
	refusals *refusals
	seen     map[ingest.Group]int64 // units
	log      *alarmLog              // nil where nothing is compared
	other    *replay                // of the same events under another configuration; it prints nothing
	compared string                 // the file of that configuration
	drifted  bool
	failed   error
}

func newReplay(cfg *Config, c *console, pinned rangeReader) *replay {
	registry := prometheus.NewRegistry()
	return &replay{
		cfg: cfg, console: c, registry: registry, episodes: newAssembler(cfg, assemble.NewMetrics(registry)),
		recorded: newRecordings(cfg, pinned), limit: bank.NewStreamLimit(cfg.Limits.Streams), desks: map[string]*desk{},
		refusals: &refusals{console: c}, known: bank.NewCalibrations(), seen: map[ingest.Group]int64{},
	}
}

// Process implements ingest.Processor.
func (r *replay) Process(ctx context.Context, batch []ingest.Event) error {
	r.events += int64(len(batch))
	for i := range batch {
		r.episodes.Fold(&batch[i], func(u *ingest.Unit) {
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

func (r *replay) observe(ctx context.Context, u *ingest.Unit) error {
	r.units++
	r.seen[u.Group]++
	d, err := r.desk(ctx, u.Group.Policy)
	if d == nil || err != nil {
		return err
	}
	if err := d.observe(ctx, u, time.Unix(0, u.EndTS)); err != nil {
		return err
	}
	if u.Shadow || r.scores == nil && r.courses == nil {
		return nil
	}
	if r.courses != nil {
		r.courses.Observe(d.policy.Group(u.Group))
	}
	if r.scores == nil {
		return nil
	}
	for _, line := range scoreLines(u.Pos.Offset, d.policy.Group(u.Group)) {
		if err := writeLine(r.scores, line); err != nil {
			return fmt.Errorf("write scores: %w", err)
		}
	}
	return nil
}

// desk finds the desk of a policy, or makes it; nil where the policy is not watched.
func (r *replay) desk(ctx context.Context, policy string) (*desk, error) {
	if d, known := r.desks[policy]; known {
		return d, nil
	}
	cfg, watched := r.cfg.policy(policy)
	if !watched {
		r.desks[policy] = nil
		return nil, nil
	}
	d := newDesk(policy, cfg, r.limit, r)
	d.policy.Share(r.known)
	if err := r.recorded.teach(ctx, d.policy, policy, cfg); err != nil {
		return nil, err
	}
	r.desks[policy] = d
	r.order = append(r.order, d)
	return d, nil
}

// Changed implements effects: it prints what the service would have acted on.
func (r *replay) Changed(_ context.Context, changes []alerts.Change) error {
	for _, change := range changes {
		a := change.Alarm
		if a == nil || !change.Fired && !a.Resolved {
			continue
		}
		r.drifted = true
		r.log.add(*a, r.seen[a.Group])
		if err := r.console.print(alarmLine(*a), func(w io.Writer) error { return alarmText(w, *a) }); err != nil {
			return err
		}
	}
	return nil
}

// finish writes the summary, also of input that broke off.
func (r *replay) finish(o replayOptions, files []string, counts ingest.Counts) error {
	var summaries []*bank.Summary
	var incidents []alerts.Incident
	for _, d := range r.order {
		d.publish()
		summaries = append(summaries, d.policy.Summary())
		incidents = append(incidents, d.shown.Load().incidents...)
	}
	line := summaryLine(counts, r.units, summaries, incidents)
	err := errors.Join(r.conclude(), r.writeReport(o, files, counts, summaries, incidents))
	err = errors.Join(err, r.console.print(line, func(w io.Writer) error { return summaryText(w, line) }), r.tellIgnored())
	if r.scores != nil {
		err = errors.Join(err, r.scores.Flush())
	}
	return err
}

// tellIgnored says which accepted records belong to no unit, and why.
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
				r.console.tell("rewardwatch: ignored %.0f records: %s", n, m.GetLabel()[0].GetValue())
			}
		}
	}
	return nil
}

// Idle implements ingest.Processor.
func (r *replay) Idle(context.Context, time.Time) error { return nil }

// Snapshot implements ingest.Processor; a replay keeps no state.
func (r *replay) Snapshot(io.Writer) error { return nil }

// Restore implements ingest.Processor.
func (r *replay) Restore(io.Reader) error { return nil }

// unregistered is a registerer for metrics that nobody will scrape.
type unregistered struct{}

// Register implements prometheus.Registerer.
func (unregistered) Register(prometheus.Collector) error { return nil }

// MustRegister implements prometheus.Registerer.
func (unregistered) MustRegister(...prometheus.Collector) {}

// Unregister implements prometheus.Registerer.
func (unregistered) Unregister(prometheus.Collector) bool { return false }
