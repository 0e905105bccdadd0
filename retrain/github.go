package retrain

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// githubPayload is the size from which on GitHub refuses a client_payload: "the total size of the JSON payload must be
	// less than 64KB". Its own message counts 65,535 characters.
	githubPayload = 65_535
	githubAPI     = "2022-11-28" // version of the API that is spoken
)

// github is the adapter of repository_dispatch
// (https://docs.github.com/en/rest/repos/repos#create-a-repository-dispatch-event).
type github struct {
	GitHubTarget
	line line
}

func (g GitHubTarget) adapter(line line) (adapter, error) {
	_, err := readToken(g.TokenFile)
	return github{g, line}, err
}

func (g github) send(ctx context.Context, m message) outcome {
	token, err := readToken(g.TokenFile)
	if err != nil {
		return unsigned(err)
	}
	payload, err := shorten(m.body, githubPayload-1, func(b shortBody) ([]byte, error) { return json.Marshal(b) })
	if err != nil {
		return outcome{result: ResultInvalid, err: err.Error()}
	}
	body, err := json.Marshal(struct {
		EventType     string          `json:"event_type"`
		ClientPayload json.RawMessage `json:"client_payload"`
	}{cmp.Or(g.EventType, m.event), payload})
	if err != nil {
		return outcome{result: ResultInvalid, err: err.Error()}
	}
	a := g.line.post(ctx, g.address(), body, "Authorization", bearer(token),
		"Accept", "application/vnd.github+json", "X-GitHub-Api-Version", githubAPI)
	return judgeGitHub(a, time.Now())
}

// judgeGitHub takes 204 alone for success: any other 2xx is not GitHub's. A limit that was reached is told by 403 or 429
// (https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
func judgeGitHub(a answer, now time.Time) outcome {
	o := a.outcome
	switch {
	case o.result == ResultDelivered && o.status != http.StatusNoContent:
		o.result, o.err = ResultRejected, "the answer is not GitHub's, which is 204; is the url that of the API?"
	case o.result == ResultThrottled, o.result == ResultRejected && o.status == http.StatusForbidden:
		if pause := githubPause(a, now); pause > 0 {
			o.result, o.retryAfter = ResultThrottled, pause
		}
	}
	return o
}

// githubPause is how long GitHub wants to be left alone, 0 where it has refused for another reason than a limit.
func githubPause(a answer, now time.Time) time.Duration {
	reset, err := strconv.ParseInt(a.header.Get("X-Ratelimit-Reset"), 10, 64)
	switch {
	case a.retryAfter > 0:
		return a.retryAfter
	case a.header.Get("X-Ratelimit-Remaining") == "0" && err == nil:
		return min(max(time.Second, time.Unix(reset, 0).Sub(now)), maxRetryAfter)
	case a.result == ResultThrottled, strings.Contains(strings.ToLower(a.response), "rate limit"):
		return time.Minute // the least that it asks for where it does not say until when
	}
	return 0
}
