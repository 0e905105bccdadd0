package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/sample"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// validateOptions are the flags of validate.
type validateOptions struct {
	samples []string
	topic   string
}

// validation is the result of validate.
type validation struct {
	File   string               `json:"file"`
	OK     bool                 `json:"ok"`
	Errors []terminal.FileError `json:"errors"`

	Warnings []terminal.FileError `json:"warnings"`         // files that cannot be read here, and orders that are refused
	Sample   *sample.Report       `json:"sample,omitempty"` // with --sample, if there is no error
}

func newValidateCommand(c *terminal.Console) *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use:   "validate [flags] FILE",
		Short: "Check a configuration file and its recipes",
		Long: "Checks a configuration file and the recipes in retrain.recipes. Unknown keys, duplicate keys, wrong types and values out " +
			"of range are errors. Prints each error as file:line:column: message. Exits with 2 if there is an error.\n" +
			"Also prints a warning if a file named in the configuration cannot be read on this machine.\n\n" +
			"With --sample, reads records from a file using the format and mapping of the topic. Prints how many are accepted,\n" +
			"skipped and rejected, and the first records before and after the mapping. Exits with 2 if no record yields an event,\n" +
			"or if a mapping field that has no default is missing from every record.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return validate(cmd.Context(), c, o, args[0]) },
	}
	cmd.Flags().StringArrayVar(&o.samples, "sample", nil, "file with sample records of the topic; can be repeated")
	cmd.Flags().StringVar(&o.topic, "topic", "", "topic of the sample; required if the configuration has more than one topic")
	return cmd
}

func validate(ctx context.Context, c *terminal.Console, o validateOptions, path string) error {
	cfg, err := config.LoadForService(path)
	bad, ok := errors.AsType[*yamlfile.Error](err)
	if err != nil && !ok {
		return err
	}
	v := validation{File: path, OK: bad == nil, Errors: []terminal.FileError{}, Warnings: []terminal.FileError{}}
	if bad != nil {
		v.Errors = terminal.FileErrors(bad.Problems)
	} else {
		warnings, err := config.Warnings(path)
		if err != nil {
			return err
		}
		v.Warnings = terminal.FileErrors(warnings)
	}
	if v.OK && len(o.samples) > 0 {
		read, err := cfg.Ingest.Files(o.topic, o.samples)
		if err != nil {
			return err
		}
		if len(read.Topics) > 0 {
			return errors.New("the configuration has more than one topic: choose one with --topic")
		}
		if v.Sample, err = sample.Read(ctx, read.Format, c.In, o.samples); err != nil {
			return err
		}
		v.OK = v.Sample.Usable()
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
	for _, e := range v.Errors {
		if _, err := fmt.Fprintln(w, e.Text); err != nil {
			return err
		}
	}
	for _, e := range v.Warnings {
		if e.Path != "" {
			e.Message = e.Path + ": " + e.Message
		}
		e.Path = "warning"
		if _, err := fmt.Fprintln(w, e.Problem); err != nil {
			return err
		}
	}
	if v.Sample != nil {
		return v.Sample.Text(w)
	}
	if v.OK {
		_, err := fmt.Fprintln(w, "ok")
		return err
	}
	return nil
}
