package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/client"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

func newRetrainCommand(c *terminal.Console) *cobra.Command {
	service := &client.Client{}
	cmd := showsHelp(&cobra.Command{
		Use:   "retrain",
		Short: "Show retrain requests, decide on them, report the status of their jobs, and compare recipes",
	})
	service.Flags(cmd)
	cmd.AddCommand(
		newRequestListCommand(c, service), newRequestShowCommand(c, service), newRetrainDiffCommand(c, service),
		newRetrainAskCommand(c, service), newLedgerCommand(c, service),
		newRequestDecisionCommand(c, service, "approve", "Approve a request that is waiting for approval",
			"Delivers the request immediately. If the target cannot be reached, delivery is retried for up to 24 hours."),
		newRequestDecisionCommand(c, service, "reject", "End a request that is not finished",
			"Ends the request without an outcome. A target that already has it is not notified: stop its job yourself. Later\n"+
				"reports from the job are rejected.\n"+
				"The incident does not trigger another request. The policy's next incident can, once the trigger's cooldown is over."),
		newRequestDecisionCommand(c, service, "withdraw", "End a request that has not been delivered",
			"Ends the request before the target receives it. The incident does not trigger another request. A request that has been\n"+
				"delivered can only be rejected."),
		newRequestDecisionCommand(c, service, "resend", "Deliver a request again",
			"Use this if the request could not be delivered, or if the target has lost it. The id and the body stay the same: a target\n"+
				"that already has the request must not act on it twice."),
		newJobStatusCommand(c, service), newRetrainExportCommand(c, service))
	return cmd
}

func newRetrainDiffCommand(c *terminal.Console, service *client.Client) *cobra.Command {
	var config string
	cmd := &cobra.Command{
		Use:   "diff A B [--config FILE]",
		Short: "Compare the contracts and configs of two recipes or requests",
		Long: "A and B are recipes in the configuration, or request ids (rr_...) of the running service. They are compared after\n" +
			"resolving inheritance. Each differing value is shown with its file and line. Templates are not expanded.\n" +
			"Exits with 0 whether or not they differ, and with 2 on an error.",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeIDs(service, aRequest, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return diffRetrainings(cmd.Context(), c, &retrainings{service: service, config: config}, args[0], args[1])
		},
	}
	cmd.Flags().StringVar(&config, "config", "", "configuration file with retrain.recipes")
	return cmd
}

// retrainings resolves the contract and config of a retraining, by the name of its recipe or the id of its request.
type retrainings struct {
	service *client.Client
	config  string
	recipes recipe.Recipes // nil until the first one is needed
}

// leaves returns contract and config after inheritance, and the name under which they are shown.
func (r *retrainings) leaves(ctx context.Context, name string) (shown string, leaves []recipe.Leaf, err error) {
	if !recipe.IsRequestID(name) {
		leaves, err = r.ofRecipe(name)
		return "recipe " + name, leaves, err
	}
	if name, err = fullID(ctx, r.service, aRequest, name); err != nil {
		return "", nil, err
	}
	var request ledger.Request
	if err := r.service.Get(ctx, &request, "retrain-requests", name); err != nil {
		return "", nil, err
	}
	if leaves, err = recipe.LeavesOfOrder(request.Order); err != nil {
		return "", nil, fmt.Errorf("request %s: %w", name, err)
	}
	return fmt.Sprintf("request %s (recipe %s)", name, request.Recipe), leaves, nil
}

func (r *retrainings) ofRecipe(name string) ([]recipe.Leaf, error) {
	if r.recipes == nil {
		if r.config == "" {
			return nil, errors.New("--config is required to compare recipes: pass the configuration file with retrain.recipes")
		}
		cfg, err := config.LoadForService(r.config)
		if err != nil {
			return nil, err
		}
		r.recipes = cfg.Recipes
	}
	recipe := r.recipes[name]
	if recipe == nil {
		return nil, fmt.Errorf("unknown recipe %q; available: %s", name, strings.Join(slices.Sorted(maps.Keys(r.recipes)), ", "))
	}
	return recipe.Leaves(), nil
}

// retrainDiff is the result of retrain diff.
type retrainDiff struct {
	A           string            `json:"a"`
	B           string            `json:"b"`
	Differences []retrainLineJSON `json:"differences"`
}

// retrainLineJSON is a value that differs between the two. It is null on the side that does not have it.
type retrainLineJSON struct {
	Path    string           `json:"path"`
	Change  string           `json:"change"` // added, removed or changed
	Old     *json.RawMessage `json:"old"`
	New     *json.RawMessage `json:"new"`
	OldFrom *string          `json:"old_from"` // file:line
	NewFrom *string          `json:"new_from"`
}

func diffRetrainings(ctx context.Context, c *terminal.Console, r *retrainings, a, b string) error {
	shownA, old, err := r.leaves(ctx, a)
	if err != nil {
		return err
	}
	shownB, now, err := r.leaves(ctx, b)
	if err != nil {
		return err
	}
	differences := recipe.Differences(old, now)
	out := retrainDiff{A: a, B: b, Differences: []retrainLineJSON{}}
	for _, d := range differences {
		out.Differences = append(out.Differences, retrainLine(d))
	}
	return c.Print(out, func(w io.Writer) error {
		return diffText(w, terminal.PaintFor(w), shownA, shownB, differences)
	})
}

func retrainLine(d recipe.Difference) retrainLineJSON {
	line := retrainLineJSON{Path: d.Path, Change: "changed"}
	if d.Old == nil {
		line.Change = "added"
	} else {
		line.Old, line.OldFrom = new(json.RawMessage(d.Old.Value)), wire.OrNull(d.Old.From)
	}
	if d.New == nil {
		line.Change = "removed"
	} else {
		line.New, line.NewFrom = new(json.RawMessage(d.New.Value)), wire.OrNull(d.New.From)
	}
	return line
}

// diffText prints a line with - for each value that only a has, and a line with + for each value that only b has.
func diffText(w io.Writer, p terminal.Paint, a, b string, differences []recipe.Difference) error {
	var out strings.Builder
	line := func(c terminal.Colour, text string) { out.WriteString(p.In(c, terminal.Printable(text)) + "\n") }
	side := func(c terminal.Colour, sign string, l *recipe.Leaf) {
		if l == nil {
			return
		}
		text := fmt.Sprintf("%s %s: %s", sign, l.Path, l.Value)
		if l.From != "" {
			text += "  (" + l.From + ")"
		}
		line(c, text)
	}
	line(terminal.Red, "--- "+a)
	line(terminal.Green, "+++ "+b)
	for _, d := range differences {
		side(terminal.Red, "-", d.Old)
		side(terminal.Green, "+", d.New)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
