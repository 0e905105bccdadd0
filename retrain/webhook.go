package retrain

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// webhook is the adapter of receivers of Standard Webhooks.
type webhook struct {
	target    Target
	transport http.RoundTripper
}

func newWebhook(t Target, transport http.RoundTripper) (webhook, error) {
	_, err := readKeys(t.SecretFile)
	return webhook{t, transport}, err
}

func (w webhook) send(ctx context.Context, m message) outcome {
	keys, err := readKeys(w.target.SecretFile)
	if err != nil {
		return outcome{result: ResultUnsigned, err: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(w.target.Timeout))
	defer cancel()
	req, err := newRequest(ctx, w.target.Webhook, keys, m.id, m.body)
	if err != nil {
		return outcome{result: ResultUnreachable, err: err.Error()}
	}
	resp, err := w.transport.RoundTrip(req)
	if err != nil {
		return broken(w.target, err)
	}
	defer func() { _ = resp.Body.Close() }() // nothing follows on this connection
	return answered(w.target, resp)
}

func newRequest(ctx context.Context, to string, keys [][]byte, id string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	now := time.Now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "rewardwatch")
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	req.Header.Set("Webhook-Signature", sign(keys, id, now, body))
	return req, nil
}
