package kubejob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

const (
	maxAnswer = 16 << 20 // bytes read of an answer other than a log
	maxPods   = 250      // pods listed of one Job
	logLines  = 1000     // lines requested of a log
	maxLog    = 64 << 20 // bytes read of a log
	// keptLog is how many bytes from the end of a log a report should keep. The report carries logMargin more before
	// them, so that a secret that begins there can be recognized.
	keptLog   = 16 << 10
	logMargin = 8 << 10
)

// Client asks an API server about the Jobs of one configuration.
type Client struct {
	Config
	transport http.RoundTripper
}

// NewClient returns a client over a transport, which trusts the API server.
func NewClient(c Config, transport http.RoundTripper) *Client { return &Client{c, transport} }

// Token returns the bearer token, which may have been replaced since the last call. It is "" if the certificate of the
// transport authenticates the service.
func (c *Client) Token() (string, error) {
	if !c.InCluster() {
		if c.TokenFile == "" {
			return "", nil
		}
		return ingest.ReadToken(c.TokenFile)
	}
	text, err := os.ReadFile(serviceAccountToken) // Kubernetes chooses its mode
	if err != nil {
		return "", fmt.Errorf("read the service account token: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// StatusError is an answer of the API server other than success.
type StatusError struct {
	Code    int
	Reason  string // such as AlreadyExists or Forbidden, "" if the answer is not from Kubernetes
	Message string
}

func (e *StatusError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("status %d: not a Kubernetes API response", e.Code)
	}
	return fmt.Sprintf("status %d: %s", e.Code, e.Message)
}

// ReadStatus returns the error in an answer of the API server that is not a success.
func ReadStatus(code int, body []byte) *StatusError {
	var status struct {
		Kind, Reason, Message string
	}
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		return &StatusError{Code: code}
	}
	return &StatusError{Code: code, Reason: status.Reason, Message: status.Message}
}

// missing reports whether an object does not exist. An error page of a proxy does not show that.
func missing(err error) bool {
	s, is := errors.AsType[*StatusError](err)
	return is && s.Code == http.StatusNotFound && s.Reason == "NotFound"
}

// forbidden reports whether the role of the service does not permit a request.
func forbidden(err error) bool {
	s, is := errors.AsType[*StatusError](err)
	return is && s.Code == http.StatusForbidden && s.Reason == "Forbidden"
}

// get sends a request, and passes the body of a success to read.
func (c *Client) get(ctx context.Context, address string, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "rewardwatch")
	token, err := c.Token()
	if err != nil {
		return err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.transport.RoundTrip(req) // a redirect is not followed, because the token could reach another server
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // nothing follows on this connection
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // a part is enough
		return ReadStatus(resp.StatusCode, body)
	}
	return read(resp.Body)
}

func decode(into any) func(io.Reader) error {
	return func(r io.Reader) error { return json.NewDecoder(io.LimitReader(r, maxAnswer)).Decode(into) }
}

func (c *Client) job(ctx context.Context, request string) (j job, err error) {
	if err := c.get(ctx, c.jobs()+"/"+Name(request), decode(&j)); err != nil {
		return job{}, fmt.Errorf("get Job %s: %w", Name(request), err)
	}
	return j, nil
}

// Created returns nil if the Job of a request exists and was created for it.
func (c *Client) Created(ctx context.Context, request string) error {
	j, err := c.job(ctx, request)
	if err != nil {
		return err
	}
	if j.Metadata.Annotations[requestKey] != request {
		return fmt.Errorf("the Job %s already exists and was not created for this request", Name(request))
	}
	return nil
}

// podsOf returns the pods of a Job, and not those of an earlier one of the same name.
func (c *Client) podsOf(ctx context.Context, j job) ([]pod, error) {
	query := url.Values{"labelSelector": {"batch.kubernetes.io/controller-uid=" + j.Metadata.UID}, "limit": {strconv.Itoa(maxPods)}}
	var list struct {
		Items []pod `json:"items"`
	}
	if err := c.get(ctx, c.pods()+"?"+query.Encode(), decode(&list)); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return list.Items, nil
}

// log returns the end of the log of a container.
func (c *Client) log(ctx context.Context, pod, container string) (string, error) {
	query := url.Values{"container": {container}, "tailLines": {strconv.Itoa(logLines)}}
	var end tail
	err := c.get(ctx, c.pods()+"/"+url.PathEscape(pod)+"/log?"+query.Encode(), func(r io.Reader) error {
		_, err := io.Copy(&end, io.LimitReader(r, maxLog))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the log of pod %s: %w", pod, err)
	}
	return end.String(), nil
}

// tail keeps the end of what is written to it. The buffer is not embedded, because its other methods would keep
// everything.
type tail struct{ kept bytes.Buffer }

func (t *tail) String() string { return t.kept.String() }

// Write implements io.Writer.
func (t *tail) Write(text []byte) (int, error) {
	const most = keptLog + logMargin
	if over := t.kept.Len() + len(text) - most; over > 0 {
		t.kept.Next(over)
	}
	_, _ = t.kept.Write(text[max(0, len(text)-most):]) // never fails
	return len(text), nil
}
