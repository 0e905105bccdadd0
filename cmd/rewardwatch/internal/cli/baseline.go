// Package cli implements the commands, one per file.
//
// For a new verb, write a file with a function that returns a cobra.Command, and add it to verbs in root.go. Print with
// Print of terminal.Console, as text and as JSON. To query a service, use client.Client; the response is a type of
// package wire, the route is in package api and its web/openapi.json.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/client"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

func newBaselineCommand(c *terminal.Console) *cobra.Command {
	service := &client.Client{}
	cmd := showsHelp(&cobra.Command{
		Use:   "baseline",
		Short: "Create baselines, or show, promote and reset the baselines of a running service",
	})
	service.Flags(cmd)
	cmd.AddCommand(
		newBaselineCreateCommand(c),
		&cobra.Command{
			Use: "list", Short: "List the baselines in use", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return listBaselines(cmd.Context(), c, service) },
		},
		&cobra.Command{
			Use: "show BASELINE", Short: "Show a baseline, its distributions, and earlier baselines of the group", Args: cobra.ExactArgs(1),
			ValidArgsFunction: completeIDs(service, aBaseline, 1),
			RunE: func(cmd *cobra.Command, args []string) error {
				id, err := fullID(cmd.Context(), service, aBaseline, args[0])
				if err != nil {
					return err
				}
				var b shownBaseline
				return showBaseline(c, &b, service.Get(cmd.Context(), &b, "baselines", id))
			},
		},
		&cobra.Command{
			Use: "diff BASELINE BASELINE", Short: "Compare two baselines side by side", Args: cobra.ExactArgs(2),
			ValidArgsFunction: completeIDs(service, aBaseline, 2),
			RunE:              func(cmd *cobra.Command, args []string) error { return diffBaselines(cmd.Context(), c, service, args) },
		},
		newPromoteCommand(c, service), newResetCommand(c, service))
	return cmd
}

func newPromoteCommand(c *terminal.Console, service *client.Client) *cobra.Command {
	var why wire.Reason
	cmd := &cobra.Command{
		Use:   "promote BASELINE --why TEXT",
		Short: "Accept a provisional baseline at its current size",
		Long:  "Ends the warm-up of the group. After that, its alarms are treated as those of an accepted baseline.",
		Args:  cobra.ExactArgs(1),

		ValidArgsFunction: completeIDs(service, aBaseline, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := why.Check(); err != nil {
				return err
			}
			id, err := fullID(cmd.Context(), service, aBaseline, args[0])
			if err != nil {
				return err
			}
			var b shownBaseline
			return showBaseline(c, &b, service.Post(cmd.Context(), why, &b, "baselines", id, "promote"))
		},
	}
	client.ReasonFlags(cmd, &why)
	return cmd
}

// resetOrder is the body of a reset.
type resetOrder struct {
	wire.Reason
	Policy string            `json:"policy"`
	Group  map[string]string `json:"group"`
}

func newResetCommand(c *terminal.Console, service *client.Client) *cobra.Command {
	order := resetOrder{Group: map[string]string{}}
	cmd := &cobra.Command{
		Use:   "reset POLICY [LABEL=VALUE...] --why TEXT",
		Short: "Start a new baseline for a group",
		Long: "Ends the baseline of the group and closes its open incident. The group is not checked for drift until the next baseline\n" +
			"is complete.",

		ValidArgsFunction: completeOfPolicy(service, func(ctx context.Context, policy string) (labels []cobra.Completion, err error) {
			var answer struct{ Baselines []wire.Baseline }
			err = service.Get(ctx, &answer, string(aBaseline))
			for i := range answer.Baselines {
				if b := &answer.Baselines[i]; b.Policy == policy {
					for name, value := range b.Group {
						labels = append(labels, name+"="+value)
					}
				}
			}
			return labels, err
		}),

		Example: "  rewardwatch baseline reset checkout-ranker env=prod-eu --why \"the simulator was replaced\"",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(order.Check(), order.set(args)); err != nil {
				return err
			}
			var b shownBaseline
			return showBaseline(c, &b, service.Post(cmd.Context(), order, &b, "baselines", "reset"))
		},
	}
	client.ReasonFlags(cmd, &order.Reason)
	return cmd
}

func (o *resetOrder) set(args []string) error {
	o.Policy = args[0]
	for _, arg := range args[1:] {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("invalid group label %q: must be LABEL=VALUE, such as env=prod", arg)
		}
		o.Group[name] = value
	}
	return nil
}

// shownBaseline is a baseline as returned by the API. raw is printed as JSON.
type shownBaseline struct {
	wire.BaselineDetail
	raw json.RawMessage
}

// UnmarshalJSON reads the baseline and keeps its text.
func (b *shownBaseline) UnmarshalJSON(text []byte) error {
	b.raw = slices.Clone(text)
	return json.Unmarshal(text, &b.BaselineDetail)
}

func listBaselines(ctx context.Context, c *terminal.Console, service *client.Client) error {
	var answer struct{ Baselines []shownBaseline }
	if err := service.Get(ctx, &answer, "baselines"); err != nil {
		return err
	}
	if c.Output == terminal.OutputJSON {
		return printLines(c, answer.Baselines, func(b shownBaseline) json.RawMessage { return b.raw })
	}
	units := make([]finding.UnitName, len(answer.Baselines))
	for i := range answer.Baselines {
		units[i] = answer.Baselines[i].Promise.UnitName()
	}
	rows := [][]string{{"BASELINE", "POLICY", "GROUP", strings.ToUpper(finding.CommonUnit(units...).Many()), "STATE", "FROZEN", "WARM-UP", "USED IN 365 DAYS"}}
	for _, b := range answer.Baselines {
		rows = append(rows, []string{
			baselineID(&b.Baseline), b.Policy, terminal.LabelsText(b.Group), fmt.Sprint(b.Units), baselineState(&b.Baseline), timeText(b.FrozenAt), warmupText(&b.Baseline), fmt.Sprint(b.UsedInAYear),
		})
	}
	return terminal.PrintTable(c.Out, rows)
}

// showBaseline prints a baseline that the service returned, or returns the error of the request.
func showBaseline(c *terminal.Console, b *shownBaseline, err error) error {
	if err != nil {
		return err
	}
	return c.Print(b.raw, b.text)
}

func (b *shownBaseline) text(w io.Writer) error {
	unit := b.Promise.UnitName()
	rows := [][]string{
		{"baseline", baselineID(&b.Baseline)},
		{"state", baselineState(&b.Baseline)},
		{"group", words.Group(b.Policy, b.Group).String()},
		{unit.Sized(), fmt.Sprint(b.Units)},
		{"frozen", timeText(b.FrozenAt)},
		{"offsets", words.Offsets(b.Offsets)},
		{"warm-up", warmupText(&b.Baseline)},
		{"used in 365 days", fmt.Sprint(b.UsedInAYear)},
	}
	if b.PolicyVersion != nil {
		rows = append(rows, []string{"policy_version", *b.PolicyVersion}, []string{"ignored " + unit.Many(), fmt.Sprint(b.IgnoredUnits)})
	}
	if b.Promoted != nil {
		rows = append(rows, []string{"promoted", *b.Promoted})
	}
	if b.Why != nil {
		rows = append(rows, []string{"ended", timeText(b.EndedAt) + ", " + words.Stamped(*b.Why)})
	}
	for _, p := range b.Past {
		rows = append(rows, []string{"previous", fmt.Sprintf("%s, %s, %s to %s, %s", p.ID, unit.Count(int64(p.Units)), timeText(&p.FrozenAt), timeText(&p.EndedAt), words.Stamped(p.Why))})
	}
	if err := terminal.PrintTable(w, rows); err != nil || len(b.Quantities) == 0 {
		return err
	}
	table := [][]string{{"SIGNAL", "QUANTITY", strings.ToUpper(unit.Many()), "MEAN", "SD", "Q10", "MEDIAN", "Q90"}}
	for _, q := range b.Quantities {
		row := []string{q.Signal, q.Quantity, fmt.Sprint(q.Units)}
		for _, x := range []wire.Number{q.Mean, q.SD, q.Q10, q.Median, q.Q90} {
			row = append(row, figureOrDash(x))
		}
		table = append(table, row)
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return terminal.PrintTable(w, table)
}

// figureOrDash formats a number of the API. For an unknown number, it returns "", which tables show as a dash.
func figureOrDash(x wire.Number) string {
	if math.IsNaN(float64(x)) {
		return ""
	}
	return words.Short(float64(x))
}

func diffBaselines(ctx context.Context, c *terminal.Console, service *client.Client, ids []string) error {
	for i := range ids {
		var err error
		if ids[i], err = fullID(ctx, service, aBaseline, ids[i]); err != nil {
			return err
		}
	}
	var raw json.RawMessage
	if err := service.Get(ctx, &raw, "baselines", ids[0], "diff", ids[1]); err != nil {
		return err
	}
	var d wire.BaselineDiff
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("read the service's response, which may be from a different version: %w", err)
	}
	return c.Print(raw, func(w io.Writer) error { return diffBaselineText(&d, w) })
}

func diffBaselineText(d *wire.BaselineDiff, w io.Writer) error {
	rows := [][]string{{"SIGNAL", "QUANTITY", "BASELINE", "UNITS", "MEAN", "SD", "Q10", "MEDIAN", "Q90", "KS D", "P"}}
	for _, q := range d.Quantities {
		rows = append(rows,
			append([]string{q.Signal, q.Quantity, d.A}, append(sampleRow(q.A), figureOrDash(q.D), figureOrDash(q.P))...),
			append([]string{"", "", d.B}, append(sampleRow(q.B), "", "")...))
	}
	if err := terminal.PrintTable(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", d.Note)
	return err
}

func sampleRow(s *wire.Sample) []string {
	if s == nil {
		return make([]string, 6)
	}
	row := []string{fmt.Sprint(s.Units)}
	for _, x := range []wire.Number{s.Mean, s.SD, s.Q10, s.Median, s.Q90} {
		row = append(row, figureOrDash(x))
	}
	return row
}
