package retrain

import (
	"context"
	"encoding/json"
)

// jenkins is the adapter of the plugin Generic Webhook Trigger (https://plugins.jenkins.io/generic-webhook-trigger/).
type jenkins struct {
	JenkinsTarget
	line line
}

func (j JenkinsTarget) adapter(line line) (adapter, error) {
	_, err := readToken(j.TokenFile)
	return jenkins{j, line}, err
}

func (j jenkins) send(ctx context.Context, m message) outcome {
	token, err := readToken(j.TokenFile)
	if err != nil {
		return unsigned(err)
	}
	return judgeJenkins(j.line.post(ctx, j.URL, m.body, "Token", token))
}

// judgeJenkins takes 200 for a failure where the answer says of every job that it was not started, as it does where the
// filters of the jobs match nothing. Silent jobs have no answer, and that of a large order is read in part: 200 is all
// that there is of them.
func judgeJenkins(a answer) outcome {
	o := a.outcome
	var said struct {
		Jobs map[string]struct {
			Triggered bool `json:"triggered"`
		} `json:"jobs"`
	}
	if o.result != ResultDelivered || json.Unmarshal(a.body, &said) != nil || len(said.Jobs) == 0 {
		return o
	}
	for _, job := range said.Jobs {
		if job.Triggered {
			return o
		}
	}
	o.result, o.err = ResultRejected, "no job was started: the filters of those with the token do not match"
	return o
}
