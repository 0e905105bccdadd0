package retrain

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// The errors of links, besides *StateError for a request that has been decided.
var (
	ErrBadLink     = errors.New("the link was not created by this service")
	ErrLinkExpired = errors.New("the link has expired")
)

// bySignedLink is appended to the name of a person who decides by a link, because the name is not verified.
const bySignedLink = " (by signed link)"

// ServeUnder sets the URL at which people reach the service. Without it, there are no links. Call it before several
// goroutines use the desk.
func (d *Desk) ServeUnder(url string) { d.externalURL = strings.TrimRight(url, "/") }

// Link returns the address of the page on which a person approves or rejects a request without a token. Anyone with the
// link can decide, once, before the request expires. The link is "" if the request is not waiting for a person, or the
// service has no URL.
func (d *Desk) Link(ctx context.Context, q ledger.Request) (string, error) {
	if q.State != ledger.StateAwaitingApproval || d.externalURL == "" {
		return "", nil
	}
	key, err := d.ledger.MakeLinkKey(ctx)
	if err != nil {
		return "", fmt.Errorf("sign the link for %s: %w", q.ID, err)
	}
	return d.externalURL + "/retrain/" + q.ID + "/decide?token=" + linkToken(key, q.ID, q.DueAt), nil
}

// LinkedRequest returns the request of a link without changing it. The error is ErrBadLink if the link is invalid
// or the request does not exist, ErrLinkExpired, or, if the request is no longer waiting for a person, a
// *StateError with the request.
func (d *Desk) LinkedRequest(ctx context.Context, id, token string) (ledger.Request, error) {
	if err := d.checkLink(ctx, id, token, time.Now()); err != nil {
		return ledger.Request{}, err
	}
	q, err := d.Request(ctx, id)
	if err == nil && q.State != ledger.StateAwaitingApproval {
		err = &ledger.StateError{Request: id, State: q.State, Untracked: q.Untracked, To: ledger.StateOpen}
	}
	return q, err
}

// ApproveByLink is Approve for the holder of a link. It fails in the same cases as LinkedRequest, including if the
// request is already approved: a link can be used once.
func (d *Desk) ApproveByLink(ctx context.Context, id, token, by, why string) (ledger.Request, error) {
	return d.decideByLink(ctx, id, token, func(now time.Time) ledger.Move {
		return ledger.Move{By: by + bySignedLink, Why: why, To: ledger.StateOpen, Due: now.Add(requestLifetime)}
	})
}

// RejectByLink is Reject for the holder of a link. It fails in the same cases as ApproveByLink.
func (d *Desk) RejectByLink(ctx context.Context, id, token, by, why string) (ledger.Request, error) {
	return d.decideByLink(ctx, id, token, func(time.Time) ledger.Move {
		return ledger.Move{By: by + bySignedLink, Why: why, To: ledger.StateRejected}
	})
}

func (d *Desk) decideByLink(ctx context.Context, id, token string, decide func(time.Time) ledger.Move) (ledger.Request, error) {
	if _, err := d.LinkedRequest(ctx, id, token); err != nil {
		return ledger.Request{}, err
	}
	return d.change(ctx, id, func(_ *ledger.Tx, _ ledger.Request, now time.Time) (ledger.Move, error) {
		m := decide(now)
		m.From, m.Once = []ledger.State{ledger.StateAwaitingApproval}, true
		return m, nil
	})
}

// ReportToken returns the token with which the job of a request reads the request and reports its status, and which
// permits nothing else. It is derived from the ledger's key and does not expire: a request in a final state accepts
// no more reports.
func (d *Desk) ReportToken(ctx context.Context, id string) (string, error) {
	return reportTokenOf(ctx, d.ledger, id)
}

// IsReportToken reports whether a token belongs to a request.
func (d *Desk) IsReportToken(ctx context.Context, id, token string) (bool, error) {
	if err := d.Suspended(); err != nil {
		return false, err
	}
	key, err := d.ledger.LinkKey(ctx)
	return key != nil && hmac.Equal([]byte(token), []byte(reportToken(key, id))), err
}

func reportTokenOf(ctx context.Context, l *ledger.Ledger, id string) (string, error) {
	key, err := l.MakeLinkKey(ctx)
	if err != nil {
		return "", fmt.Errorf("create the report token for %s: %w", id, err)
	}
	return reportToken(key, id), nil
}

// announce logs that a new request waits for a person, with the link if there is one. The request is durable, so a
// failed announcement is not an error for its opener.
func (d *Desk) announce(ctx context.Context, id string) {
	q, err := d.ledger.Current(ctx, id)
	if err == nil && q.State != ledger.StateAwaitingApproval {
		return
	}
	link := ""
	if err == nil {
		link, err = d.Link(ctx, q)
	}
	event := d.log.Warn().Err(err).Str("request", id).Str("policy", q.Policy)
	if link != "" {
		event.Str("link", link)
	}
	event.Time("until", q.DueAt).Msg("a retrain request is waiting for approval")
}

// checkLink compares tokens in a time that does not depend on where they differ.
func (d *Desk) checkLink(ctx context.Context, id, token string, now time.Time) error {
	if err := d.Suspended(); err != nil {
		return err
	}
	key, err := d.ledger.LinkKey(ctx)
	if err != nil {
		return err
	}
	until, _, _ := strings.Cut(token, ".")
	at, err := strconv.ParseInt(until, 36, 64)
	if err != nil || key == nil || !hmac.Equal([]byte(token), []byte(linkToken(key, id, time.UnixMilli(at)))) {
		return ErrBadLink
	}
	if !now.Before(time.UnixMilli(at)) {
		return ErrLinkExpired
	}
	return nil
}

// linkToken signs the permission to decide on one request until a time. The token is that time, a dot and the
// HMAC-SHA256.
func linkToken(key []byte, id string, until time.Time) string {
	end := strconv.FormatInt(until.UnixMilli(), 36)
	return end + "." + signed(key, "decide", id, end)
}

func reportToken(key []byte, id string) string { return signed(key, "report", id) }

// signed returns the HMAC-SHA256 of what a token permits, in base64.
func signed(key []byte, permits ...string) string {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(strings.Join(permits, "\x00"))) // a hash never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
