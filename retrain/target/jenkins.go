package target

import (
	"context"
	"encoding/json"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Jenkins is a Jenkins server with the Generic Webhook Trigger plugin.
type Jenkins struct {
	URL       string `yaml:"url"`        // URL, with `/generic-webhook-trigger/invoke`
	TokenFile string `yaml:"token_file"` // token that the jobs expect
}

func (j Jenkins) given() bool     { return j != Jenkins{} }
func (j Jenkins) address() string { return j.URL }

func (j Jenkins) check(report func(key, msg string)) {
	checkEndpoint(j.URL, j.TokenFile, below("jenkins", report))
}

// jenkins is the adapter of the plugin Generic Webhook Trigger (https://plugins.jenkins.io/generic-webhook-trigger/).
type jenkins struct {
	Jenkins
	line line
}

func (j Jenkins) adapter(line line) (Adapter, error) {
	_, err := ingest.ReadToken(j.TokenFile)
	return jenkins{j, line}, err
}

func (j jenkins) Send(ctx context.Context, m Message) Attempt {
	token, err := ingest.ReadToken(j.TokenFile)
	if err != nil {
		return unsigned(err)
	}
	return judgeJenkins(j.line.post(ctx, j.URL, m.Body, "Token", token))
}

// judgeJenkins treats 200 as a failure if the answer says of every job that it was not started, as when the filters of
// the jobs match nothing. Silent jobs have no answer, and the answer to a large order is read in part; in both cases
// only the 200 counts.
func judgeJenkins(a answer) Attempt {
	o := a.Attempt
	var said struct {
		Jobs map[string]struct {
			Triggered bool `json:"triggered"`
		} `json:"jobs"`
	}
	if o.Result != ResultDelivered || json.Unmarshal(a.body, &said) != nil || len(said.Jobs) == 0 {
		return o
	}
	for _, job := range said.Jobs {
		if job.Triggered {
			return o
		}
	}
	o.Result, o.Err = ResultRejected, "no job was started: no job with this token has filters that match"
	return o
}
