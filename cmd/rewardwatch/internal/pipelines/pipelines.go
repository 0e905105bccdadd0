// Package pipelines implements the command pipeline, which generates the files of retraining pipelines.
package pipelines

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/propose"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// NewCommand returns the pipeline command. release is the version of this program, which generated images install
// unless their file names another one.
func NewCommand(c *terminal.Console, release string) *cobra.Command {
	o := pipeline.Options{Release: release}
	cmd := &cobra.Command{
		Use:   "pipeline",
		Short: "Generate a retraining pipeline from one short file",
		Long: "Generates a retraining pipeline from a short description of a reinforcement-learning project: workflows, container\n" +
			"image, scripts, evaluation, gate and Rewardwatch configuration. See docs/pipelines.md.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newInitCommand(c), newValidateCommand(c, o), newPlanCommand(c, o), newGenerateCommand(c, o), newDiffCommand(c, o),
		newExplainCommand(c, o), newFillCommand(c, o), newAcceptCommand(c, o), newSchemaCommand(c),
	)
	for _, sub := range cmd.Commands() {
		run := sub.RunE
		sub.RunE = func(cmd *cobra.Command, args []string) error { return printed(c, run(cmd, args)) }
	}
	return cmd
}

// printed prints the mistakes in a file as the result of a command with --output json.
func printed(c *terminal.Console, err error) error {
	bad, ok := errors.AsType[*yamlfile.Error](err)
	if !ok || c.Output != terminal.OutputJSON {
		return err
	}
	result := struct {
		Errors []terminal.FileError `json:"errors"`
	}{terminal.FileErrors(bad.Problems)}
	if err := c.Print(result, nil); err != nil {
		return err
	}
	return terminal.ErrReported
}

// directoryFlag adds the flag for the root of the repository.
func directoryFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVarP(dir, "directory", "o", "", "root of the repository")
	_ = cmd.MarkFlagRequired("directory") // fails only for a flag that does not exist
	_ = cmd.MarkFlagDirname("directory")
}

func newInitCommand(c *terminal.Console) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "init [--file FILE] DIRECTORY",
		Short: "Propose a pipeline file based on the contents of a repository",
		Long: "Searches the files of a repository for environments, algorithms, packages and programs, without running them. Prints a\n" +
			"pipeline file, or writes it to a new file. Replace each CHANGE-ME in it.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeDirectory,
		RunE:              func(_ *cobra.Command, args []string) error { return proposeFile(c, args[0], file) },
	}
	cmd.Flags().StringVar(&file, "file", "", "new file to write (default: standard output)")
	_ = cmd.MarkFlagFilename("file", extensions...)
	return cmd
}

func proposeFile(c *terminal.Console, dir, file string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	p, err := propose.Repository(filepath.Base(absolute), os.DirFS(dir))
	if err != nil {
		return fmt.Errorf("read the repository: %w", err)
	}
	text, err := p.Text()
	if err != nil {
		return err
	}
	if file == "" {
		return c.Print(p, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return c.Print(p, func(w io.Writer) error {
		for _, x := range p.Unread {
			if _, err := fmt.Fprintf(w, "Not read: %s.\n", terminal.Printable(x)); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(w, "Found %s. Wrote %s.\n", strings.Join(p.Found(), ", "), terminal.Printable(file))
		return err
	})
}

// printTable prints a value as JSON, or its rows as a table.
func printTable(c *terminal.Console, value any, rows [][]string) error {
	return c.Print(value, func(w io.Writer) error { return terminal.PrintTable(w, rows) })
}

func newValidateCommand(c *terminal.Console, o pipeline.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a pipeline file and everything that it would generate",
		Long:  "Runs all checks without writing anything, and prints the result of each. Prints errors and warnings as file:line:column: message, and exits with 2 if there are errors.",
		Args:  cobra.ExactArgs(1),

		ValidArgsFunction: completeFile,
		RunE: func(_ *cobra.Command, args []string) error {
			w, err := pipeline.Run(args[0], "", in("", o))
			if err != nil {
				return err
			}
			warn(c, w)
			rows := [][]string{{"FILTER", "RESULT"}}
			for _, s := range w.Trace {
				rows = append(rows, []string{s.Filter, s.Did})
			}
			return printTable(c, w.Trace, rows)
		},
	}
}

// warn prints the warnings about a file.
func warn(c *terminal.Console, w *pipeline.Work) {
	for _, p := range w.Warnings {
		c.Tell("%s", terminal.Printable(p.String()))
	}
}

func newPlanCommand(c *terminal.Console, o pipeline.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "plan FILE",
		Short: "Print the stages of a pipeline",
		Args:  cobra.ExactArgs(1),

		ValidArgsFunction: completeFile,
		RunE: func(_ *cobra.Command, args []string) error {
			w, err := pipeline.Run(args[0], "plan", o)
			if err != nil {
				return err
			}
			rows := [][]string{{"STAGE", "AFTER", "BECAUSE OF", "DOES"}}
			for _, s := range w.Stages {
				rows = append(rows, []string{s.Name, terminal.Dash(strings.Join(s.Needs, ", ")), s.Cause, s.Title})
			}
			return printTable(c, w.Stages, rows)
		},
	}
}

func newGenerateCommand(c *terminal.Console, o pipeline.Options) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "generate -o DIRECTORY FILE",
		Short: "Generate the pipeline files",
		Long: "Writes the files of a pipeline into a repository. Keeps the text between keep and end markers. Removes files that are no\n" +
			"longer generated. Writes nothing if the pipeline file contains an error, or if it would overwrite a file it did not generate.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFile,
		RunE: func(_ *cobra.Command, args []string) error {
			w, err := pipeline.Run(args[0], "", in(dir, o))
			if err != nil {
				return err
			}
			warn(c, w)
			changes, err := pipeline.Changes(w, dir)
			if err != nil {
				return err
			}
			if err := pipeline.Write(changes, dir); err != nil {
				return err
			}
			return c.Print(listed(changes), func(w io.Writer) error { return summary(w, changes) })
		},
	}
	directoryFlag(cmd, &dir)
	return cmd
}

func changesOf(file, dir string, o pipeline.Options) ([]pipeline.Change, error) {
	w, err := pipeline.Run(file, "", in(dir, o))
	if err != nil {
		return nil, err
	}
	return pipeline.Changes(w, dir)
}
