package command

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// DefaultTimeLimit is the time limit of a command for which the configuration sets none.
const DefaultTimeLimit = model.Duration(6 * time.Hour)

const (
	minTimeLimit = model.Duration(time.Second)
	maxTimeLimit = model.Duration(30 * 24 * time.Hour)
)

// Config is a training program that runs on the machine of the service.
type Config struct {
	Run         []string          `yaml:"run"`         // absolute path of the program, and its arguments, which no shell interprets
	Directory   string            `yaml:"directory"`   // working directory, as an absolute path
	Environment map[string]string `yaml:"environment"` // additional environment variables. For secrets, pass file names
	TimeLimit   model.Duration    `yaml:"time_limit"`  // time after which the program is stopped and counts as failed
}

// Given reports whether the configuration names a command.
func (c Config) Given() bool { return len(c.Run) > 0 || c.Directory != "" || len(c.Environment) > 0 }

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Check reports every error of the configuration with its YAML path.
func (c Config) Check(report func(path, msg string)) {
	if len(c.Run) == 0 || !filepath.IsAbs(c.Run[0]) {
		report("run", "must start with the absolute path of a program, because it is not looked up in PATH")
	}
	for i, word := range c.Run {
		if strings.Contains(word, "\x00") {
			report(fmt.Sprintf("run[%d]", i), "must not contain a NUL byte")
		}
	}
	if !filepath.IsAbs(c.Directory) || strings.Contains(c.Directory, "\x00") {
		report("directory", "must be an absolute path")
	}
	for name, value := range c.Environment {
		switch {
		case !variableName.MatchString(name):
			report("environment", fmt.Sprintf("%q is not a valid name of an environment variable", name))
		case strings.HasPrefix(name, variablePrefix):
			report("environment."+name, "must not start with "+variablePrefix+", which is reserved for values of the request")
		case strings.Contains(value, "\x00"):
			report("environment."+name, "must not contain a NUL byte")
		}
	}
	if c.TimeLimit < minTimeLimit || c.TimeLimit > maxTimeLimit {
		report("time_limit", fmt.Sprintf("must be between %s and %s", minTimeLimit, maxTimeLimit))
	}
}
