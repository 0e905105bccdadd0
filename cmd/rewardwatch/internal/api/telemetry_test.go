package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/receive"
)

// receiverDouble answers what it is told to, and keeps the last batch.
type receiverDouble struct {
	result receive.Result
	err    error
	last   receive.Batch
	body   string
}

func (d *receiverDouble) Receive(_ context.Context, b receive.Batch) (receive.Result, error) {
	text, err := io.ReadAll(b.Body)
	d.last, d.body = b, string(text)
	return d.result, errors.Join(err, d.err)
}

// telemetryServer has one token for telemetry and one for everything.
func telemetryServer(t *testing.T, d *receiverDouble) *Server {
	t.Helper()
	dir := t.TempDir()
	for name, token := range map[string]string{"all": apitest.SomeToken, "telemetry": agentToken} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := quietServer(t, Config{TokenFile: filepath.Join(dir, "all"), TelemetryTokenFile: filepath.Join(dir, "telemetry")}, apitest.SomeView(), nil)
	s.Telemetry = d
	s.Orders = &apitest.FixedOrders{}
	return s
}

const agentToken = "a token that agents share between them"

func TestTelemetryIsReceived(t *testing.T) {
	d := &receiverDouble{result: receive.Result{Accepted: 2, Refused: 1, Refusals: []receive.Refusal{
		{Index: 1, Error: ingest.RecordError{Reason: ingest.ReasonMissingPolicy, Column: 3, Msg: "a record must have a policy"}},
	}}}
	s := telemetryServer(t, d)
	r := httptest.NewRequest(http.MethodPost, "/api/v1/telemetry", strings.NewReader("{}\n{}\n{}"))
	r.Header.Set("Authorization", "Bearer "+agentToken)
	r.Header.Set("Idempotency-Key", "batch-7")
	r.Header.Set("Content-Encoding", "gzip")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK || d.last.ID != "batch-7" || d.last.Encoding != "gzip" || d.body != "{}\n{}\n{}" {
		t.Errorf("%d %s for %+v %q", w.Code, w.Body, d.last, d.body)
	}
	checkAnswer(t, "post", "/api/v1/telemetry", w.Body.Bytes())
	if want := `"refusals":[{"index":1,"reason":"missing_policy","column":3,"message":"a record must have a policy"}]`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("the answer is %s", w.Body)
	}
}

func TestTelemetryTokenAllowsNothingElse(t *testing.T) {
	s := telemetryServer(t, &receiverDouble{result: receive.Result{Accepted: 1}})
	for _, c := range []struct {
		path, token string
		code        int
	}{
		{"/api/v1/telemetry", agentToken, http.StatusOK},
		{"/api/v1/telemetry", apitest.SomeToken, http.StatusOK},
		{"/api/v1/telemetry", "another token", http.StatusUnauthorized},
		{"/api/v1/incidents/x/accept", agentToken, http.StatusForbidden},
		{"/-/reload", agentToken, http.StatusForbidden},
	} {
		if w := post(s, c.path, "{}", c.token); w.Code != c.code {
			t.Errorf("%s with %q gives %d, want %d", c.path, c.token, w.Code, c.code)
		}
	}
}

func TestTelemetryThatIsNotWritten(t *testing.T) {
	for name, c := range map[string]struct {
		result receive.Result
		err    error
		body   string
		code   int
		retry  string
	}{
		"busy":        {err: receive.ErrBusy, code: http.StatusTooManyRequests, retry: "1"},
		"unavailable": {err: errors.Join(receive.ErrUnavailable, errors.New("secret host")), code: http.StatusServiceUnavailable, retry: "5"},
		"bad":         {err: receive.ErrBadBatch, code: http.StatusBadRequest},
		"too large":   {err: receive.ErrTooLarge, code: http.StatusRequestEntityTooLarge},
		"long body":   {body: strings.Repeat(" ", maxPosted+1), code: http.StatusRequestEntityTooLarge},
		"all refused": {result: receive.Result{Refused: 3}, code: http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			w := post(telemetryServer(t, &receiverDouble{result: c.result, err: c.err}), "/api/v1/telemetry", c.body, agentToken)
			if w.Code != c.code || w.Header().Get("Retry-After") != c.retry || strings.Contains(w.Body.String(), "secret host") {
				t.Errorf("%d %s, retry after %q", w.Code, w.Body, w.Header().Get("Retry-After"))
			}
		})
	}
	s := telemetryServer(t, nil)
	s.Telemetry = nil
	if w := post(s, "/api/v1/telemetry", "{}", agentToken); w.Code != http.StatusNotFound {
		t.Errorf("without a topic in JSON: %d %s", w.Code, w.Body)
	}
}
