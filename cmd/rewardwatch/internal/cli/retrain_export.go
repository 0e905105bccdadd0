package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/client"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
	"github.com/rewardwatch/rewardwatch/retrain/experience"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// exportOptions are the flags of retrain export.
type exportOptions struct {
	config, out string
	data        choice
	format      choice
	until       until
}

// The data that can be exported, and the formats.
const (
	dataDrifted   = "drifted"
	dataBaseline  = "baseline"
	dataBoth      = "both"
	formatNDJSON  = "ndjson"
	formatParquet = "parquet"
)

func newRetrainExportCommand(c *terminal.Console, service *client.Client) *cobra.Command {
	o := exportOptions{
		data:   choice{of: []string{dataDrifted, dataBaseline, dataBoth}, value: dataBoth},
		format: choice{of: []string{formatNDJSON, formatParquet}, value: formatNDJSON},
	}
	cmd := &cobra.Command{
		Use:   "export REQUEST --config FILE",
		Short: "Export the episodes named by a retrain request as training data",
		Long: "Reads the drifted and baseline offset ranges named in the request, and later offsets with --until.\n" +
			"Exports only records of the request's policy and group. Writes one row per step, by episode and in step order. Episodes\n" +
			"that are only partly in these ranges are marked as incomplete. Does not join a consumer group or commit offsets.\n" +
			"If the topic no longer contains all of these offsets, reports the missing ones and writes nothing.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeIDs(service, aRequest, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := fullID(cmd.Context(), service, aRequest, args[0])
			if err != nil {
				return err
			}
			return runExport(cmd.Context(), c, service, o, id)
		},
	}
	cmd.Flags().StringVar(&o.config, "config", "", "configuration file with the ingest section for the telemetry (required)")
	cmd.Flags().Var(&o.data, "data", "data to write: drifted, baseline or both")
	cmd.Flags().Var(&o.until, "until", "end of the drifted data, if later than the request's offsets: now, or a time such as \"2026-11-20 10:00:00 UTC\"")
	cmd.Flags().Var(&o.format, "format", "output format: ndjson or parquet")
	cmd.Flags().StringVar(&o.out, "out", "", "file to write, created only when complete (default: standard output)")
	completeFlag(cmd, "data", completeWords(o.data.of))
	completeFlag(cmd, "format", completeWords(o.format.of))
	return cmd
}

// choice is the value of a flag that takes one of several words.
type choice struct {
	of    []string
	value string
}

// Set parses the value of the flag.
func (v *choice) Set(s string) error {
	for _, allowed := range v.of {
		if s == allowed {
			v.value = s
			return nil
		}
	}
	last := len(v.of) - 1
	return errors.New("must be " + strings.Join(v.of[:last], ", ") + " or " + v.of[last])
}

// String returns the flag's value.
func (v *choice) String() string { return v.value }

// Type names the flag's value in the help.
func (v *choice) Type() string { return strings.Join(v.of, "|") }

// until is the value of a flag that is either now or a time.
type until struct {
	given bool
	at    time.Time // zero for now
}

// Set parses the value of the flag.
func (u *until) Set(s string) (err error) {
	u.given = true
	if s == "now" {
		return nil
	}
	if u.at, err = words.ParseTime(s); err != nil {
		return errors.New("must be now or " + words.TimeForms)
	}
	return nil
}

// String returns the flag's value.
func (u *until) String() string {
	switch {
	case !u.given:
		return ""
	case u.at.IsZero():
		return "now"
	}
	return words.Stamp(u.at)
}

// Type names the flag's value in the help.
func (u *until) Type() string { return "now|TIME" }

// extend moves the end of the drifted data.
func (u *until) extend(ctx context.Context, at recording.Place, topics []ingest.Topic, parts []experience.Part) error {
	for i := range parts {
		if !u.given || parts[i].Name != dataDrifted {
			continue
		}
		for n, of := range parts[i].Ranges {
			topic, _, err := of.In(topics)
			if err != nil {
				return err
			}
			extended, err := recording.ExtendRanges(ctx, at.In(topic.Name), []ingest.Range{of}, u.at)
			if err != nil {
				return err
			}
			parts[i].Ranges[n] = extended[0]
		}
	}
	return nil
}

// exportedOrder is the part of a request's order that an export needs.
type exportedOrder struct {
	Incident *string
	Policy   string
	Group    map[string]string
	Offsets  struct{ Drifted, Baseline []ingest.Range }
}

// parts returns the wanted data, older data first, and the names of the data for which the order has no offsets.
func (o *exportedOrder) parts(data string) (parts []experience.Part, missing []string) {
	for _, p := range []experience.Part{{Name: dataBaseline, Ranges: o.Offsets.Baseline}, {Name: dataDrifted, Ranges: o.Offsets.Drifted}} {
		switch {
		case data != p.Name && data != dataBoth:
		case len(p.Ranges) == 0:
			missing = append(missing, p.Name)
		default:
			parts = append(parts, p)
		}
	}
	return parts, missing
}

// errNoOffsets means that a request is not for an incident. A pipeline then continues without the data.
var errNoOffsets = errors.New("so it contains no offsets")

// withoutIncident describes how a request was opened, which is unknown if an earlier build wrote the ledger.
func withoutIncident(by ledger.OriginKind) string {
	if by == "" {
		return "without an incident"
	}
	return fmt.Sprintf("by a %s, not for an incident", by)
}

func runExport(ctx context.Context, c *terminal.Console, service *client.Client, o exportOptions, id string) error {
	if err := o.check(c); err != nil {
		return err
	}
	cfg, err := config.Load(o.config)
	if err != nil {
		return err
	}
	var request ledger.Request
	if err := service.Get(ctx, &request, "retrain-requests", id); err != nil {
		return err
	}
	var order exportedOrder
	if err := json.Unmarshal(request.Order, &order); err != nil {
		return fmt.Errorf("request %s: read its contents: %w", id, err)
	}
	parts, missing := order.parts(o.data.value)
	switch {
	case len(parts) > 0:
	case request.Kind == ledger.KindRollback:
		return fmt.Errorf("request %s is a rollback and has no data: export the retraining request instead", id)
	case order.Incident == nil:
		return fmt.Errorf("request %s was opened %s, %w. To export data, request the retraining with --incident", id, withoutIncident(request.OriginKind), errNoOffsets)
	default:
		return fmt.Errorf("request %s contains no offsets for the %s data", id, strings.Join(missing, " or the "))
	}
	for _, name := range missing {
		_, _ = fmt.Fprintf(c.Err, "The request contains no offsets for the %s data, so the output contains no such data.\n", name)
	}
	at, topics, err := cfg.Ingest.OpenJudged()
	if err != nil {
		return err
	}
	if err := o.until.extend(ctx, at, topics, parts); err != nil {
		return fmt.Errorf("export request %s: %w", id, err)
	}
	shown := terminal.NewProgress(c)
	defer shown.Clear()
	src := experience.Source{
		Place: at, Topics: topics, Policy: order.Policy, Group: order.Group, MaxOpen: cfg.Limits.OpenEpisodes,
		Progress: func(messages, total int64) {
			shown.Show("export", float64(messages)/float64(total), fmt.Sprintf("%d of %d messages", messages, total))
		},
	}
	var counts experience.Counts
	err = o.write(c, func(w experience.Writer) error {
		counts, err = experience.Export(ctx, src, parts, w)
		return err
	})
	if err != nil {
		return fmt.Errorf("export request %s: %w", id, err)
	}
	shown.Clear()
	return o.conclude(c, id, counts)
}

// check reports flags that cannot be combined.
func (o *exportOptions) check(c *terminal.Console) error {
	switch {
	case o.config == "":
		return errors.New("--config is required: pass the configuration file with the ingest section for the telemetry")
	case o.until.given && o.data.value == dataBaseline:
		return errors.New("--until extends the drifted data and cannot be combined with --data baseline")
	case o.format.value == formatParquet && o.out == "" && terminal.IsTerminal(c.Out):
		return errors.New("--out must name a file: Parquet cannot be printed to a terminal")
	}
	return nil
}

// write calls export with a writer for the output. A file gets its final name only once it is complete.
func (o *exportOptions) write(c *terminal.Console, export func(experience.Writer) error) error {
	if o.out == "" {
		return export(o.writer(c.Out))
	}
	return terminal.WriteWhole(o.out, func(w io.Writer) error { return export(o.writer(w)) })
}

func (o *exportOptions) writer(w io.Writer) experience.Writer {
	if o.format.value == formatParquet {
		return experience.NewParquet(w)
	}
	return experience.NewNDJSON(w)
}

// exportedJSON is printed by retrain export after it has written a file.
type exportedJSON struct {
	Request    string `json:"request"`
	File       string `json:"file"`
	Steps      int64  `json:"steps"`
	Episodes   int64  `json:"episodes"`
	Incomplete int64  `json:"incomplete"`
	Stepless   int64  `json:"stepless"`
}

// conclude reports the counts of the export, on standard error if the data goes to standard output.
func (o *exportOptions) conclude(c *terminal.Console, id string, n experience.Counts) error {
	said := fmt.Sprintf("%d steps of %d episodes, %d of them incomplete", n.Steps, n.Episodes, n.Incomplete)
	if n.Stepless > 0 {
		said += fmt.Sprintf("; skipped %d episodes without steps", n.Stepless)
	}
	if o.out == "" {
		_, _ = fmt.Fprintln(c.Err, said)
		return nil
	}
	result := exportedJSON{id, o.out, n.Steps, n.Episodes, n.Incomplete, n.Stepless}
	return c.Print(result, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: %s\n", o.out, said)
		return err
	})
}
