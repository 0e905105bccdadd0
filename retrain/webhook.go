package retrain

import (
	"context"
	"strconv"
	"time"
)

// webhook is the adapter of receivers of Standard Webhooks.
type webhook struct {
	webhookTarget
	line line
}

func (w webhookTarget) adapter(line line) (adapter, error) {
	_, err := readKeys(w.secretFile)
	return webhook{w, line}, err
}

func (w webhook) send(ctx context.Context, m message) outcome {
	keys, err := readKeys(w.secretFile)
	if err != nil {
		return unsigned(err)
	}
	now := time.Now()
	return w.line.post(ctx, w.url, m.body, "Webhook-Id", m.id,
		"Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10), "Webhook-Signature", sign(keys, m.id, now, m.body)).outcome
}

// unsigned is an attempt that could not begin, as its secret could not be read.
func unsigned(err error) outcome { return outcome{result: ResultUnsigned, err: err.Error()} }
