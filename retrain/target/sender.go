package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/retrain/command"
)

// Result is the result of one attempt.
type Result string

// The results of an attempt. Only Delivered is a success; every other one is retried by the schedule, except Gone and
// Invalid.
const (
	ResultInFlight    Result = "in_flight"
	ResultDelivered   Result = "delivered"       // 2xx and a complete answer
	ResultRedirected  Result = "redirected"      // 3xx; never followed, as an order could then reach an unconfigured receiver
	ResultGone        Result = "gone"            // 410
	ResultThrottled   Result = "throttled"       // 429
	ResultRejected    Result = "rejected"        // any other status
	ResultTimeout     Result = "timeout"         // no complete answer within the target's timeout
	ResultUnreachable Result = "unreachable"     // the connection failed or broke
	ResultRefused     Result = "refused_address" // the host has an address that the target does not allow; nothing was sent
	ResultInvalid     Result = "invalid"         // the body violates the published schema, or cannot be converted for the service; nothing was sent
	ResultUnsigned    Result = "unsigned"        // the secret could not be read; nothing was sent
	ResultInterrupted Result = "interrupted"     // the process ended before the result was known
)

const (
	maxAnswer     = 64 << 10 // bytes read of an answer's body
	keptAnswer    = 1 << 10  // bytes of it that are stored
	maxRetryAfter = 365 * 24 * time.Hour
)

// Attempt is the outcome of one attempt.
type Attempt struct {
	Result     Result
	Status     int           // 0 without an answer
	Err        string        // "" if the answer says it all
	Response   string        // beginning of the answer's body
	RetryAfter time.Duration // requested by the answer, 0 if not
}

// line is the connection to the service of a target. It uses the transport without a client, which would follow
// redirects.
type line struct {
	transport http.RoundTripper
	dial      dialFunc        // for protocols other than HTTP
	timeout   model.Duration  // of the attempt, for messages: the context enforces it
	runs      *command.Runner // for commands on this machine
	secrets   Secrets         // sent besides those of the headers and the URL
}

// hiding returns a line that also removes the given secrets.
func (l line) hiding(values ...string) line {
	l.secrets = l.secrets.with(values...)
	return l
}

// answer is an attempt with everything that an adapter may judge it by.
type answer struct {
	Attempt
	header http.Header
	body   []byte // at most maxAnswer bytes
}

// post sends a JSON body with the headers. The answer is judged as in Standard Webhooks.
func (l line) post(ctx context.Context, to string, body []byte, headers ...string) answer {
	l = l.hiding(sentTo(to, headers)...)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return answer{Attempt: Attempt{Result: ResultUnreachable, Err: l.clean("create request: " + err.Error())}}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "rewardwatch")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := l.transport.RoundTrip(req)
	if err != nil {
		return answer{Attempt: l.broken(err)}
	}
	defer func() { _ = resp.Body.Close() }() // nothing follows on this connection
	return l.answered(resp)
}

// answered reads the answer. A truncated one is a failure even with status 200: the receiver may not have finished
// accepting the order, and it detects a repetition by the id.
func (l line) answered(resp *http.Response) answer {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		o := l.broken(err)
		o.Status, o.Response = resp.StatusCode, l.secrets.Clean(string(text), keptAnswer)
		return answer{Attempt: o}
	}
	return answer{header: resp.Header, body: text, Attempt: Attempt{
		Result:     classify(resp.StatusCode),
		Status:     resp.StatusCode,
		Response:   l.secrets.Clean(string(text), keptAnswer),
		RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
	}}
}

func classify(status int) Result {
	switch {
	case status >= 200 && status < 300:
		return ResultDelivered
	case status >= 300 && status < 400:
		return ResultRedirected
	case status == http.StatusGone:
		return ResultGone
	case status == http.StatusTooManyRequests:
		return ResultThrottled
	default:
		return ResultRejected
	}
}

// broken returns the attempt without a complete answer.
func (l line) broken(err error) Attempt {
	var timeout net.Error
	if errors.Is(err, errRefusedAddress) {
		return Attempt{Result: ResultRefused, Err: l.clean(err.Error())}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return Attempt{Result: ResultTimeout, Err: fmt.Sprintf("no complete response within %s", l.timeout)}
	}
	return Attempt{Result: ResultUnreachable, Err: l.clean(err.Error())}
}

// clean returns a message without the secrets of the line.
func (l line) clean(message string) string { return l.secrets.Clean(message, len(message)) }

// retryAfter parses a Retry-After header (RFC 9110, section 10.2.3): seconds or a date. Anything else is 0.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 63); err == nil {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(0, at.Sub(now)), maxRetryAfter)
}
