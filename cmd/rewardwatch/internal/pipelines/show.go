package pipelines

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline"
)

// listedChange is a change as JSON.
type listedChange struct {
	Path   string `json:"path"`
	Change string `json:"change"` // new, changed, removed or same
}

func listed(changes []pipeline.Change) []listedChange {
	out := make([]listedChange, len(changes))
	for i := range changes {
		out[i] = listedChange{changes[i].Path, kindOf(&changes[i])}
	}
	return out
}

func kindOf(c *pipeline.Change) string {
	switch {
	case !c.Exists:
		return "new"
	case c.Removed:
		return "removed"
	case c.Changed():
		return "changed"
	}
	return "same"
}

func summary(w io.Writer, changes []pipeline.Change) error {
	for i := range changes {
		if _, err := fmt.Fprintf(w, "%-8s%s\n", kindOf(&changes[i]), changes[i].Path); err != nil {
			return err
		}
	}
	return nil
}

func newDiffCommand(c *terminal.Console, o pipeline.Options) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "diff -o DIRECTORY FILE",
		Short: "Print what generate would change in a repository",
		Args:  cobra.ExactArgs(1),

		ValidArgsFunction: completeFile,
		RunE: func(_ *cobra.Command, args []string) error {
			changes, err := changesOf(args[0], dir, o)
			if err != nil {
				return err
			}
			paint := terminal.PaintFor(c.Out)
			return c.Print(listed(changes), func(w io.Writer) error { return printDiffs(w, paint, changes) })
		},
	}
	directoryFlag(cmd, &dir)
	return cmd
}

func printDiffs(w io.Writer, paint terminal.Paint, changes []pipeline.Change) error {
	for i := range changes {
		if err := printDiff(w, paint, &changes[i]); err != nil {
			return err
		}
	}
	return nil
}

// printDiff prints a change as a unified diff, with removed lines in red and added lines in green.
func printDiff(w io.Writer, paint terminal.Paint, c *pipeline.Change) error {
	if !c.Changed() {
		return nil
	}
	after := "b/" + c.Path
	if c.Removed {
		after = "/dev/null"
	}
	text := udiff.Unified("a/"+c.Path, after, c.Before, c.After)
	for line := range strings.Lines(text) {
		line = terminal.Printable(strings.TrimSuffix(line, "\n"))
		switch {
		case strings.HasPrefix(line, "+"):
			line = paint.In(terminal.Green, line)
		case strings.HasPrefix(line, "-"):
			line = paint.In(terminal.Red, line)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

func newExplainCommand(c *terminal.Console, o pipeline.Options) *cobra.Command {
	var line int
	var all bool
	cmd := &cobra.Command{
		Use:   "explain FILE [GENERATED]",
		Short: "Show which input line produced each generated line",
		Long: "Prints the lines of a generated file with the values that they contain, and where the pipeline file sets these values.\n" +
			"Values without a location are defaults. With --line, prints all generated lines that a line of the pipeline file produced.",
		Example: "  rewardwatch pipeline explain pipeline.yaml pipeline/train.py\n  rewardwatch pipeline explain pipeline.yaml --line 12",
		Args:    cobra.RangeArgs(1, 2),

		ValidArgsFunction: completeArtefact(o),
		RunE: func(_ *cobra.Command, args []string) error {
			w, err := pipeline.Run(args[0], "", in("", o))
			if err != nil {
				return err
			}
			lines, err := explained(w, args, line, all)
			if err != nil {
				return err
			}
			return printTable(c, lines, explainedRows(lines))
		},
	}
	cmd.Flags().IntVar(&line, "line", 0, "explain this line of the pipeline file instead of a generated file")
	_ = cmd.RegisterFlagCompletionFunc("line", cobra.NoFileCompletions) // fails only for a flag that does not exist
	cmd.Flags().BoolVar(&all, "all", false, "also show lines that come only from the template")
	return cmd
}

func explained(w *pipeline.Work, args []string, line int, all bool) ([]pipeline.Explained, error) {
	if (len(args) == 2) == (line > 0) {
		return nil, fmt.Errorf("explain requires either a generated file or --line")
	}
	if line > 0 {
		return pipeline.Made(w, args[0], line), nil
	}
	var paths []string
	for i := range w.Artefacts {
		if a := &w.Artefacts[i]; a.Path == filepath.ToSlash(filepath.Clean(args[1])) {
			return pipeline.Explain(a, all), nil
		}
		paths = append(paths, w.Artefacts[i].Path)
	}
	return nil, fmt.Errorf("unknown generated file %q; expected one of %s", args[1], strings.Join(paths, ", "))
}

func explainedRows(lines []pipeline.Explained) [][]string {
	rows := [][]string{{"LINE", "TEXT", "FROM"}}
	for _, e := range lines {
		var from []string
		for _, o := range e.Origins {
			place := "default"
			if o.Place.Line > 0 {
				place = fmt.Sprintf("%s:%d:%d", o.Place.File, o.Place.Line, o.Place.Column)
			}
			from = append(from, o.Path+" ("+place+")")
		}
		text := terminal.Printable(strings.TrimSpace(e.Text))
		rows = append(rows, []string{e.File + ":" + strconv.Itoa(e.Line), text, terminal.Dash(strings.Join(from, ", "))})
	}
	return rows
}

func newSchemaCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of pipeline files, for editors",
		Args:  cobra.NoArgs,

		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			_, err := c.Out.Write(pipeline.Schema())
			return err
		},
	}
}
