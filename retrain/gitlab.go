package retrain

import (
	"context"
	"encoding/json"
	"strings"
)

// gitlabVariable is the longest value that GitLab.com takes for a variable, in bytes, and little less than what Linux puts
// into the environment of a job: a pipeline with a longer one would be refused, or its jobs fail before they begin.
const gitlabVariable = 120 << 10

// gitlab is the adapter of pipeline triggers (https://docs.gitlab.com/api/pipeline_triggers/).
type gitlab struct {
	GitLabTarget
	line line
}

func (g GitLabTarget) adapter(line line) (adapter, error) {
	_, err := readToken(g.TokenFile)
	return gitlab{g, line}, err
}

func (g gitlab) send(ctx context.Context, m message) outcome {
	token, err := readToken(g.TokenFile)
	if err != nil {
		return unsigned(err)
	}
	order, err := shorten(m.body, gitlabVariable, orderVariable)
	if err != nil {
		return outcome{result: ResultInvalid, err: err.Error()}
	}
	body, err := json.Marshal(map[string]any{"token": token, "ref": g.Ref, "variables": map[string]string{
		"REWARDWATCH_EVENT":   m.event,
		"REWARDWATCH_REQUEST": m.id,
		"REWARDWATCH_POLICY":  strings.ReplaceAll(m.policy, "$", "$$"), // which GitLab makes one of
		"REWARDWATCH_ORDER":   string(order),
	}})
	if err != nil {
		return outcome{result: ResultInvalid, err: err.Error()}
	}
	return g.line.post(ctx, g.address(), body).outcome
}

// orderVariable writes a body without dollar signs, which GitLab takes for references to other variables, secret ones too:
// names in it come from telemetry.
func orderVariable(b shortBody) ([]byte, error) {
	text, err := json.Marshal(b)
	return []byte(strings.ReplaceAll(string(text), "$", `\u0024`)), err
}
