package target

import (
	"context"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

// webhookTarget is the receiver of Standard Webhooks, whose keys are those of the target itself.
type webhookTarget struct{ url, secretFile string }

func (w webhookTarget) given() bool     { return w != webhookTarget{} }
func (w webhookTarget) address() string { return w.url }

func (w webhookTarget) check(report func(key, msg string)) {
	if msg := checkURL(w.url); msg != "" {
		report("webhook", msg)
	}
	if w.secretFile == "" {
		report("secret_file", "must name a file with a whsec_ secret: every webhook is signed")
	}
}

// ReportTokenHeader has the token with which the job of a webhook reports its status.
const ReportTokenHeader = "Rewardwatch-Report-Token"

// webhook is the adapter of receivers of Standard Webhooks.
type webhook struct {
	webhookTarget
	line line
}

func (w webhookTarget) adapter(line line) (Adapter, error) {
	_, err := readKeys(w.secretFile)
	return webhook{w, line}, err
}

func (w webhook) Send(ctx context.Context, m Message) Attempt {
	keys, err := readKeys(w.secretFile)
	if err != nil {
		return unsigned(err)
	}
	now := time.Now()
	headers := []string{
		"Webhook-Id", m.ID, "Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10), "Webhook-Signature", sign(keys, m.ID, now, m.Body),
	}
	if m.Token != "" && unread(w.url) {
		headers = append(headers, ReportTokenHeader, m.Token)
	}
	return w.line.hiding(append(written(keys), m.Token)...).post(ctx, w.url, m.Body, headers...).Attempt
}

// unread reports whether others on the network cannot read what is sent to an address.
func unread(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || err == nil && at.IsLoopback()
}

// unsigned returns the attempt that could not begin because its secret could not be read.
func unsigned(err error) Attempt { return Attempt{Result: ResultUnsigned, Err: err.Error()} }
