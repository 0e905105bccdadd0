package api

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
)

// Reasons why a request may not change state or read profiles, in addition to access.ErrUnknown, for errors.Is. The
// client sees their text.
var (
	errNotLocal = errors.New("changing state over HTTP requires a token: set http.token_file in the configuration. Without a token, only programs " +
		"on the same machine can do so. They must use a loopback address and Content-Type: application/json or application/x-ndjson")
	errNotHere = errors.New("profiles require an admin token: set http.token_file in the configuration. Without a token, only programs on the " +
		"same machine can read them, at a loopback address")
	errRole = errors.New("the role of this token does not permit the request")
	// errUnchecked is that the ledger, which knows the tokens of requests, cannot be read.
	errUnchecked = errors.New("cannot check whether the token belongs to a retrain request")
)

// mayGuess reports whether the token of a refused request may have been a guess.
func mayGuess(err error) bool {
	return errors.Is(err, access.ErrUnknown) || errors.Is(err, errUnchecked)
}

// guarded admits only requests whose token has one of the rights. If no token has one, it admits only local
// requests.
func (s *Server) guarded(next http.HandlerFunc, any access.Right) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, shown := bearer(r)
		if shown && !s.Guesses.allowed(r) {
			s.refuseGuesses(w)
			return
		}
		who, err := s.admit(r, any)
		if mayGuess(err) && shown {
			s.Guesses.failedBy(r, "token")
		}
		switch {
		case err == nil:
			next(w, r.WithContext(context.WithValue(r.Context(), holderKey{}, who)))
		case errors.Is(err, errNotLocal), errors.Is(err, errRole):
			s.refuse(w, http.StatusForbidden, err.Error())
		case errors.Is(err, access.ErrUnknown):
			w.Header().Set("WWW-Authenticate", `Bearer realm="rewardwatch"`)
			s.refuse(w, http.StatusUnauthorized, err.Error())
		default:
			s.refuseUnread(w, err)
		}
	}
}

// ofAdmins admits only admins, by their token or their session: a password permits only reading, and reading may be open
// to all. If no person has a token, it admits programs on this machine.
func (s *Server) ofAdmins(next http.Handler) http.Handler {
	people := s.access()
	byToken := s.guarded(next.ServeHTTP, access.Administer)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known := s.holders.Anyone(ofPeople) || s.provider != nil
		switch {
		case known && s.in(r, people, access.Administer), !known && FromHere(r):
			next.ServeHTTP(w, r)
		case known:
			byToken(w, r)
		default:
			s.refuse(w, http.StatusForbidden, errNotHere.Error())
		}
	})
}

// holderKey is the key of the access.Holder in the context of an admitted request.
type holderKey struct{}

func (s *Server) refuseGuesses(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "10")
	s.refuse(w, http.StatusTooManyRequests, "too many invalid tokens or passwords from this address: try again later")
}

// refuseUnread answers that a token cannot be checked, because its file or the ledger cannot be read.
func (s *Server) refuseUnread(w http.ResponseWriter, err error) {
	if !errors.Is(err, access.ErrFile) {
		s.unavailable(w, err)
		return
	}
	s.log.Error().Err(err).Msg("failed to check a token")
	s.refuse(w, http.StatusInternalServerError, "the token file cannot be read")
}

// bearer returns the token of a request, and whether it has one.
func bearer(r *http.Request) (token string, has bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return token, strings.EqualFold(scheme, "Bearer")
}

// ofPeople are people's rights to change state. As soon as any person has a token, requests without a token have none
// of these rights, even those that no token has.
const ofPeople = access.Act | access.Decide | access.Administer

// admit returns the sender of a request that needs one of the rights, or the reason why it may not change state:
// access.ErrUnknown, errUnchecked, errRole, an access.ErrFile, or errNotLocal if these rights need no token.
func (s *Server) admit(r *http.Request, any access.Right) (access.Holder, error) {
	given, shown := bearer(r)
	switch {
	case s.holders.Anyone(any), any&ofPeople != 0 && (s.holders.Anyone(ofPeople) || s.provider != nil):
		return s.holder(r, any)
	case shown && access.Jobs.Permits(any):
		if who, err := s.jobOf(r, given); !errors.Is(err, access.ErrUnknown) {
			return who, err
		}
	}
	if !isLocal(r) {
		return access.Holder{}, errNotLocal
	}
	return access.Holder{Role: access.Admin}, nil
}

// holder returns the holder of a request's token. It fails with access.ErrUnknown, errUnchecked, errRole or an
// access.ErrFile.
func (s *Server) holder(r *http.Request, any access.Right) (access.Holder, error) {
	given, has := bearer(r)
	if !has {
		return access.Holder{}, access.ErrUnknown
	}
	who, err := s.holders.Of(r.Context(), given)
	if errors.Is(err, access.ErrUnknown) {
		who, err = s.jobOf(r, given)
	}
	if err == nil && !who.Role.Permits(any) {
		err = fmt.Errorf("%w: it is %q", errRole, who.Role)
	}
	return who, err
}

// jobOf returns the holder of the token that a target has received with a retrain request, if r concerns that request.
// It fails with access.ErrUnknown or errUnchecked.
func (s *Server) jobOf(r *http.Request, given string) (access.Holder, error) {
	id, about := strings.CutPrefix(r.URL.Path, "/api/v1/retrain-requests/")
	if s.Requests == nil || !about {
		return access.Holder{}, access.ErrUnknown
	}
	its, err := s.Requests.IsReportToken(r.Context(), strings.TrimSuffix(id, "/status"), given)
	switch {
	case err != nil:
		return access.Holder{}, fmt.Errorf("%w: %w", errUnchecked, err)
	case !its:
		return access.Holder{}, access.ErrUnknown
	}
	return access.Holder{Role: access.Jobs}, nil
}

// isLocal reports whether a program on this machine sends the request. A web page in a browser on this machine can also
// reach loopback addresses, with a form or a script. isLocal excludes it: browsers send the origin of a POST, and send
// JSON or NDJSON to another site only if that site allows it.
func isLocal(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return FromHere(r) && hasNone(r, "Origin", "Referer", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Cookie") && err == nil &&
		(kind == "application/json" || kind == "application/x-ndjson")
}

// FromHere reports whether a program on this machine, which may be a browser, sends the request to a loopback
// address. A web page may have pointed its own name at loopback, and a proxy forwards requests of others. FromHere
// excludes both: the page by the name, and the proxy by the headers that it adds.
func FromHere(r *http.Request) bool {
	to, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return to != nil && isLoopback(to.String()) && isLoopback(r.RemoteAddr) && namesLoopback(r.Host) && passedNoProxy(r)
}

// own lists the headers that browsers and programs send themselves, in addition to those that begin with Sec-, and to
// those that begin with Hx-, which the console's pages send when they refresh. Proxies use more header names than a
// list could contain, so any other header is assumed to come from a proxy.
var own = []string{
	"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Authorization", "Cache-Control", "Connection", "Content-Encoding",
	"Content-Length", "Content-Type", "Cookie", "Date", "Dnt", "Expect", "Idempotency-Key", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since",
	"Keep-Alive", "Origin", "Pragma", "Priority", "Purpose", "Range", "Referer", "Save-Data", "Te", "Upgrade-Insecure-Requests", "User-Agent",
	"X-Requested-With",
}

func passedNoProxy(r *http.Request) bool {
	for name := range r.Header {
		if !slices.Contains(own, name) && !strings.HasPrefix(name, "Sec-") && !strings.HasPrefix(name, "Hx-") {
			return false
		}
	}
	return true
}

// named refuses requests that reach a loopback address under a name other than the service's. In that case, a web page
// has pointed its own name at this machine, and its browser would let it read the answer as one from its own site.
func (s *Server) named(next http.Handler) http.Handler {
	known := []string{hostOf(s.cfg.Listen)}
	if at, err := url.Parse(s.cfg.ExternalURL); err == nil {
		known = append(known, at.Hostname())
	}
	if name, err := os.Hostname(); err == nil && !namesLoopback(s.cfg.Listen) { // the host name also leads here on this machine
		known = append(known, name)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if to != nil && isLoopback(to.String()) && !namesLoopback(r.Host) && !slices.ContainsFunc(known, func(name string) bool { return strings.EqualFold(name, hostOf(r.Host)) }) {
			s.refuse(w, http.StatusForbidden, "unknown host name: use localhost, or set http.external_url to the service's public URL")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf returns the host of an address with or without a port.
func hostOf(address string) string {
	if name, _, err := net.SplitHostPort(address); err == nil {
		return name
	}
	return strings.Trim(address, "[]")
}

func hasNone(r *http.Request, headers ...string) bool {
	return !slices.ContainsFunc(headers, func(name string) bool { return r.Header.Get(name) != "" })
}

// access returns the rules for changing state in the console.
func (s *Server) access() session.Access {
	a := session.Access{Local: FromHere, ExternalURL: s.cfg.ExternalURL, Allowed: s.Guesses.allowed, Failed: func(r *http.Request) { s.Guesses.failedBy(r, "token") }}
	a.Store = s.sessions
	if s.cfg.RequireToken || s.holders.Anyone(ofPeople) || s.provider != nil {
		a.Tokens = s.holders.For
	}
	if s.provider != nil {
		a.Provider, a.OnlyProvider = s.cfg.OIDC.Title, !s.holders.Anyone(access.Read)
	}
	return a
}

func isLoopback(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// namesLoopback reports whether the client asked for this machine itself, and not for a name that resolves to it.
func namesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	at, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && at.Unmap().IsLoopback()
}
