package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// variablePrefix is the prefix of the environment variables that describe the order to a command.
const variablePrefix = "REWARDWATCH_"

// maxVariable bounds the value of one variable, in bytes: Linux cannot start a program with a variable of 128 KiB.
// The order's file has the full value.
const maxVariable = 32 << 10

// order is the part of a webhook body that a command needs.
type order struct {
	event    string // type of the body
	ID       string `json:"id"`
	Policy   string `json:"policy"`
	Contract struct {
		Objective  string `json:"objective"`
		Hypothesis string `json:"hypothesis"`
		Expected   struct {
			Text string `json:"text"`
		} `json:"expected"`
		Owner string `json:"owner"`
	} `json:"contract"`
	Config json.RawMessage `json:"config"` // {} for a rollback, which has no config
}

// requestID rejects ids that would lead out of the directory of the runs.
var requestID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

func readOrder(body []byte) (order, error) {
	var message struct {
		Type string `json:"type"`
		Data order  `json:"data"`
	}
	message.Data.Config = json.RawMessage("{}") // otherwise the command would find a file that is not JSON
	if err := json.Unmarshal(body, &message); err != nil {
		return order{}, fmt.Errorf("read the order: %w", err)
	}
	if !requestID.MatchString(message.Data.ID) {
		return order{}, fmt.Errorf("%q is not a valid request ID", message.Data.ID)
	}
	message.Data.event = message.Type
	return message.Data, nil
}

// inherited returns the environment variables that a command inherits from the service. It gets no others, which
// may contain secrets of the service: a training that prints its environment would log them.
func inherited() []string {
	return []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"}
}

// environment returns the variables, as NAME=value, of a command whose run has that directory. They contain values from
// telemetry, which reach the command only through execve; no shell reads them.
func (c Config) environment(o order, directory string) []string {
	var out []string
	for _, name := range inherited() {
		if value, ok := os.LookupEnv(name); ok {
			out = append(out, name+"="+value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Environment)) {
		out = append(out, name+"="+c.Environment[name])
	}
	for _, v := range []struct{ name, value string }{
		{"EVENT", o.event},
		{"REQUEST", o.ID},
		{"POLICY", o.Policy},
		{"OBJECTIVE", o.Contract.Objective},
		{"HYPOTHESIS", o.Contract.Hypothesis},
		{"EXPECTED", o.Contract.Expected.Text},
		{"OWNER", o.Contract.Owner},
		{"CONFIG", filepath.Join(directory, configFile)},
		{"ORDER", filepath.Join(directory, orderFile)},
		{"RESULT", filepath.Join(directory, resultFile)},
	} {
		out = append(out, variablePrefix+v.name+"="+variable(v.value))
	}
	return out
}

// variable returns a value in a form that an environment variable can have.
func variable(value string) string {
	value = strings.ReplaceAll(value, "\x00", "\uFFFD")
	return strings.ToValidUTF8(value[:min(len(value), maxVariable)], "")
}
