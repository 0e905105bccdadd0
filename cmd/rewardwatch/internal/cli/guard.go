package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/client"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors"
)

func newGuardCommand(c *terminal.Console) *cobra.Command {
	service := &client.Client{}
	cmd := showsHelp(&cobra.Command{
		Use:   "guard",
		Short: "Show and release the guards of a running service",
	})
	service.Flags(cmd)
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the guards of all policies", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return listGuards(cmd.Context(), c, service) },
		},
		&cobra.Command{
			Use: "show POLICY", Short: "Show the guards of a policy", Args: cobra.ExactArgs(1), ValidArgsFunction: completePolicies(service),
			RunE: func(cmd *cobra.Command, args []string) error {
				var g shownGuards
				return showGuards(c, &g, service.Get(cmd.Context(), &g, "guards", args[0]))
			},
		},
		&cobra.Command{
			Use: "history POLICY", Short: "Show when the guards of a policy tripped and who released them", Args: cobra.ExactArgs(1),
			ValidArgsFunction: completePolicies(service),
			RunE:              func(cmd *cobra.Command, args []string) error { return guardHistory(cmd.Context(), c, service, args[0]) },
		},
		newReleaseCommand(c, service))
	return cmd
}

func newReleaseCommand(c *terminal.Console, service *client.Client) *cobra.Command {
	var why wire.Reason
	cmd := &cobra.Command{
		Use:   "release POLICY GUARD --why TEXT",
		Short: "Release a guard that has tripped",
		Long: "Closes the guard's incident. Agents resume normal operation, and the guard starts counting from zero. While the\n" +
			"policy stays within the limit, the guard trips again with a probability of at most alpha.",
		Args: cobra.ExactArgs(2),
		ValidArgsFunction: completeOfPolicy(service, func(ctx context.Context, policy string) (names []cobra.Completion, err error) {
			var of wire.Guards
			err = service.Get(ctx, &of, "guards", policy)
			for i := range of.Guards {
				if of.Guards[i].Tripped {
					names = append(names, of.Guards[i].Name)
				}
			}
			return names, err
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := why.Check(); err != nil {
				return err
			}
			var g shownGuards
			return showGuards(c, &g, service.Post(cmd.Context(), why, &g, "guards", args[0], args[1], "release"))
		},
	}
	client.ReasonFlags(cmd, &why)
	return cmd
}

// guardHistory prints the trips and releases of the guards of a policy, newest first.
func guardHistory(ctx context.Context, c *terminal.Console, service *client.Client, policy string) error {
	var answer wire.GuardHistory
	if err := service.Get(ctx, &answer, "guards", policy, "history"); err != nil {
		return err
	}
	return c.Print(answer.Events, func(w io.Writer) error {
		rows := [][]string{{"TELEMETRY TIME", "GUARD", "FROM", "TO", "BY", "DECIDED", "REASON"}}
		for i := range answer.Events {
			e := &answer.Events[i]
			by, decided := "", ""
			if e.By != nil {
				by = *e.By
			}
			if e.Decided != nil {
				decided = wire.At(e.Decided.UnixNano()).String()
			}
			rows = append(rows, []string{instantText(e.TS), e.Guard, e.From, e.To, by, decided, e.Why})
		}
		return terminal.PrintTable(w, rows)
	})
}

// shownGuards are the guards of a policy as returned by the API. raw is printed as JSON.
type shownGuards struct {
	wire.Guards
	raw json.RawMessage
}

// UnmarshalJSON reads the guards and keeps their text.
func (g *shownGuards) UnmarshalJSON(text []byte) error {
	type plain shownGuards
	g.raw = slices.Clone(text)
	return json.Unmarshal(text, (*plain)(g))
}

func listGuards(ctx context.Context, c *terminal.Console, service *client.Client) error {
	var answer struct{ Guards []shownGuards }
	if err := service.Get(ctx, &answer, "guards"); err != nil {
		return err
	}
	raw := []json.RawMessage{}
	for i := range answer.Guards {
		raw = append(raw, answer.Guards[i].raw)
	}
	return c.Print(raw, func(w io.Writer) error {
		rows := [][]string{{"POLICY", "GUARD", "STATE", "SINCE", "LIMIT", "CURRENT", "VALUES"}}
		for i := range answer.Guards {
			rows = append(rows, guardRows(&answer.Guards[i].Guards)...)
		}
		return terminal.PrintTable(w, rows)
	})
}

func guardRows(p *wire.Guards) (rows [][]string) {
	for i := range p.Guards {
		g := &p.Guards[i]
		rows = append(rows, []string{p.Policy, g.Name, g.State, instantText(g.Since), g.Limit, guardMean(g), fmt.Sprintf("%.0f", g.Values)})
	}
	return rows
}

// guardMean returns the mean of the values that a guard has counted, or "" without any.
func guardMean(g *wire.Guard) string {
	if g.Values == 0 {
		return ""
	}
	return detectors.Figure(float64(g.Mean), 3)
}

func instantText(i *wire.Instant) string {
	if i == nil {
		return ""
	}
	return i.String()
}

// showGuards prints the guards of a policy, or returns err if it is not nil.
func showGuards(c *terminal.Console, g *shownGuards, err error) error {
	if err != nil {
		return err
	}
	return c.Print(g.raw, func(w io.Writer) error {
		rows := [][]string{{"policy", g.Policy}, {"state", g.State}, {"since", instantText(g.Since)}}
		if g.Why != nil {
			rows = append(rows, []string{"reason", *g.Why})
		}
		rows = append(rows, []string{"on silence", fmt.Sprintf("%s after %s", g.OnSilence, model.Duration(g.MaxAge*float64(time.Second)))})
		if err := terminal.PrintTable(w, rows); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		table := [][]string{{"GUARD", "STATE", "SINCE", "LIMIT", "CURRENT", "VALUES", "REASON"}}
		for i, row := range guardRows(&g.Guards) {
			why := ""
			if of := g.Guards.Guards[i].Why; of != nil {
				why = *of
			}
			table = append(table, append(row[1:], why))
		}
		return terminal.PrintTable(w, table)
	})
}
