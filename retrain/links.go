package retrain

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// linkKeySize is that of the digest, beyond which a key makes no signature stronger.
const linkKeySize = sha256.Size

// The errors of links, beside *StateError where the request has been decided on.
var (
	ErrBadLink     = errors.New("the link is not one that this service has made")
	ErrLinkExpired = errors.New("the link is over: nobody decided in time")
)

// ServeUnder says under which URL people reach the service. Without one there are no links. It must be called before the desk is
// used by several goroutines.
func (d *Desk) ServeUnder(url string) { d.externalURL = strings.TrimRight(url, "/") }

// Link gives the address of the page on which a person approves or rejects a request without a token: whoever has it may
// decide, once, before the request's time is over. It is "" where the request waits for nobody, or the service has no URL.
func (d *Desk) Link(ctx context.Context, q Request) (string, error) {
	if q.State != StateAwaitingApproval || d.externalURL == "" {
		return "", nil
	}
	key, err := d.ledger.makeLinkKey(ctx)
	if err != nil {
		return "", fmt.Errorf("sign the link of %s: %w", q.ID, err)
	}
	return d.externalURL + "/retrain/" + q.ID + "/decide?token=" + linkToken(key, q.ID, q.DueAt), nil
}

// LinkedRequest gives the request that a link is for, and changes nothing. Its errors are ErrBadLink, also where there is no such
// request, ErrLinkExpired, and *StateError, with the request, where it waits for nobody any more.
func (d *Desk) LinkedRequest(ctx context.Context, id, token string) (Request, error) {
	if err := d.checkLink(ctx, id, token, time.Now()); err != nil {
		return Request{}, err
	}
	q, err := d.Request(ctx, id)
	if err == nil && q.State != StateAwaitingApproval {
		err = &StateError{Request: id, State: q.State, To: StateOpen}
	}
	return q, err
}

// ApproveByLink is Approve for who has the link. It fails as LinkedRequest does, also where somebody has approved already: a link
// decides once.
func (d *Desk) ApproveByLink(ctx context.Context, id, token, by, why string) (Request, error) {
	return d.decideByLink(ctx, id, token, func(now time.Time) move {
		return move{by: by, why: why, to: StateOpen, due: now.Add(requestLifetime)}
	})
}

// RejectByLink is Reject for who has the link. It fails as ApproveByLink does.
func (d *Desk) RejectByLink(ctx context.Context, id, token, by, why string) (Request, error) {
	return d.decideByLink(ctx, id, token, func(time.Time) move { return move{by: by, why: why, to: StateRejected} })
}

func (d *Desk) decideByLink(ctx context.Context, id, token string, decide func(time.Time) move) (Request, error) {
	if _, err := d.LinkedRequest(ctx, id, token); err != nil {
		return Request{}, err
	}
	return d.change(ctx, id, func(_ *sql.Tx, _ Request, now time.Time) (move, error) {
		m := decide(now)
		m.from, m.once = []State{StateAwaitingApproval}, true
		return m, nil
	})
}

// announce says in the log that a new request waits for a person, with the link where there is one. The request is durable, so
// that it cannot be announced is no error of who has opened it.
func (d *Desk) announce(ctx context.Context, id string) {
	q, err := d.Request(ctx, id)
	if err == nil && q.State != StateAwaitingApproval {
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
	event.Time("until", q.DueAt).Msg("a retrain request waits for a person to approve it")
}

// checkLink compares in a time that does not depend on where the tokens differ.
func (d *Desk) checkLink(ctx context.Context, id, token string, now time.Time) error {
	key, err := linkKey(ctx, d.ledger.db)
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

// linkToken signs what a link may do: decide on one request until a time. It is that time, a dot and the HMAC-SHA256.
func linkToken(key []byte, id string, until time.Time) string {
	end := strconv.FormatInt(until.UnixMilli(), 36)
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "decide\x00%s\x00%s", id, end) // a hash takes everything
	return end + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// linkKey gives the key that links are signed with, nil before the first one.
func linkKey(ctx context.Context, q queryer) (key []byte, err error) {
	if err := found(q.QueryRowContext(ctx, `SELECT key FROM link_key`).Scan(&key)); err != nil {
		return nil, fmt.Errorf("read the key of links: %w", err)
	}
	return key, nil
}

// makeLinkKey gives the key, and makes it where there is none: all instances and all later starts have the same.
func (l *ledger) makeLinkKey(ctx context.Context) (key []byte, err error) {
	if key, err = linkKey(ctx, l.db); err != nil || key != nil {
		return key, err
	}
	fresh := make([]byte, linkKeySize)
	_, _ = rand.Read(fresh) // never fails
	err = l.update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO link_key (id, key, made_at) VALUES (1, $1, $2) ON CONFLICT DO NOTHING`, fresh, time.Now().UnixMilli())
		if err != nil {
			return fmt.Errorf("keep the key of links: %w", err)
		}
		key, err = linkKey(ctx, tx)
		return err
	})
	return key, err
}
