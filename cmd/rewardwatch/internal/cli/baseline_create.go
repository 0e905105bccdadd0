package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// createOptions are the flags of baseline create.
type createOptions struct {
	config, policy, topic, out string
}

func newBaselineCreateCommand(c *terminal.Console) *cobra.Command {
	var o createOptions
	cmd := &cobra.Command{
		Use:   "create FILE... -o FILE",
		Short: "Create a baseline file from recorded telemetry",
		Long: "Writes the records of the first finished episodes of every group as NDJSON, up to baseline.units of its policy.\n" +
			"The output is compressed if the file name ends in .gz. To use the file, set baseline.from: file and baseline.file.\n" +
			"If a baseline is too small, reports what is missing.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error { return createBaseline(cmd.Context(), c, o, files) },
	}
	cmd.Flags().StringVar(&o.config, "config", "", "configuration file; the defaults apply if not set")
	cmd.Flags().StringVar(&o.topic, "topic", "", "topic whose format and mapping apply to the files; required if the configuration has more than one topic")
	cmd.Flags().StringVar(&o.policy, "policy", "", "policy to assign to the rows of monitor.csv files, instead of env_id")
	cmd.Flags().StringVarP(&o.out, "out", "o", "", "file to write (required)")
	return cmd
}

// createdJSON is printed by baseline create for each group.
type createdJSON struct {
	Policy string            `json:"policy"`
	Group  map[string]string `json:"group"`
	ID     string            `json:"id"`
	Units  int               `json:"units"`
	Of     int               `json:"of"`
	Lacks  []lackJSON        `json:"lacks"` // detector branches that would be armed with more units

	unit finding.UnitName
}

type lackJSON struct {
	Signal string `json:"signal"`
	Branch string `json:"branch"` // such as "return spread x1.6"
	Units  int    `json:"units"`  // needed to arm it, estimated from this baseline
}

func createBaseline(ctx context.Context, c *terminal.Console, o createOptions, files []string) error {
	switch {
	case o.out == "":
		return errors.New("-o must name the file to write")
	case slices.Contains(files, "-"):
		return errors.New("the telemetry is read twice, so it cannot be read from standard input: pass file names")
	}
	cfg, err := config.Load(o.config)
	if err != nil {
		return err
	}
	read, err := cfg.Ingest.Files(o.topic, files)
	if err != nil {
		return err
	}
	if len(read.Topics) > 0 {
		return errors.New("a baseline file contains the records of one topic: choose the topic with --topic")
	}
	read.Policy = o.policy
	cut := newCutting(cfg)
	if err := cut.choose(ctx, read, files); err != nil {
		return err
	}
	if len(cut.order) == 0 {
		return terminal.ErrNoEvent
	}
	if err := cut.write(ctx, read, o.out, files); err != nil {
		return err
	}
	results := cut.results()
	if c.Output == terminal.OutputJSON {
		for _, r := range results {
			if err := terminal.WriteLine(c.Out, r); err != nil {
				return fmt.Errorf("print the result: %w", err)
			}
		}
		return nil
	}
	return createdText(c.Out, results)
}

// cutting selects the first finished episodes of every group from recorded telemetry.
type cutting struct {
	settings *engine.Settings
	limit    *capacity.StreamLimit
	banks    map[string]*bank.Policy
	order    []string // policies, in the order of their first units
	taken    map[ingest.Group]int
	chosen   map[episodeKey][]span
}

// episodeKey identifies an episode of an agent. An agent has at most one open episode with an id at a time.
type episodeKey struct {
	group          ingest.Group
	agent, episode string
}

// span is the range of records of one episode, counted over all input, both ends included. Records of other episodes
// may lie in between.
type span struct{ first, last int64 }

func newCutting(cfg *config.Config) *cutting {
	return &cutting{
		settings: cfg.Settings(), limit: capacity.NewStreamLimit(cfg.Limits.Streams), banks: map[string]*bank.Policy{}, taken: map[ingest.Group]int{},
		chosen: map[episodeKey][]span{},
	}
}

// choose reads the telemetry and selects episodes.
func (k *cutting) choose(ctx context.Context, read recording.FilesConfig, files []string) error {
	units := engine.NewCollector(k.settings, k.take)
	_, err := recording.ReadFiles(ctx, read, files, &units)
	return err
}

// take selects a unit if its group's baseline needs it.
func (k *cutting) take(u *ingest.Unit) {
	cfg, watched := k.settings.Policy(u.Group.Policy)
	if !watched || u.Shadow || u.End == ingest.EndBlock || k.taken[u.Group] >= cfg.Baseline.Units {
		return
	}
	p := k.banks[u.Group.Policy]
	if p == nil {
		p = bank.NewPolicy(u.Group.Policy, cfg, k.limit)
		k.banks[u.Group.Policy] = p
		k.order = append(k.order, u.Group.Policy)
	}
	k.taken[u.Group]++
	p.Learn(u)
	key := episodeKey{u.Group, u.Agent, u.Episode}
	k.chosen[key] = append(k.chosen[key], span{u.First.Offset, u.Pos.Offset})
}

// write copies the records of the selected episodes.
func (k *cutting) write(ctx context.Context, read recording.FilesConfig, to string, files []string) (err error) {
	f, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("write the baseline: %w", err)
	}
	buffer := bufio.NewWriter(f)
	out, closers := io.Writer(buffer), []func() error{buffer.Flush, f.Sync, f.Close}
	if strings.HasSuffix(to, ".gz") {
		z := gzip.NewWriter(buffer)
		out, closers = z, append([]func() error{z.Close}, closers...)
	}
	defer func() {
		for _, c := range closers {
			if failed := c(); failed != nil {
				err = errors.Join(err, fmt.Errorf("write the baseline: %w", failed))
			}
		}
	}()
	var failed error
	copyRecord := func(e *ingest.Event, record []byte) {
		if failed == nil && k.wants(e) {
			failed = writeRecord(out, e, record)
		}
	}
	read.Accepted = copyRecord
	_, err = recording.ReadFiles(ctx, read, files, &engine.Collector{})
	return errors.Join(err, failed)
}

// wants reports whether an event is part of a selected episode.
func (k *cutting) wants(e *ingest.Event) bool {
	cfg, watched := k.settings.Policy(e.Policy)
	if !watched || assemble.InShadow(cfg.GroupBy, e) {
		return false
	}
	spans := k.chosen[episodeKey{assemble.GroupOf(cfg.GroupBy, e), e.AgentID, e.EpisodeID}] // ascending
	i, begins := slices.BinarySearchFunc(spans, e.Pos.Offset, func(s span, at int64) int { return cmp.Compare(s.first, at) })
	return begins || i > 0 && e.Pos.Offset <= spans[i-1].last
}

// writeRecord writes a record of telemetry v1 unchanged. If an event has no such record, it writes one.
func writeRecord(w io.Writer, e *ingest.Event, record []byte) error {
	if record == nil {
		record = telemetry.AppendEvent(nil, e)
	}
	if _, err := w.Write(record); err != nil {
		return err
	}
	_, err := w.Write([]byte{'\n'})
	return err
}

// results freezes the selected baselines, as the service does at startup, and returns the results.
func (k *cutting) results() []createdJSON {
	var out []createdJSON
	for _, policy := range k.order {
		cfg, _ := k.settings.Policy(policy)
		p := k.banks[policy]
		p.Accept(time.Now())
		p.Publish()
		for _, g := range p.Summary().Groups {
			out = append(out, createdJSON{
				Policy: policy, Group: g.Group.Map(), ID: g.Baseline.ID, Units: g.Baseline.Units, Of: cfg.Baseline.Units,
				Lacks: lacking(&g), unit: g.UnitName(),
			})
		}
	}
	return out
}

// lacking returns the branches that would be armed with a larger baseline.
func lacking(g *finding.GroupSummary) []lackJSON {
	out := []lackJSON{}
	for _, s := range g.Streams {
		for _, d := range s.Dropped {
			if d.Units > g.Baseline.Units {
				out = append(out, lackJSON{s.Signal, d.Branch, d.Units})
			}
		}
	}
	return out
}

func createdText(w io.Writer, results []createdJSON) error {
	units := make([]finding.UnitName, len(results))
	for i, r := range results {
		units[i] = r.unit
	}
	rows := [][]string{{"BASELINE", "POLICY", "GROUP", strings.ToUpper(finding.CommonUnit(units...).Many())}}
	for _, r := range results {
		rows = append(rows, []string{r.ID, r.Policy, terminal.LabelsText(r.Group), fmt.Sprintf("%d of %d", r.Units, r.Of)})
	}
	if err := terminal.PrintTable(w, rows); err != nil {
		return err
	}
	for _, r := range results {
		if len(r.Lacks) == 0 && r.Units >= r.Of {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s: %d of %d %s%s\n", terminal.Printable(words.Group(r.Policy, r.Group).String()), r.Units, r.Of, r.unit.Many(), lacksText(r.Lacks)); err != nil {
			return err
		}
	}
	return nil
}

// lacksText describes the branches that would be armed with more units, grouped by kind.
func lacksText(lacks []lackJSON) string {
	var out strings.Builder
	for _, l := range lacks {
		fmt.Fprintf(&out, "; %s of %s requires %d", l.Branch, terminal.Printable(l.Signal), l.Units)
	}
	return out.String()
}
