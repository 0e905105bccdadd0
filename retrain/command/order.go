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

// variablePrefix begins the names of the environment variables that tell a command what it is to do.
const variablePrefix = "REWARDWATCH_"

// maxVariable bounds the value of one of them, in bytes: Linux starts no program with one of 128 KiB. The order's file has
// the whole.
const maxVariable = 32 << 10

// order is what a command needs to know of the body of a webhook.
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
	Config json.RawMessage `json:"config"` // {} of an order to roll back, which has none
}

// requestID keeps ids that would lead out of the directory of the runs away from it.
var requestID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

func readOrder(body []byte) (order, error) {
	var message struct {
		Type string `json:"type"`
		Data order  `json:"data"`
	}
	message.Data.Config = json.RawMessage("{}") // or the command would find a file that is no JSON
	if err := json.Unmarshal(body, &message); err != nil {
		return order{}, fmt.Errorf("read the order: %w", err)
	}
	if !requestID.MatchString(message.Data.ID) {
		return order{}, fmt.Errorf("%q is no id of a request", message.Data.ID)
	}
	message.Data.event = message.Type
	return message.Data, nil
}

// inherited are the environment variables that a command has from the service. All others are kept from it: they may hold
// secrets of the service, which a training that prints its environment would put into its log.
func inherited() []string {
	return []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"}
}

// environment gives the variables of a command whose run has that directory, as NAME=value. Values of telemetry are in it:
// they reach the command by execve alone, and no shell reads them.
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

// variable makes a value one that a program can be started with.
func variable(value string) string {
	value = strings.ReplaceAll(value, "\x00", "\uFFFD")
	return strings.ToValidUTF8(value[:min(len(value), maxVariable)], "")
}
