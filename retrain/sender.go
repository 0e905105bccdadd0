package retrain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/retrain/command"
)

// Result is what became of one attempt.
type Result string

// The results of an attempt. Delivered alone is a success; every other one is tried again by the schedule, except
// Gone and Invalid.
const (
	ResultInFlight    Result = "in_flight"
	ResultDelivered   Result = "delivered"       // 2xx and a whole answer
	ResultRedirected  Result = "redirected"      // 3xx; never followed, or an order could go where nobody configured it
	ResultGone        Result = "gone"            // 410
	ResultThrottled   Result = "throttled"       // 429
	ResultRejected    Result = "rejected"        // any other status
	ResultTimeout     Result = "timeout"         // no whole answer within the target's timeout
	ResultUnreachable Result = "unreachable"     // the connection could not be made, or broke
	ResultRefused     Result = "refused_address" // the host has an address that the target does not allow; nothing was sent
	ResultInvalid     Result = "invalid"         // the body does not follow the published schema, or cannot be made as the service wants it; nothing was sent
	ResultUnsigned    Result = "unsigned"        // the secret could not be read; nothing was sent
	ResultInterrupted Result = "interrupted"     // the process ended before the result was known
)

const (
	maxAnswer     = 64 << 10 // bytes of an answer's body that are read
	keptAnswer    = 1 << 10  // bytes of it that are kept
	maxRetryAfter = 365 * 24 * time.Hour
)

// outcome is what one attempt told.
type outcome struct {
	result     Result
	status     int           // 0 where no answer came
	err        string        // "" where the answer says it all
	response   string        // beginning of the answer's body
	retryAfter time.Duration // that the answer asked for, 0 where it did not
}

// line is how the services of a target are spoken to. It uses the transport without a client, which would follow
// redirects.
type line struct {
	transport http.RoundTripper
	dial      dialFunc        // for what is not HTTP
	timeout   model.Duration  // of the attempt, for messages: the context has it
	runs      *command.Runner // for what is on the machine itself
}

// answer is an outcome with all that an adapter may want to judge it by.
type answer struct {
	outcome
	header http.Header
	body   []byte // at most maxAnswer of it
}

// post sends a body of JSON with the headers. The outcome of the answer is what it means in Standard Webhooks.
func (l line) post(ctx context.Context, to string, body []byte, headers ...string) answer {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return answer{outcome: outcome{result: ResultUnreachable, err: fmt.Sprintf("make request: %v", err)}}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "rewardwatch")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := l.transport.RoundTrip(req)
	if err != nil {
		return answer{outcome: l.broken(err)}
	}
	defer func() { _ = resp.Body.Close() }() // nothing follows on this connection
	return l.answered(resp)
}

// answered reads the answer. One that breaks off is a failure even with status 200: who sent it may not have finished
// taking the order, and a receiver knows a repetition by its id.
func (l line) answered(resp *http.Response) answer {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		o := l.broken(err)
		o.status, o.response = resp.StatusCode, beginning(text)
		return answer{outcome: o}
	}
	return answer{header: resp.Header, body: text, outcome: outcome{
		result:     classify(resp.StatusCode),
		status:     resp.StatusCode,
		response:   beginning(text),
		retryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
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

// broken is an attempt that no whole answer came to.
func (l line) broken(err error) outcome {
	var timeout net.Error
	if errors.Is(err, errRefusedAddress) {
		return outcome{result: ResultRefused, err: err.Error()}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return outcome{result: ResultTimeout, err: fmt.Sprintf("no whole answer within %s", l.timeout)}
	}
	return outcome{result: ResultUnreachable, err: err.Error()}
}

func beginning(text []byte) string {
	return strings.ToValidUTF8(string(text[:min(len(text), keptAnswer)]), "�")
}

// retryAfter reads a Retry-After header (RFC 9110, section 10.2.3): seconds or a date. Anything else is 0.
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
