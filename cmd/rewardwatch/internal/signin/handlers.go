package signin

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
)

// Routes of a sign-in.
const (
	BeginRoute  = "GET /login/oidc"
	FinishRoute = "GET /" + callback
)

// Handlers redirect people to the provider, and log them in when they return.
type Handlers struct {
	Provider *Provider
	Access   session.Access
	// PageOf returns the address of a page of the console relative to the root, and "" for anything else.
	PageOf func(string) string
	// Problem shows the reason why a sign-in failed.
	Problem func(w http.ResponseWriter, r *http.Request, status int, why string)
	// Ended is called with the result of each sign-in, before it is answered. who has no name if the person is unknown.
	Ended func(r *http.Request, who session.Person, status int, why error)
}

// The cookie of a sign-in in progress. Unlike a session's cookie, it is sent when the provider redirects back.
const (
	attemptCookie       = "rewardwatch_signin"
	attemptCookieOfHost = "__Host-" + attemptCookie
)

func (h Handlers) cookie(value string, seconds int) *http.Cookie {
	c := &http.Cookie{Name: attemptCookie, Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if c.Secure = h.Access.EncryptedOutside(); c.Secure {
		c.Name = attemptCookieOfHost
	}
	return c
}

// Begin redirects a browser to the provider.
func (h Handlers) Begin(w http.ResponseWriter, r *http.Request) {
	address, kept, err := h.Provider.Begin(h.PageOf(r.URL.Query().Get("next")))
	if err != nil {
		h.refuse(w, r, session.Person{}, err)
		return
	}
	http.SetCookie(w, h.cookie(kept, int(attemptLength.Seconds())))
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
}

// Finish logs in a person whom the provider has redirected back.
func (h Handlers) Finish(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Referrer-Policy", "no-referrer") // the URL contains a code
	if h.Access.Allowed != nil && !h.Access.Allowed(r) {
		w.Header().Set("Retry-After", "10")
		h.Problem(w, r, http.StatusTooManyRequests, session.ErrTooManyGuesses.Error())
		return
	}
	kept, err := r.Cookie(h.cookie("", 0).Name)
	http.SetCookie(w, h.cookie("", -1))
	if err != nil {
		h.refuse(w, r, session.Person{}, ErrStale)
		return
	}
	who, page, err := h.Provider.Finish(r.Context(), r.URL.Query(), kept.Value)
	if err != nil {
		h.refuse(w, r, who, err)
		return
	}
	length := time.Duration(h.Provider.cfg.Session)
	h.Access.End(r, h.Provider.now()) // of the person who was logged in before
	http.SetCookie(w, h.Access.CookieOutside(h.Access.Store.Open(r, who, length), int(length.Seconds())))
	h.Ended(r, who, http.StatusOK, nil)
	goOn(w, "../../"+page)
}

// goOn opens a page. It does not use a redirect, because the browser would attribute it to the provider and not send
// the session's cookie.
func goOn(w http.ResponseWriter, page string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	to := html.EscapeString(page)
	_, _ = fmt.Fprintf(w, `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=%s">
<title>Logged in · Rewardwatch</title>
<p>You are logged in. <a href="%s">Continue</a></p>
`, to, to) // a browser that is gone needs no answer
}

// refuse answers with the reason why a sign-in failed.
func (h Handlers) refuse(w http.ResponseWriter, r *http.Request, who session.Person, err error) {
	status, why := http.StatusServiceUnavailable, ErrUnavailable
	for _, known := range []struct {
		err    error
		status int
	}{{ErrRefused, http.StatusUnauthorized}, {ErrStale, http.StatusBadRequest}, {ErrNoRole, http.StatusForbidden}, {ErrUnverified, http.StatusForbidden}} {
		if errors.Is(err, known.err) {
			status, why = known.status, known.err
		}
	}
	if status == http.StatusUnauthorized && h.Access.Failed != nil {
		h.Access.Failed(r)
	}
	h.Ended(r, who, status, err)
	h.Problem(w, r, status, why.Error())
}
