package target

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/apiurl"
)

// gitlabVariable is the maximum length of a variable on GitLab.com, in bytes, and a little less than what Linux accepts
// in the environment of a job: with a longer one, GitLab would refuse the pipeline, or its jobs would fail to start.
const gitlabVariable = 120 << 10

// GitLab is a pipeline in a GitLab project.
type GitLab struct {
	Project   string `yaml:"project"`    // number or path, such as `ml/trainer`
	Ref       string `yaml:"ref"`        // branch or tag
	TokenFile string `yaml:"token_file"` // trigger token of the project
	URL       string `yaml:"url"`        // URL URL without `/api/v4` (default: `https://gitlab.com`)
}

func (g GitLab) given() bool { return g != GitLab{} }

func (g GitLab) address() string {
	return base(g.URL, "https://gitlab.com") + "/api/v4/projects/" + url.PathEscape(g.Project) + "/trigger/pipeline"
}

func (g GitLab) check(report func(key, msg string)) {
	report = below("gitlab", report)
	if g.Project == "" {
		report("project", "must be the number or the path of a project")
	} else if fault := apiurl.Repository(g.Project); fault != "" {
		report("project", fault)
	}
	if g.Ref == "" {
		report("ref", "must name a branch or a tag")
	}
	checkToken(g.TokenFile, report)
	checkBase(g.URL, true, apiurl.Appended, report)
}

// gitlab is the adapter of pipeline triggers (https://docs.gitlab.com/api/pipeline_triggers/).
type gitlab struct {
	GitLab
	line line
}

func (g GitLab) adapter(line line) (Adapter, error) {
	_, err := ingest.ReadToken(g.TokenFile)
	return gitlab{g, line}, err
}

func (g gitlab) Send(ctx context.Context, m Message) Attempt {
	token, err := ingest.ReadToken(g.TokenFile)
	if err != nil {
		return unsigned(err)
	}
	order, err := shorten(m.Body, gitlabVariable, orderVariable)
	if err != nil {
		return Attempt{Result: ResultInvalid, Err: err.Error()}
	}
	body, err := json.Marshal(map[string]any{"token": token, "ref": g.Ref, "variables": map[string]string{
		"REWARDWATCH_EVENT":   m.Event,
		"REWARDWATCH_REQUEST": m.ID,
		"REWARDWATCH_POLICY":  strings.ReplaceAll(m.Policy, "$", "$$"), // GitLab reads $$ as one dollar sign
		"REWARDWATCH_ORDER":   string(order),
	}})
	if err != nil {
		return Attempt{Result: ResultInvalid, Err: err.Error()}
	}
	return g.line.hiding(token).post(ctx, g.address(), body).Attempt
}

// orderVariable encodes a body without dollar signs, which GitLab treats as references to other variables, including
// secret ones: names in the body come from telemetry.
func orderVariable(b shortBody) ([]byte, error) {
	text, err := json.Marshal(b)
	return []byte(strings.ReplaceAll(string(text), "$", `\u0024`)), err
}
