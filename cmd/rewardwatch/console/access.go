package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Access says who may change state by the forms of the pages.
type Access struct {
	// Token reads the token that people show once. It is nil where none is configured: then whoever is Local may change state.
	Token func() (string, error)
	// Local reports whether a request comes from this machine, asks for it by a name of its own, and has passed no proxy.
	Local func(*http.Request) bool
	// ExternalURL is the address under which people reach the service, "" where that is not configured.
	ExternalURL string
}

// What keeps a form from being carried out, for errors.Is. The texts are for people.
var (
	errLoginNeeded = errors.New("log in with the token first")
	errNotLocal    = errors.New("deciding here needs a token: set http.token_file in the configuration; without one, only browsers on the " +
		"machine itself can decide, at a loopback address")
	errCrossSite = errors.New("this form was sent by a page of another site")
)

// admit says what keeps a request from changing state: errLoginNeeded, errNotLocal, or an error of reading the token.
func (a Access) admit(r *http.Request, now time.Time) error {
	if a.Token == nil {
		if !a.Local(r) {
			return errNotLocal
		}
		return nil
	}
	token, err := a.Token()
	if err != nil {
		return err
	}
	// A page of a sibling host can set a second cookie of this name, but none that holds.
	for _, c := range r.CookiesNamed(sessionCookie) {
		if holds(c.Value, token, now) {
			return nil
		}
	}
	return errLoginNeeded
}

// login gives the cookie for who has shown the token, errWrongToken for others.
func (a Access) login(r *http.Request, given string, now time.Time) (*http.Cookie, error) {
	token, err := a.Token()
	if err != nil {
		return nil, err
	}
	session := newSession(strings.TrimSpace(given), now.Add(sessionLength))
	if !holds(session, token, now) {
		return nil, errWrongToken
	}
	return a.cookie(r, session, int(sessionLength.Seconds())), nil
}

var errWrongToken = errors.New("that is not the token")

// cookie makes one that scripts cannot read and that other sites cannot have sent.
func (a Access) cookie(r *http.Request, session string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: sessionCookie, Value: session, Path: "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: a.encrypted(r),
	}
}

// encrypted reports whether the browser has asked by https, here or at a proxy. A proxy that hands on a Host of its own hands on what the
// browser says of the page that the form stands on.
func (a Access) encrypted(r *http.Request) bool {
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		return true
	}
	at, err := url.Parse(a.ExternalURL)
	return err == nil && at.Scheme == "https" && (at.Host == r.Host || r.Header.Get("Origin") == "https://"+at.Host)
}

// sameSite refuses what a page of another site has sent: such a page cannot read the answer, but would have changed state.
func (a Access) sameSite() *http.CrossOriginProtection {
	p := http.NewCrossOriginProtection()
	if at, err := url.Parse(a.ExternalURL); err == nil && at.Host != "" {
		// A proxy may hand on a Host of its own.
		_ = p.AddTrustedOrigin(at.Scheme + "://" + at.Host) // it has a scheme and a host
	}
	return p
}
