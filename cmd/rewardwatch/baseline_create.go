package main

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

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// createOptions are the flags of baseline create.
type createOptions struct {
	config, policy, out string
}

func newBaselineCreateCommand(c *console) *cobra.Command {
	var o createOptions
	cmd := &cobra.Command{
		Use:   "create FILE... -o FILE",
		Short: "Cut a baseline out of recorded telemetry",
		Long: "Writes the records of the first finished episodes of every group, as many as baseline.units of its policy says,\n" +
			"as NDJSON (compressed where the name ends in .gz). The file can be named by baseline.file with\n" +
			"baseline.from: file. Says what a baseline that is too small lacks.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error { return createBaseline(cmd.Context(), c, o, files) },
	}
	cmd.Flags().StringVar(&o.config, "config", "", "configuration file; the defaults hold without one")
	cmd.Flags().StringVar(&o.policy, "policy", "", "policy of the rows of monitor.csv files, instead of their env_id")
	cmd.Flags().StringVarP(&o.out, "out", "o", "", "file to write (required)")
	return cmd
}

// createdJSON is what baseline create prints of each group.
type createdJSON struct {
	Policy string            `json:"policy"`
	Group  map[string]string `json:"group"`
	ID     string            `json:"id"`
	Units  int               `json:"units"`
	Of     int               `json:"of"`
	Lacks  []lackJSON        `json:"lacks"` // detector branches that more units would carry
}

type lackJSON struct {
	Signal string `json:"signal"`
	Branch string `json:"branch"` // such as "return spread x1.6"
	Units  int    `json:"units"`  // that would carry it, by what this baseline shows of it
}

func createBaseline(ctx context.Context, c *console, o createOptions, files []string) error {
	switch {
	case o.out == "":
		return errors.New("-o must name the file to write")
	case slices.Contains(files, "-"):
		return errors.New("the telemetry is read twice, so that it cannot come from the standard input")
	}
	cfg, err := LoadConfig(o.config)
	if err != nil {
		return err
	}
	cut := newCutting(cfg)
	if err := cut.choose(ctx, o.policy, files); err != nil {
		return err
	}
	if len(cut.order) == 0 {
		return errNoEvent
	}
	if err := cut.write(ctx, o, files); err != nil {
		return err
	}
	results := cut.results()
	if c.output == outputJSON {
		for _, r := range results {
			if err := writeLine(c.out, r); err != nil {
				return fmt.Errorf("print the result: %w", err)
			}
		}
		return nil
	}
	return createdText(c.out, results)
}

// cutting picks the first finished episodes of every group out of recorded telemetry.
type cutting struct {
	cfg    *Config
	limit  *bank.StreamLimit
	banks  map[string]*bank.Policy
	order  []string // policies, in order of first unit
	taken  map[ingest.Group]int
	chosen map[episodeKey][]span
}

// episodeKey tells the episodes of different agents apart. An agent has one open episode of an id at a time.
type episodeKey struct {
	group          ingest.Group
	agent, episode string
}

// span is the records of one episode, counted over all input, both ends included. Records of other episodes lie between
// them.
type span struct{ first, last int64 }

func newCutting(cfg *Config) *cutting {
	return &cutting{
		cfg: cfg, limit: bank.NewStreamLimit(cfg.Limits.Streams), banks: map[string]*bank.Policy{}, taken: map[ingest.Group]int{},
		chosen: map[episodeKey][]span{},
	}
}

// choose reads the telemetry and picks episodes.
func (k *cutting) choose(ctx context.Context, policy string, files []string) error {
	units := newCollector(k.cfg, k.take)
	_, err := ingest.ReadFiles(ctx, ingest.FilesConfig{Policy: policy}, files, &units)
	return err
}

// take picks a unit where its group's baseline wants it.
func (k *cutting) take(u *ingest.Unit) {
	cfg, watched := k.cfg.policy(u.Group.Policy)
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

// write copies the records of the episodes picked.
func (k *cutting) write(ctx context.Context, o createOptions, files []string) (err error) {
	f, err := os.Create(o.out)
	if err != nil {
		return fmt.Errorf("write the baseline: %w", err)
	}
	buffer := bufio.NewWriter(f)
	out, closers := io.Writer(buffer), []func() error{buffer.Flush, f.Sync, f.Close}
	if strings.HasSuffix(o.out, ".gz") {
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
	_, err = ingest.ReadFiles(ctx, ingest.FilesConfig{Policy: o.policy, Accepted: copyRecord}, files, &collector{})
	return errors.Join(err, failed)
}

// wants reports whether an event is part of an episode that was picked.
func (k *cutting) wants(e *ingest.Event) bool {
	cfg, watched := k.cfg.policy(e.Policy)
	if !watched || assemble.InShadow(cfg.GroupBy, e) {
		return false
	}
	spans := k.chosen[episodeKey{assemble.GroupOf(cfg.GroupBy, e), e.AgentID, e.EpisodeID}] // ascending
	i, begins := slices.BinarySearchFunc(spans, e.Pos.Offset, func(s span, at int64) int { return cmp.Compare(s.first, at) })
	return begins || i > 0 && e.Pos.Offset <= spans[i-1].last
}

// writeRecord writes a record as it was, or a row of a monitor.csv as the record of an episode.
func writeRecord(w io.Writer, e *ingest.Event, record []byte) error {
	if record == nil {
		row := struct {
			Policy  string         `json:"policy"`
			Episode map[string]any `json:"episode"`
		}{e.Policy, map[string]any{"r": bank.Number(e.Return), "l": e.Length}}
		return writeLine(w, row)
	}
	if _, err := w.Write(record); err != nil {
		return err
	}
	_, err := w.Write([]byte{'\n'})
	return err
}

// results freezes what was picked, as the service does at its start, and says what came of it.
func (k *cutting) results() []createdJSON {
	var out []createdJSON
	for _, policy := range k.order {
		cfg, _ := k.cfg.policy(policy)
		p := k.banks[policy]
		p.Accept(time.Now())
		p.Publish()
		for _, g := range p.Summary().Groups {
			out = append(out, createdJSON{
				Policy: policy, Group: g.Group.Map(), ID: g.Baseline.ID, Units: g.Baseline.Units, Of: cfg.Baseline.Units,
				Lacks: lacking(&g),
			})
		}
	}
	return out
}

// lacking lists the branches that a larger baseline would carry.
func lacking(g *bank.GroupSummary) []lackJSON {
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
	rows := [][]string{{"BASELINE", "POLICY", "GROUP", "UNITS"}}
	for _, r := range results {
		rows = append(rows, []string{r.ID, r.Policy, labelsText(r.Group), fmt.Sprintf("%d of %d", r.Units, r.Of)})
	}
	if err := printTable(w, rows); err != nil {
		return err
	}
	for _, r := range results {
		if len(r.Lacks) == 0 && r.Units >= r.Of {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s: %d of %d units%s\n", printable(words.Group(r.Policy, r.Group).String()), r.Units, r.Of, lacksText(r.Lacks)); err != nil {
			return err
		}
	}
	return nil
}

// lacksText says which branches more units would carry, those of a kind in one.
func lacksText(lacks []lackJSON) string {
	var out strings.Builder
	for _, l := range lacks {
		fmt.Fprintf(&out, "; %s of %s needs %d", l.Branch, printable(l.Signal), l.Units)
	}
	return out.String()
}
