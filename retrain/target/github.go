package target

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/apiurl"
)

const (
	// githubPayload is the size from which GitHub refuses a client_payload: "the total size of the JSON payload must be
	// less than 64KB". Its own message counts 65,535 characters.
	githubPayload = 65_535
	githubAPI     = "2022-11-28" // version of the API
)

// GitHub is a repository with workflows that run on `repository_dispatch`.
type GitHub struct {
	Repository string `yaml:"repository"` // `owner/name`
	EventType  string `yaml:"event_type"` // event type, at most 100 characters (default: `retrain.requested`)
	TokenFile  string `yaml:"token_file"` // file with a token that has write access to the repository's contents
	URL        string `yaml:"url"`        // API URL (default: `https://api.github.com`), or `https://HOST/api/v3` for GitHub Enterprise Server
}

// maxEventType is the maximum length of an event type on GitHub, in characters.
const maxEventType = 100

var repositoryName = regexp.MustCompile(`^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$`)

func (g GitHub) given() bool { return g != GitHub{} }

func (g GitHub) address() string {
	return base(g.URL, "https://api.github.com") + "/repos/" + g.Repository + "/dispatches"
}

func (g GitHub) check(report func(key, msg string)) {
	report = below("github", report)
	if !repositoryName.MatchString(g.Repository) {
		report("repository", "must be owner/name")
	} else if fault := apiurl.Repository(g.Repository); fault != "" {
		report("repository", fault)
	}
	if utf8.RuneCountInString(g.EventType) > maxEventType {
		report("event_type", fmt.Sprintf("must have at most %d characters", maxEventType))
	}
	checkToken(g.TokenFile, report)
	checkBase(g.URL, true, apiurl.GitHub, report)
}

// github is the adapter of repository_dispatch
// (https://docs.github.com/en/rest/repos/repos#create-a-repository-dispatch-event).
type github struct {
	GitHub
	line line
}

func (g GitHub) adapter(line line) (Adapter, error) {
	_, err := ingest.ReadToken(g.TokenFile)
	return github{g, line}, err
}

func (g github) Send(ctx context.Context, m Message) Attempt {
	token, err := ingest.ReadToken(g.TokenFile)
	if err != nil {
		return unsigned(err)
	}
	payload, err := shorten(m.Body, githubPayload-1, func(b shortBody) ([]byte, error) { return json.Marshal(b) })
	if err != nil {
		return Attempt{Result: ResultInvalid, Err: err.Error()}
	}
	body, err := json.Marshal(struct {
		EventType     string          `json:"event_type"`
		ClientPayload json.RawMessage `json:"client_payload"`
	}{cmp.Or(g.EventType, m.Event), payload})
	if err != nil {
		return Attempt{Result: ResultInvalid, Err: err.Error()}
	}
	a := g.line.post(ctx, g.address(), body, "Authorization", bearer(token),
		"Accept", "application/vnd.github+json", "X-GitHub-Api-Version", githubAPI)
	return judgeGitHub(a, time.Now())
}

// judgeGitHub accepts only 204 as success: any other 2xx is not from GitHub. A rate limit shows as 403 or 429
// (https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
func judgeGitHub(a answer, now time.Time) Attempt {
	o := a.Attempt
	switch {
	case o.Result == ResultDelivered && o.Status != http.StatusNoContent:
		o.Result, o.Err = ResultRejected, "GitHub did not respond with 204 as expected; check that url is the URL of the API"
	case o.Result == ResultThrottled, o.Result == ResultRejected && o.Status == http.StatusForbidden:
		if pause := githubPause(a, now); pause > 0 {
			o.Result, o.RetryAfter = ResultThrottled, pause
		}
	}
	return o
}

// githubPause returns how long GitHub wants clients to wait, 0 if it refused for another reason than a limit.
func githubPause(a answer, now time.Time) time.Duration {
	reset, err := strconv.ParseInt(a.header.Get("X-Ratelimit-Reset"), 10, 64)
	switch {
	case a.RetryAfter > 0:
		return a.RetryAfter
	case a.header.Get("X-Ratelimit-Remaining") == "0" && err == nil:
		return min(max(time.Second, time.Unix(reset, 0).Sub(now)), maxRetryAfter)
	case a.Result == ResultThrottled, strings.Contains(strings.ToLower(a.Response), "rate limit"):
		return time.Minute // the minimum that GitHub asks for without a given time
	}
	return 0
}
