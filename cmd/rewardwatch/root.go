package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// The exit codes of every verb.
const (
	exitFine  = 0
	exitDrift = 1 // drift was found, also if it resolved, or a gate failed
	exitError = 2 // usage, configuration or environment error, or no valid event at all
	exitOpen  = 3 // a gate has not enough data for a verdict
)

// errDriftFound ends a verb that did its work and found drift: exit 1, and nothing more to say.
var errDriftFound = errors.New("drift was found")

// errReported ends a verb whose results already name what is wrong: exit 2, and nothing more to say.
var errReported = errors.New("reported")

// console is what the verbs read from and write to. Results go to out; everything else goes to err.
type console struct {
	in       io.Reader
	out, err io.Writer
	output   outputFormat
	logLevel zerolog.Level
	progress *progress // of what a verb does, nil of those that are done at once
}

// tell says something that is no result, above the line of progress.
func (c *console) tell(format string, args ...any) {
	c.progress.clear()
	_, _ = fmt.Fprintf(c.err, format+"\n", args...)
}

// run reads the command line and gives the exit code.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends a stop that takes too long
	c := &console{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	return execute(ctx, c, os.Args[1:])
}

// execute runs one command line on a console. The context ends when the verb is to stop.
func execute(ctx context.Context, c *console, args []string) int {
	root := newRootCommand(c)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errDriftFound), errors.Is(err, errNotKept), errors.Is(err, errGateFailed):
		return exitDrift
	case errors.Is(err, errGateOpen):
		return exitOpen
	case errors.Is(err, errReported):
		return exitError
	}
	c.report(err)
	return exitError
}

// report tells a person what went wrong. Places in a configuration stand at the start of their lines, where editors
// look for them.
func (c *console) report(err error) {
	if bad, ok := errors.AsType[*yamlfile.Error](err); ok {
		_, _ = fmt.Fprintln(c.err, bad)
		return
	}
	_, _ = fmt.Fprintf(c.err, "rewardwatch: %v\n", err)
}

func newRootCommand(c *console) *cobra.Command {
	root := &cobra.Command{
		Use:           "rewardwatch",
		Short:         "Watch deployed reinforcement-learning agents for drift",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.PersistentFlags().Var(&c.output, "output", "how results are printed: text or json")
	c.logLevel = zerolog.InfoLevel
	root.PersistentFlags().Var((*levelFlag)(&c.logLevel), "log-level", "least level of what is logged: debug, info, warn or error")
	root.AddCommand(verbs(c)...)
	return root
}

// verbs lists the commands; cobra adds completion and help.
func verbs(c *console) []*cobra.Command {
	return []*cobra.Command{
		newRunCommand(c),
		newDemoCommand(c),
		newInspectCommand(c),
		newCalibrateCommand(c),
		newReplayCommand(c),
		newExplainCommand(c),
		newValidateCommand(c),
		newBaselineCommand(c),
		newIncidentCommand(c),
		newGateCommand(c),
		newRetrainCommand(c),
		newRunCommandCommand(),
		newRulesCommand(c),
		newDashboardsCommand(c),
		newVersionCommand(c),
	}
}

// log makes the logger of a verb: lines for people, or JSON objects with --output json.
func (c *console) log() zerolog.Logger {
	var w io.Writer = zerolog.ConsoleWriter{Out: c.err, NoColor: true, TimeFormat: "15:04:05"}
	if c.output == outputJSON {
		w = c.err
	}
	return zerolog.New(w).Level(c.logLevel).With().Timestamp().Logger()
}

// print writes a result: what text writes, or value as one line of JSON.
func (c *console) print(value any, text func(w io.Writer) error) error {
	c.progress.clear()
	var err error
	if c.output == outputJSON {
		err = writeLine(c.out, value)
	} else {
		err = text(c.out)
	}
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

func writeLine(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// outputFormat is the value of --output.
type outputFormat string

// The formats. The zero value prints text.
const (
	outputText outputFormat = "text"
	outputJSON outputFormat = "json"
)

// Set reads the flag.
func (f *outputFormat) Set(s string) error {
	switch v := outputFormat(s); v {
	case outputText, outputJSON:
		*f = v
		return nil
	}
	return errors.New("must be text or json")
}

// String gives the flag's value.
func (f *outputFormat) String() string {
	if *f == "" {
		return string(outputText)
	}
	return string(*f)
}

// Type names the flag's value in the help.
func (f *outputFormat) Type() string { return "text|json" }

// levelFlag is the value of --log-level.
type levelFlag zerolog.Level

// Set reads the flag.
func (l *levelFlag) Set(s string) error {
	switch s {
	case "debug", "info", "warn", "error":
		level, err := zerolog.ParseLevel(s)
		*l = levelFlag(level)
		return err
	}
	return errors.New("must be debug, info, warn or error")
}

// String gives the flag's value.
func (l *levelFlag) String() string { return zerolog.Level(*l).String() }

// Type names the flag's value in the help.
func (l *levelFlag) Type() string { return "level" }
