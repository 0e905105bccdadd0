package session

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
)

// Access decides who may change state with the forms of the pages.
type Access struct {
	// Tokens reads the tokens, one of which a person must show once. It returns the tokens that can be read, and an
	// error for the others. In the context of a request, it may read them only once. It is nil if no token is
	// configured: then, Local requests may change state.
	Tokens func(context.Context) ([]access.Token, error)
	// Local reports whether a request comes from this machine, addresses it by its own name, and has passed no proxy.
	Local func(*http.Request) bool
	// Allowed reports whether the token of a request is checked, and Failed counts a wrong one. Both are nil if every
	// token is checked.
	Allowed func(*http.Request) bool
	Failed  func(*http.Request)
	// ExternalURL is the address at which people reach the service, "" if it is not configured.
	ExternalURL string
	// Store contains the sessions that can be listed and ended. Without it, sessions only end by expiring.
	Store *Store
	// Provider is the name on the login page of the provider at which people can log in, or "" if there is none.
	// OnlyProvider means that no token of a person is configured.
	Provider     string
	OnlyProvider bool
}

// Reasons why a form is not carried out, for errors.Is. People see their texts.
var (
	ErrLoginNeeded = errors.New("log in first")
	ErrNotLocal    = errors.New("decisions require a token: set http.token_file in the configuration. Without a token, only browsers on the " +
		"same machine can decide, at a loopback address")
)

// Admit returns the sender of a request, or the reason why it may not change state: ErrLoginNeeded, ErrNotLocal, or an
// error from reading the token.
func (a Access) Admit(r *http.Request, now time.Time) (Person, error) {
	if a.Tokens == nil {
		if !a.Local(r) {
			return Person{}, ErrNotLocal
		}
		return Person{Role: access.Admin}, nil
	}
	cookies := a.Cookies(r)
	if a.Store != nil {
		for _, c := range cookies {
			if who, open := a.Store.of(c); open {
				return who, nil
			}
		}
	}
	tokens, err := a.Tokens(r.Context())
	for _, c := range cookies {
		for _, token := range tokens {
			if !token.Role.Permits(access.Read) {
				continue // Login makes no session with this token, but its holder could
			}
			who, until, valid := holder(c, token.Text, now)
			who = who.with(token.Holder)
			if valid && (a.Store == nil || a.Store.admits(r, c, token.File, who, until)) {
				return who, nil
			}
		}
	}
	if err != nil {
		return Person{}, err
	}
	return Person{}, ErrLoginNeeded
}

// Cookies returns the session cookies of a request. A page of a sibling host can set a second cookie with the name
// without the prefix, but not a valid one.
func (a Access) Cookies(r *http.Request) []string {
	var out []string
	for _, name := range a.cookieNames(r) {
		for _, c := range r.CookiesNamed(name) {
			out = append(out, c.Value)
		}
	}
	return out
}

// End ends the sessions of a request.
func (a Access) End(r *http.Request, now time.Time) {
	if a.Store == nil {
		return
	}
	_, _ = a.Admit(r, now) // registers a session that has not been used since the start
	for _, c := range a.Cookies(r) {
		a.Store.end(c)
	}
}

// Sees returns a function that reports whether a person may see and end a session: an admin all sessions, and others
// those with their own verified name.
func Sees(who Person) func(Session) bool {
	return func(s Session) bool {
		return who.Role.Permits(access.Administer) || who.Known && s.who.Known && s.By == cmp.Or(who.By, ByToken) && s.Name == who.Name
	}
}

// Holder returns the person of a request with a valid session, and whether it has one.
func (a Access) Holder(r *http.Request, now time.Time) (Person, bool) {
	if a.Tokens == nil {
		return Person{}, false
	}
	who, err := a.Admit(r, now)
	return who, err == nil
}

// Login returns the session cookie for a person if given is a token that permits reading, and ErrWrongToken otherwise.
func (a Access) Login(r *http.Request, given string, who Person, now time.Time) (*http.Cookie, error) {
	if a.Allowed != nil && !a.Allowed(r) {
		return nil, ErrTooManyGuesses
	}
	tokens, err := a.Tokens(r.Context())
	session := New(strings.TrimSpace(given), who, now.Add(Length))
	for _, token := range tokens {
		if _, until, valid := holder(session, token.Text, now); valid && token.Role.Permits(access.Read) {
			if a.Store != nil && !a.Store.admits(r, session, token.File, who.with(token.Holder), until) { // so that it is listed at once
				return nil, ErrTooManySessions
			}
			return a.Cookie(r, session, int(Length.Seconds())), nil
		}
	}
	if err != nil {
		return nil, err
	}
	if a.Failed != nil {
		a.Failed(r)
	}
	return nil, ErrWrongToken
}

// Errors of Login, for errors.Is. People see their texts.
var (
	ErrWrongToken     = errors.New("invalid token")
	ErrTooManyGuesses = errors.New("too many invalid tokens from your address: try again later")
	// ErrTooManySessions appears only in the log.
	ErrTooManySessions = errors.New("too many open sessions for this token")
)

// Cookie returns a cookie that scripts cannot read and that requests from other sites do not send.
func (a Access) Cookie(r *http.Request, session string, seconds int) *http.Cookie {
	return cookieOf(a.Encrypted(r), session, seconds)
}

// CookieOutside returns the same cookie for a browser at the external address, even if a proxy hides its use of https.
func (a Access) CookieOutside(session string, seconds int) *http.Cookie {
	return cookieOf(a.EncryptedOutside(), session, seconds)
}

// EncryptedOutside reports whether the external address uses https.
func (a Access) EncryptedOutside() bool {
	at, err := url.Parse(a.ExternalURL)
	return err == nil && at.Scheme == "https"
}

func cookieOf(encrypted bool, session string, seconds int) *http.Cookie {
	name := CookieName
	if encrypted {
		name = cookieOfHost
	}
	return &http.Cookie{Name: name, Value: session, Path: "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: encrypted}
}

// cookieNames returns the names that a session cookie may have; the first is the name with which it is set. If a proxy
// sets its own Host, only forms show that the browser uses https.
func (a Access) cookieNames(r *http.Request) []string {
	if a.Encrypted(r) {
		return []string{cookieOfHost}
	}
	return []string{CookieName, cookieOfHost}
}

// Encrypted reports whether the browser uses https, to the service or to a proxy. A proxy that sets its own Host
// still forwards the origin of the page with the form.
func (a Access) Encrypted(r *http.Request) bool {
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		return true
	}
	at, err := url.Parse(a.ExternalURL)
	return err == nil && at.Scheme == "https" && (at.Host == r.Host || r.Header.Get("Origin") == "https://"+at.Host)
}

// SameSite refuses requests from pages of other sites: such a page cannot read the answer, but would have changed
// state.
func (a Access) SameSite() *http.CrossOriginProtection {
	p := http.NewCrossOriginProtection()
	if at, err := url.Parse(a.ExternalURL); err == nil && at.Host != "" {
		// A proxy may set its own Host.
		_ = p.AddTrustedOrigin(at.Scheme + "://" + at.Host) // cannot fail: it has a scheme and a host
	}
	return p
}
