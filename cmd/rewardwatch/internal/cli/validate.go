package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// validation is the result of validate.
type validation struct {
	File   string      `json:"file"`
	OK     bool        `json:"ok"`
	Errors []fileError `json:"errors"`
}

type fileError struct {
	yamlfile.Problem
	Text string `json:"text"` // the whole line, as printed for people
}

func newValidateCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a configuration file and its recipes",
		Long: "Check a configuration file, and the recipes of its retrain.recipes, strictly: an unknown key, a key given twice, a wrong " +
			"type and a value out of range are errors. All of them are printed as file:line:column: message. Exit 2 where there is one.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return validate(c, args[0]) },
	}
}

func validate(c *terminal.Console, path string) error {
	_, err := config.LoadForService(path)
	bad, ok := errors.AsType[*yamlfile.Error](err)
	if err != nil && !ok {
		return err
	}
	v := validation{File: path, OK: bad == nil, Errors: []fileError{}}
	if bad != nil {
		for _, p := range bad.Problems {
			v.Errors = append(v.Errors, fileError{Problem: p, Text: p.String()})
		}
	}
	if err := c.Print(v, v.text); err != nil {
		return err
	}
	if !v.OK {
		return terminal.ErrReported
	}
	return nil
}

func (v validation) text(w io.Writer) error {
	if v.OK {
		_, err := fmt.Fprintln(w, "ok")
		return err
	}
	for _, e := range v.Errors {
		if _, err := fmt.Fprintln(w, e.Text); err != nil {
			return err
		}
	}
	return nil
}
