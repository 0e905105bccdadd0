package session

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
)

// Access says who may change state with the forms of the pages.
type Access struct {
	// Tokens reads the tokens of which people show one once. It returns those that can be read, and an error for the
	// others. It is nil if none is configured: then Local requests may change state.
	Tokens func() ([]access.Token, error)
	// Local reports whether a request comes from this machine, addresses it by its own name, and has passed no proxy.
	Local func(*http.Request) bool
	// Allowed reports whether the token of a request is checked, and Failed counts a wrong one. Both are nil if every
	// token is checked.
	Allowed func(*http.Request) bool
	Failed  func(*http.Request)
	// ExternalURL is the address at which people reach the service, "" if it is not configured.
	ExternalURL string
}

// Reasons for which a form is not carried out, for errors.Is. People see their texts.
var (
	ErrLoginNeeded = errors.New("log in first")
	ErrNotLocal    = errors.New("decisions need a token: set http.token_file in the configuration. Without a token, only browsers on the " +
		"same machine can decide, at a loopback address")
)

// Admit returns who sends a request, or why it may not change state: ErrLoginNeeded, ErrNotLocal, or an error of reading
// the token.
func (a Access) Admit(r *http.Request, now time.Time) (Person, error) {
	if a.Tokens == nil {
		if !a.Local(r) {
			return Person{}, ErrNotLocal
		}
		return Person{Role: access.Admin}, nil
	}
	tokens, err := a.Tokens()
	// A page of a sibling host can set a second cookie of the name without the prefix, but not a valid one.
	for _, name := range a.cookieNames(r) {
		for _, c := range r.CookiesNamed(name) {
			for _, token := range tokens {
				if who, valid := holder(c.Value, token.Text, now); valid {
					return who.with(token.Holder), nil
				}
			}
		}
	}
	if err != nil {
		return Person{}, err
	}
	return Person{}, ErrLoginNeeded
}

// Holder returns who sends a request with a valid session, and whether it has one.
func (a Access) Holder(r *http.Request, now time.Time) (Person, bool) {
	if a.Tokens == nil {
		return Person{}, false
	}
	who, err := a.Admit(r, now)
	return who, err == nil
}

// Login returns the session cookie of a person if given is a token of somebody who may read, and ErrWrongToken otherwise.
func (a Access) Login(r *http.Request, given string, who Person, now time.Time) (*http.Cookie, error) {
	if a.Allowed != nil && !a.Allowed(r) {
		return nil, ErrTooManyGuesses
	}
	tokens, err := a.Tokens()
	session := New(strings.TrimSpace(given), who, now.Add(Length))
	for _, token := range tokens {
		if _, valid := holder(session, token.Text, now); valid && token.Role.Permits(access.Read) {
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
	ErrWrongToken     = errors.New("wrong token")
	ErrTooManyGuesses = errors.New("too many wrong tokens from your address: try again later")
)

// Cookie returns a cookie that scripts cannot read and that requests from other sites do not carry.
func (a Access) Cookie(r *http.Request, session string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: a.cookieNames(r)[0], Value: session, Path: "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: a.encrypted(r),
	}
}

// cookieNames returns the names under which a session may come, first the one under which it is set. Where a proxy sets its
// own Host, only forms show that the browser uses https.
func (a Access) cookieNames(r *http.Request) []string {
	if a.encrypted(r) {
		return []string{cookieOfHost}
	}
	return []string{CookieName, cookieOfHost}
}

// encrypted reports whether the browser uses https, to the service or to a proxy. A proxy that sets its own Host
// still forwards the origin of the page with the form.
func (a Access) encrypted(r *http.Request) bool {
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
