package pipelines

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/fill"
)

func newFillCommand(c *terminal.Console, o pipeline.Options) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "fill -o DIRECTORY FILE",
		Short: "Ask a language model to propose what the templates leave open",
		Long: "Asks the endpoint in model.url for a paragraph of the model card, a function that extracts features, and a comment on reward\n" +
			"shaping, unless you have written them. Checks each proposal, writes those that pass to " + fill.File + ", and prints what\n" +
			"accept would change. Existing proposals are not requested again. Exits with 2 if a proposal could not be obtained.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := pipeline.Run(args[0], "", in(dir, o))
			if err != nil {
				return err
			}
			outcomes, changes, err := fill.Fill(cmd.Context(), w, dir)
			return printFilled(c, outcomes, changes, err)
		},
	}
	directoryFlag(cmd, &dir)
	return cmd
}

func newAcceptCommand(c *terminal.Console, o pipeline.Options) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "accept -o DIRECTORY FILE [NAME...]",
		Short: "Write the proposals made by fill into the generated files",
		Long: "Writes the proposals made by fill between the keep markers of the generated files, which generate does not change, and prints\n" +
			"what changed. Without names, accepts all proposals. Does not call the model. Exits with 2 if a proposal cannot be accepted.",
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return extensions, cobra.ShellCompDirectiveFilterFileExt
			}
			var names []string
			for _, h := range fill.Holes() {
				if !slices.Contains(args[1:], h.Name) {
					names = append(names, h.Name+"\t"+h.File)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			w, err := pipeline.Run(args[0], "", in(dir, o))
			if err != nil {
				return err
			}
			outcomes, changes, err := fill.Accept(w, dir, args[1:])
			if outcomes == nil {
				return err
			}
			if written := pipeline.Write(changes, dir); written != nil {
				return written
			}
			return printFilled(c, outcomes, changes, err)
		},
	}
	directoryFlag(cmd, &dir)
	return cmd
}

// printFilled prints the outcome for each place, the corrections, and the changes, and returns the error. Without
// outcomes it prints nothing.
func printFilled(c *terminal.Console, outcomes []fill.Outcome, changes []pipeline.Change, failed error) error {
	if outcomes == nil {
		return failed
	}
	rows := [][]string{{"NAME", "FILE", "STATE", "CORRECTIONS"}}
	for _, o := range outcomes {
		rows = append(rows, []string{o.Hole, o.File, string(o.State), fmt.Sprint(max(0, len(o.Rounds)-1))})
	}
	paint := terminal.PaintFor(c.Out)
	printed := c.Print(outcomes, func(w io.Writer) error {
		if err := terminal.PrintTable(w, rows); err != nil {
			return err
		}
		for _, o := range outcomes {
			for i, r := range o.Rounds {
				if len(r.Faults) == 0 {
					continue
				}
				if _, err := fmt.Fprintf(w, "%s: response %d: %s\n", o.Hole, i+1, terminal.Printable(strings.Join(r.Faults, "; "))); err != nil {
					return err
				}
			}
		}
		return printDiffs(w, paint, changes)
	})
	return cmp.Or(printed, failed)
}
