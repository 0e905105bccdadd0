package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/experience"
)

// exportOptions are the flags of retrain export.
type exportOptions struct {
	config, out string
	data        choice
	format      choice
}

// What is exported, and how it is written.
const (
	dataDrifted   = "drifted"
	dataBaseline  = "baseline"
	dataBoth      = "both"
	formatNDJSON  = "ndjson"
	formatParquet = "parquet"
)

func newRetrainExportCommand(c *console, service *client) *cobra.Command {
	o := exportOptions{
		data:   choice{of: []string{dataDrifted, dataBaseline, dataBoth}, value: dataBoth},
		format: choice{of: []string{formatNDJSON, formatParquet}, value: formatNDJSON},
	}
	cmd := &cobra.Command{
		Use:   "export ID --config FILE",
		Short: "Write the experience that a request names, to retrain on",
		Long: "Reads exactly the offsets of the drifted and of the baseline data that the order of a request names, and of those\n" +
			"only the records of its policy and group. Writes a row a step, by episode and in step order; an episode that the\n" +
			"offsets cut off is marked as incomplete. Joins no consumer group and commits nothing. Where the topic does not hold\n" +
			"all of the offsets any more, says which, and writes nothing.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runExport(cmd.Context(), c, service, o, args[0]) },
	}
	cmd.Flags().StringVar(&o.config, "config", "", "configuration file, whose ingest.kafka has the telemetry (required)")
	cmd.Flags().Var(&o.data, "data", "which of the data is written: drifted, baseline or both")
	cmd.Flags().Var(&o.format, "format", "how it is written: ndjson or parquet")
	cmd.Flags().StringVar(&o.out, "out", "", "file to write, there only once it is whole; the standard output without one")
	return cmd
}

// choice is the value of a flag that has one of several.
type choice struct {
	of    []string
	value string
}

// Set reads the flag.
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

// String gives the flag's value.
func (v *choice) String() string { return v.value }

// Type names the flag's value in the help.
func (v *choice) Type() string { return strings.Join(v.of, "|") }

// exportedOrder is what an export needs of the order of a request.
type exportedOrder struct {
	Incident *string
	Policy   string
	Group    map[string]string
	Offsets  struct{ Drifted, Baseline []ingest.Range }
}

// parts gives the data that is wanted, the older first, and what of it the order names no offsets of.
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

func runExport(ctx context.Context, c *console, service *client, o exportOptions, id string) error {
	switch {
	case o.config == "":
		return errors.New("--config must name the configuration, whose ingest.kafka has the telemetry")
	case o.format.value == formatParquet && o.out == "" && isTerminal(c.out):
		return errors.New("--out must name a file: Parquet cannot be read on a terminal")
	}
	cfg, err := LoadConfig(o.config)
	if err != nil {
		return err
	}
	var request retrain.Request
	if err := service.get(ctx, &request, "retrain-requests", id); err != nil {
		return fmt.Errorf("request %s: %w", id, err)
	}
	var order exportedOrder
	if err := json.Unmarshal(request.Order, &order); err != nil {
		return fmt.Errorf("request %s: read the order: %w", id, err)
	}
	parts, missing := order.parts(o.data.value)
	switch {
	case len(parts) > 0:
	case request.Kind == retrain.KindRollback:
		return fmt.Errorf("request %s is a rollback: it has no data; that of the retraining is exported by its own id", id)
	case order.Incident == nil:
		return fmt.Errorf("request %s was asked for by a %s and not for an incident: its order names no offsets, as nothing is known to have drifted. "+
			"Where there is an incident, order the retraining with --incident", id, request.OriginKind)
	default:
		return fmt.Errorf("request %s: the order names no offsets of the %s data", id, strings.Join(missing, " or the "))
	}
	for _, name := range missing {
		_, _ = fmt.Fprintf(c.err, "The order names no offsets of the %s data: there is none in what is written.\n", name)
	}
	shown := newProgress(c)
	defer shown.clear()
	src := experience.Source{
		Kafka: cfg.Ingest.Kafka, Policy: order.Policy, Group: order.Group, MaxOpen: cfg.Limits.OpenEpisodes,
		Progress: func(messages, total int64) {
			shown.show("export", float64(messages)/float64(total), fmt.Sprintf("%d of %d messages", messages, total))
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
	shown.clear()
	return o.conclude(c, id, counts)
}

// write gives export a writer on what is to be written: a file only gets its name once it is whole.
func (o *exportOptions) write(c *console, export func(experience.Writer) error) error {
	if o.out == "" {
		return export(o.writer(c.out))
	}
	return writeWhole(o.out, func(w io.Writer) error { return export(o.writer(w)) })
}

func (o *exportOptions) writer(w io.Writer) experience.Writer {
	if o.format.value == formatParquet {
		return experience.NewParquet(w)
	}
	return experience.NewNDJSON(w)
}

// writeWhole writes a file beside its place and moves it there, so that nobody reads half of it. After an error the place is
// as it was.
func writeWhole(path string, write func(io.Writer) error) error {
	f, err := os.Create(fmt.Sprintf("%s.%d.part", path, os.Getpid()))
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// exportedJSON is what retrain export prints once it has written a file.
type exportedJSON struct {
	Request    string `json:"request"`
	File       string `json:"file"`
	Steps      int64  `json:"steps"`
	Episodes   int64  `json:"episodes"`
	Incomplete int64  `json:"incomplete"`
	Stepless   int64  `json:"stepless"`
}

// conclude says what was written: where the standard output is the data, on the other one.
func (o *exportOptions) conclude(c *console, id string, n experience.Counts) error {
	said := fmt.Sprintf("%d steps of %d episodes, %d of them incomplete", n.Steps, n.Episodes, n.Incomplete)
	if n.Stepless > 0 {
		said += fmt.Sprintf("; %d episodes without a step are left out", n.Stepless)
	}
	if o.out == "" {
		_, _ = fmt.Fprintln(c.err, said)
		return nil
	}
	result := exportedJSON{id, o.out, n.Steps, n.Episodes, n.Incomplete, n.Stepless}
	return c.print(result, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: %s\n", o.out, said)
		return err
	})
}
