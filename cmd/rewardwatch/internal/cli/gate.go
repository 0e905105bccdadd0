package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/client"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// Results of a gate that does not let a version pass: exit status 1 and 3. The result has already been printed, so
// there is no further message.
var (
	errGateFailed = errors.New("the version is worse")
	errGateOpen   = errors.New("there is not enough data for a verdict")
)

func newGateCommand(c *terminal.Console) *cobra.Command {
	service := &client.Client{}
	cmd := &cobra.Command{
		Use:   "gate POLICY VERSION",
		Short: "Check whether a new policy version performs as well as production",
		Long: "Compares a policy_version with production. The version must either serve alongside production or send telemetry labeled shadow.\n" +
			"Exits with 0 if the version is better or the same, 1 if it is worse, 2 on an error, 3 if there is not enough data, and 4 if the service rejects the request, for example because the policy is unknown.\n" +
			"You can run this command as often as you like.",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completePolicies(service),
		RunE: func(cmd *cobra.Command, args []string) error {
			return askGate(cmd.Context(), c, service, args[0], args[1])
		},
	}
	service.Flags(cmd)
	return cmd
}

func askGate(ctx context.Context, c *terminal.Console, service *client.Client, policy, version string) error {
	var raw json.RawMessage
	if err := service.Get(ctx, &raw, "gates", policy, version); err != nil {
		return orRefused(err)
	}
	var g shownGate
	if err := json.Unmarshal(raw, &g); err != nil {
		return fmt.Errorf("read the service's response, which may be from a different version: %w", err)
	}
	if err := c.Print(raw, g.text); err != nil {
		return err
	}
	switch g.Verdict {
	case finding.Better, finding.Same:
		return nil
	case finding.Worse:
		return errGateFailed
	}
	return errGateOpen
}

// shownGate is a gate with its text for people.
type shownGate struct{ wire.Gate }

func (g *shownGate) text(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s: %s\n%s\n", terminal.Printable(g.Version), g.Verdict, terminal.Printable(g.Why)); err != nil {
		return err
	}
	for i := range g.Groups {
		if err := groupGateText(&g.Groups[i], w, g.Policy); err != nil {
			return err
		}
	}
	return nil
}

func groupGateText(g *wire.GroupGate, w io.Writer, policy string) error {
	unit := g.UnitName()
	units := fmt.Sprint(g.Units)
	if g.UnitsNeeded != nil {
		units += fmt.Sprintf(", of about %d needed for the verdict \"same\"", *g.UnitsNeeded)
	}
	if g.Shadow {
		units += ", in shadow"
	}
	rows := [][]string{
		{"group", words.Group(policy, g.Group).String()},
		{"verdict", string(g.Verdict)},
		{unit.Sized(), units},
		{"compared with", fmt.Sprintf("policy_version %s, baseline %s", g.Production, g.Baseline)},
	}
	if g.Ended != nil {
		rows = append(rows, []string{"ended", *g.Ended})
	}
	if o := g.OffPolicy; o != nil {
		rows = append(rows, []string{"earned", o.Words(unit)})
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	if err := terminal.PrintTable(w, rows); err != nil {
		return err
	}
	table := [][]string{{"SIGNAL", "QUANTITY", "BEFORE", "AFTER", "PRODUCTION NOW", "EFFECT", "FROM", "TO", "SCORE", "VERDICT", "REASON"}}
	for i := range g.Signals {
		table = append(table, gateRow(&g.Signals[i]))
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return terminal.PrintTable(w, table)
}

func gateRow(s *wire.GateSignal) []string {
	verdict := ""
	if s.Verdict != nil {
		verdict = string(*s.Verdict)
	}
	return []string{
		s.Signal, s.Quantity, gateMeanText(s.Before), gateMeanText(s.After), gateMeanText(s.Meanwhile), figureOrDash(s.Effect), figureOrDash(s.Low), figureOrDash(s.High),
		figureOrDash(s.Score), verdict, s.Why,
	}
}

func gateMeanText(m *wire.GateMean) string {
	if m == nil {
		return ""
	}
	return figureOrDash(m.Mean)
}
