// Package terminal prints the output of commands: results, tables, colors, progress, and descriptions of alarms.
package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// ErrDriftFound ends a command that succeeded and found drift or a telemetry fault: exit status 1, with no further
// message.
var ErrDriftFound = errors.New("drift or a telemetry fault was found")

// ErrReported ends a command whose results already describe the error: exit status 2, with no further message.
var ErrReported = errors.New("reported")

// Console is the input and output of the commands. Results are written to Out, and everything else to Err.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	Output   outputFormat
	LogLevel zerolog.Level
	progress *Progress // of the running command, nil for commands that finish at once
}

// Tell prints a message that is not a result, above the progress line.
func (c *Console) Tell(format string, args ...any) {
	c.progress.Clear()
	_, _ = fmt.Fprintf(c.Err, format+"\n", args...)
}

// Report prints an error for people. A position in a configuration is at the start of its line, where editors look for
// it.
func (c *Console) Report(err error) {
	if bad, ok := errors.AsType[*yamlfile.Error](err); ok {
		_, _ = fmt.Fprintln(c.Err, bad)
		return
	}
	_, _ = fmt.Fprintf(c.Err, "rewardwatch: %v\n", err)
}

// FileError is a problem of a file in the output of --output json.
type FileError struct {
	yamlfile.Problem
	Text string `json:"text"` // the whole line, as printed for people
}

// FileErrors returns problems in the form of --output json.
func FileErrors(problems []yamlfile.Problem) []FileError {
	out := make([]FileError, len(problems))
	for i, p := range problems {
		out[i] = FileError{Problem: p, Text: p.String()}
	}
	return out
}

// Log returns the logger of a command. It writes lines for people, or JSON objects with --output json.
func (c *Console) Log() zerolog.Logger {
	var w io.Writer = zerolog.ConsoleWriter{Out: c.Err, NoColor: true, TimeFormat: "15:04:05"}
	if c.Output == OutputJSON {
		w = c.Err
	}
	return zerolog.New(w).Level(c.LogLevel).With().Timestamp().Logger()
}

// Print prints a result: the output of text, or value as one line of JSON.
func (c *Console) Print(value any, text func(w io.Writer) error) error {
	c.progress.Clear()
	var err error
	if c.Output == OutputJSON {
		err = WriteLine(c.Out, value)
	} else {
		err = text(c.Out)
	}
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// WriteLine writes a value as one line of JSON.
func WriteLine(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// outputFormat is the value of --output.
type outputFormat string

// The formats. The zero value prints text.
const (
	outputText outputFormat = "text"
	OutputJSON outputFormat = "json"
)

// Set parses the value of the flag.
func (f *outputFormat) Set(s string) error {
	switch v := outputFormat(s); v {
	case outputText, OutputJSON:
		*f = v
		return nil
	}
	return errors.New("must be text or json")
}

// String returns the flag's value.
func (f *outputFormat) String() string {
	if *f == "" {
		return string(outputText)
	}
	return string(*f)
}

// Type names the flag's value in the help.
func (f *outputFormat) Type() string { return "text|json" }

// LevelFlag is the value of --log-level.
type LevelFlag zerolog.Level

// Set parses the value of the flag.
func (l *LevelFlag) Set(s string) error {
	switch s {
	case "debug", "info", "warn", "error":
		level, err := zerolog.ParseLevel(s)
		*l = LevelFlag(level)
		return err
	}
	return errors.New("must be debug, info, warn or error")
}

// String returns the flag's value.
func (l *LevelFlag) String() string { return zerolog.Level(*l).String() }

// Type names the flag's value in the help.
func (l *LevelFlag) Type() string { return "level" }
