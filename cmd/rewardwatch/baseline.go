package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
)

func newBaselineCommand(c *console) *cobra.Command {
	service := &client{}
	cmd := &cobra.Command{
		Use:   "baseline",
		Short: "Make baselines, look at those of a running service, promote or reset them",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	service.flags(cmd)
	cmd.AddCommand(
		newBaselineCreateCommand(c),
		&cobra.Command{
			Use: "list", Short: "List the baselines in use", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return listBaselines(cmd.Context(), c, service) },
		},
		&cobra.Command{
			Use: "show BASELINE", Short: "Show a baseline, its distributions, and those before it", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				var b shownBaseline
				return c.showBaseline(&b, service.get(cmd.Context(), &b, "baselines", args[0]))
			},
		},
		&cobra.Command{
			Use: "diff BASELINE BASELINE", Short: "Show two baselines side by side", Args: cobra.ExactArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error { return diffBaselines(cmd.Context(), c, service, args) },
		},
		newPromoteCommand(c, service), newResetCommand(c, service))
	return cmd
}

func newPromoteCommand(c *console, service *client) *cobra.Command {
	var why reason
	cmd := &cobra.Command{
		Use:   "promote BASELINE --why TEXT",
		Short: "Accept a provisional baseline as it is",
		Long:  "Ends the warm-up of the group: its alarms count as those of an accepted baseline from now on.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := why.check(); err != nil {
				return err
			}
			var b shownBaseline
			return c.showBaseline(&b, service.post(cmd.Context(), why, &b, "baselines", args[0], "promote"))
		},
	}
	why.flags(cmd)
	return cmd
}

// resetOrder is the body of a reset.
type resetOrder struct {
	reason
	Policy string            `json:"policy"`
	Group  map[string]string `json:"group"`
}

func newResetCommand(c *console, service *client) *cobra.Command {
	order := resetOrder{Group: map[string]string{}}
	cmd := &cobra.Command{
		Use:     "reset POLICY [LABEL=VALUE...] --why TEXT",
		Short:   "Have a group warm up a new baseline",
		Long:    "Ends the baseline of the group, and its open incident. Until the next one is frozen the group is not judged.",
		Example: "  rewardwatch baseline reset checkout-ranker env=prod-eu --why \"the simulator was replaced\"",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(order.check(), order.set(args)); err != nil {
				return err
			}
			var b shownBaseline
			return c.showBaseline(&b, service.post(cmd.Context(), order, &b, "baselines", "reset"))
		},
	}
	order.flags(cmd)
	return cmd
}

func (o *resetOrder) set(args []string) error {
	o.Policy = args[0]
	for _, arg := range args[1:] {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q is not LABEL=VALUE", arg)
		}
		o.Group[name] = value
	}
	return nil
}

// shownBaseline is a baseline as the API gives it. raw is printed where JSON is asked for.
type shownBaseline struct {
	baselineDetailAPI
	raw json.RawMessage
}

// UnmarshalJSON reads the baseline and keeps the text.
func (b *shownBaseline) UnmarshalJSON(text []byte) error {
	b.raw = slices.Clone(text)
	return json.Unmarshal(text, &b.baselineDetailAPI)
}

func listBaselines(ctx context.Context, c *console, service *client) error {
	var answer struct{ Baselines []shownBaseline }
	if err := service.get(ctx, &answer, "baselines"); err != nil {
		return err
	}
	if c.output == outputJSON {
		return printLines(c, answer.Baselines, func(b shownBaseline) json.RawMessage { return b.raw })
	}
	rows := [][]string{{"BASELINE", "POLICY", "GROUP", "UNITS", "STATE", "FROZEN", "WARM-UP", "USED IN A YEAR"}}
	for _, b := range answer.Baselines {
		rows = append(rows, []string{
			b.id(), b.Policy, labelsText(b.Group), fmt.Sprint(b.Units), b.state(), timeText(b.FrozenAt), b.warmup(), fmt.Sprint(b.UsedInAYear),
		})
	}
	return printTable(c.out, rows)
}

func (b *baselineAPI) id() string {
	if b.ID == nil {
		return ""
	}
	return *b.ID
}

// state says how far a baseline can be relied on.
func (b *baselineAPI) state() string {
	switch {
	case b.EndedAt != nil:
		return "ended"
	case b.ID == nil:
		return "warming up"
	case b.Provisional:
		return "provisional"
	case b.Promoted != nil:
		return "promoted"
	}
	return "accepted"
}

// warmup says what is collected for the next baseline.
func (b *baselineAPI) warmup() string {
	var parts []string
	if w := b.Warmup; w != nil {
		parts = append(parts, fmt.Sprintf("%d of %d units", w.Units, w.Of))
	}
	if n := b.Next; n != nil {
		parts = append(parts, fmt.Sprintf("%d of %d units of policy_version %s", n.Units, n.Of, n.PolicyVersion))
	}
	return strings.Join(parts, "; ")
}

func timeText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339)
}

// showBaseline prints a baseline that the service gave, or gives the error of asking for it.
func (c *console) showBaseline(b *shownBaseline, err error) error {
	if err != nil {
		return err
	}
	return c.print(b.raw, b.text)
}

func (b *shownBaseline) text(w io.Writer) error {
	rows := [][]string{
		{"baseline", b.id()},
		{"state", b.state()},
		{"group", words.Group(b.Policy, b.Group).String()},
		{"units", fmt.Sprint(b.Units)},
		{"frozen", timeText(b.FrozenAt)},
		{"offsets", words.Offsets(b.Offsets)},
		{"warm-up", b.warmup()},
		{"used in a year", fmt.Sprint(b.UsedInAYear)},
	}
	if b.PolicyVersion != nil {
		rows = append(rows, []string{"policy_version", *b.PolicyVersion}, []string{"ignored units", fmt.Sprint(b.IgnoredUnits)})
	}
	if b.Promoted != nil {
		rows = append(rows, []string{"promoted", *b.Promoted})
	}
	if b.Why != nil {
		rows = append(rows, []string{"ended", timeText(b.EndedAt) + ", " + *b.Why})
	}
	for _, p := range b.Past {
		rows = append(rows, []string{"before", fmt.Sprintf("%s, %d units, %s to %s, %s", p.ID, p.Units, timeText(&p.FrozenAt), timeText(&p.EndedAt), p.Why)})
	}
	if err := printTable(w, rows); err != nil || len(b.Quantities) == 0 {
		return err
	}
	table := [][]string{{"SIGNAL", "QUANTITY", "UNITS", "MEAN", "SD", "Q10", "MEDIAN", "Q90"}}
	for _, q := range b.Quantities {
		row := []string{q.Signal, q.Quantity, fmt.Sprint(q.Units)}
		for _, x := range []number{q.Mean, q.SD, q.Q10, q.Median, q.Q90} {
			row = append(row, figureOrDash(x))
		}
		table = append(table, row)
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return printTable(w, table)
}

// figureOrDash writes a number of the API, "" (which tables show as a dash) where it is not known.
func figureOrDash(x number) string {
	if math.IsNaN(float64(x)) {
		return ""
	}
	return words.Short(float64(x))
}

func diffBaselines(ctx context.Context, c *console, service *client, ids []string) error {
	var raw json.RawMessage
	if err := service.get(ctx, &raw, "baselines", ids[0], "diff", ids[1]); err != nil {
		return err
	}
	var d diffAPI
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("the service does not answer as expected: %w", err)
	}
	return c.print(raw, d.text)
}

func (d *diffAPI) text(w io.Writer) error {
	rows := [][]string{{"SIGNAL", "QUANTITY", "BASELINE", "UNITS", "MEAN", "SD", "Q10", "MEDIAN", "Q90", "KS D", "P"}}
	for _, q := range d.Quantities {
		rows = append(rows,
			append([]string{q.Signal, q.Quantity, d.A}, append(q.A.row(), figureOrDash(q.D), figureOrDash(q.P))...),
			append([]string{"", "", d.B}, append(q.B.row(), "", "")...))
	}
	if err := printTable(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", d.Note)
	return err
}

func (s *sampleAPI) row() []string {
	if s == nil {
		return make([]string, 6)
	}
	row := []string{fmt.Sprint(s.Units)}
	for _, x := range []number{s.Mean, s.SD, s.Q10, s.Median, s.Q90} {
		row = append(row, figureOrDash(x))
	}
	return row
}
