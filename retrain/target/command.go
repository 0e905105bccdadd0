package target

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/command"
)

// Command is a program that runs the training on the same machine as the service.
type Command struct {
	command.Config `yaml:",inline"`
}

func defaultCommand() Command {
	return Command{Config: command.Config{TimeLimit: command.DefaultTimeLimit}}
}

func (c Command) given() bool     { return c.Given() }
func (c Command) address() string { return "command" } // a command never answers that it is gone

func (c Command) check(report func(key, msg string)) {
	c.Check(below("command", report))
}

func (c Command) adapter(line line) (Adapter, error) {
	return program{c.Config, line.runs}, nil
}

// program is the adapter of a command.
type program struct {
	config command.Config
	runs   *command.Runner
}

// Send starts the command: the order is delivered once its supervisor has it. The runner reports the outcome.
func (p program) Send(ctx context.Context, m Message) Attempt {
	err := p.runs.Start(ctx, p.config, m.Body)
	if err == nil {
		return Attempt{Result: ResultDelivered}
	}
	o := Attempt{Result: ResultUnreachable, Err: err.Error()}
	if _, busy := errors.AsType[*command.BusyError](err); busy {
		o.Result = ResultRejected
	}
	return o
}

// Printable adds the secrets that a command may print: the lines of the private files that the configuration names in
// its environment.
func (c Command) Printable(known Secrets) Secrets {
	var lines []string
	for _, file := range c.Environment {
		lines = append(lines, privateLines(file)...)
	}
	return known.with(lines...)
}

// maxPrintable is how many bytes of a file with secrets are treated as printable.
const maxPrintable = 4 << 10

// privateLines returns the lines of a file that others cannot read, and nothing for any other file.
func privateLines(file string) []string {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o007 != 0 || info.Size() > maxPrintable {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); len(line) >= leastLine {
			out = append(out, line)
		}
	}
	return out
}

// leastLine is the minimum length in bytes of a line that counts as a secret: braces and the like occur in any text.
const leastLine = 8
