package fill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline"
)

// Limits of what is read or shown.
const (
	maxAnswer = 256 << 10 // bytes of a response
	maxKey    = 4 << 10   // bytes of the key file
	maxQuoted = 200       // bytes of the endpoint's error that are shown
)

// message is a message of a conversation.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// endpoint is an OpenAI-compatible service.
type endpoint struct {
	url     string
	model   string
	key     string
	timeout time.Duration
	calls   int // remaining calls
	client  *http.Client
}

// errBudget is returned when no calls are left.
var errBudget = errors.New("the limit of model.calls has been reached: raise it, or run fill again (existing proposals are kept)")

// newEndpoint returns the endpoint that a file configures.
func newEndpoint(m *pipeline.LanguageModel, timeout time.Duration, key string) *endpoint {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if strings.HasPrefix(m.URL, "http:") {
		dialer.Control = loopbackOnly
	}
	return &endpoint{
		url: strings.TrimSuffix(m.URL, "/") + "/chat/completions", model: m.Name, key: key, timeout: timeout, calls: m.Calls,
		client: &http.Client{
			// A redirect could send the key and the prompt to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     &http.Transport{DialContext: dialer.DialContext, DisableCompression: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10},
		},
	}
}

// loopbackOnly rejects an unencrypted connection to another machine, even if its name is that of this machine.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s is not this machine: plain HTTP is allowed only for loopback addresses", host)
	}
	return nil
}

// readKey returns the API key in a file, or "" if path is empty.
func readKey(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(text))
	if len(text) > maxKey || key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s must contain exactly one line with the key", path)
	}
	return key, nil
}

// ask sends a conversation, and returns the model's answer.
func (e *endpoint) ask(ctx context.Context, conversation []message) (string, error) {
	if e.calls <= 0 {
		return "", errBudget
	}
	e.calls--
	body, err := json.Marshal(map[string]any{"model": e.model, "messages": conversation})
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	if e.key != "" {
		request.Header.Set("Authorization", "Bearer "+e.key)
	}
	response, err := e.client.Do(request)
	if err != nil {
		return "", e.explained(ctx, err)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", e.explained(ctx, err)
	}
	if len(text) > maxAnswer {
		return "", fmt.Errorf("the response from %s is larger than %d KiB", e.url, maxAnswer>>10)
	}
	return e.content(response.StatusCode, text)
}

// explained returns the error of a request, and mentions the time limit if that is the cause.
func (e *endpoint) explained(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s did not respond within %v (model.timeout)", e.url, e.timeout)
	}
	return fmt.Errorf("call %s: %w", e.url, err)
}

// content returns the answer in a response.
func (e *endpoint) content(status int, text []byte) (string, error) {
	switch {
	case status >= 300 && status < 400:
		return "", fmt.Errorf("%s responded with %d, but redirects are not followed: set model.url to the final address", e.url, status)
	case status != http.StatusOK:
		return "", fmt.Errorf("%s responded with %d: %s", e.url, status, e.quoted(text))
	}
	var answer struct {
		Choices []struct {
			Message message `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return "", fmt.Errorf("the response from %s is not a chat completion in JSON: %s", e.url, e.quoted(text))
	}
	if len(answer.Choices) == 0 || answer.Choices[0].Message.Content == "" {
		return "", fmt.Errorf("the response from %s contains no text in choices[0].message.content", e.url)
	}
	return answer.Choices[0].Message.Content, nil
}

// quoted returns the beginning of the endpoint's text in quotes, without the key.
func (e *endpoint) quoted(text []byte) string {
	s := string(text)
	if e.key != "" {
		s = strings.ReplaceAll(s, e.key, "KEY")
	}
	return strconv.QuoteToASCII(s[:min(len(s), maxQuoted)])
}
