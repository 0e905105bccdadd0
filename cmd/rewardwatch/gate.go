package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
)

// How a gate ends that does not let a version pass, once its result is printed: exit 1 and 3, and nothing more to say.
var (
	errGateFailed = errors.New("the version is worse")
	errGateOpen   = errors.New("there is not enough data for a verdict")
)

func newGateCommand(c *console) *cobra.Command {
	service := &client{}
	cmd := &cobra.Command{
		Use:   "gate POLICY VERSION",
		Short: "Say whether a new version of a policy does as well as production",
		Long: "Asks the running service what it has found of a policy_version that serves beside production, or whose telemetry has\n" +
			"the label shadow. Exit 0 where it is better or the same, 1 where it is worse, 3 where there is not enough data yet,\n" +
			"2 on an error. It may be asked at any time, as often as you like.",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return askGate(cmd.Context(), c, service, args[0], args[1])
		},
	}
	service.flags(cmd)
	return cmd
}

func askGate(ctx context.Context, c *console, service *client, policy, version string) error {
	var raw json.RawMessage
	if err := service.get(ctx, &raw, "gates", policy, version); err != nil {
		return err
	}
	var g shownGate
	if err := json.Unmarshal(raw, &g); err != nil {
		return fmt.Errorf("the service does not answer as expected: %w", err)
	}
	if err := c.print(raw, g.text); err != nil {
		return err
	}
	switch g.Verdict {
	case bank.Better, bank.Same:
		return nil
	case bank.Worse:
		return errGateFailed
	}
	return errGateOpen
}

// shownGate is a gate as it is printed.
type shownGate struct{ gateAPI }

func (g *shownGate) text(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s: %s\n%s\n", printable(g.Version), g.Verdict, printable(g.Why)); err != nil {
		return err
	}
	for i := range g.Groups {
		if err := g.Groups[i].text(w, g.Policy); err != nil {
			return err
		}
	}
	return nil
}

func (g *groupGateAPI) text(w io.Writer, policy string) error {
	units := fmt.Sprint(g.Units)
	if g.UnitsNeeded != nil {
		units += fmt.Sprintf(", of about %d for the verdict that it is the same", *g.UnitsNeeded)
	}
	if g.Shadow {
		units += ", in shadow"
	}
	rows := [][]string{
		{"group", words.Group(policy, g.Group).String()},
		{"verdict", string(g.Verdict)},
		{"units", units},
		{"compared with", fmt.Sprintf("policy_version %s, baseline %s", g.Production, g.Baseline)},
	}
	if g.Ended != nil {
		rows = append(rows, []string{"ended", *g.Ended})
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	if err := printTable(w, rows); err != nil {
		return err
	}
	table := [][]string{{"SIGNAL", "QUANTITY", "BEFORE", "AFTER", "PRODUCTION NOW", "EFFECT", "FROM", "TO", "SCORE", "VERDICT", "WHY"}}
	for i := range g.Signals {
		table = append(table, g.Signals[i].row())
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return printTable(w, table)
}

func (s *gateSignalAPI) row() []string {
	verdict := ""
	if s.Verdict != nil {
		verdict = string(*s.Verdict)
	}
	return []string{
		s.Signal, s.Quantity, s.Before.mean(), s.After.mean(), s.Meanwhile.mean(), figureOrDash(s.Effect), figureOrDash(s.Low), figureOrDash(s.High),
		figureOrDash(s.Score), verdict, s.Why,
	}
}

func (m *gateMeanAPI) mean() string {
	if m == nil {
		return ""
	}
	return figureOrDash(m.Mean)
}
