package api

import (
	"crypto/sha256"
	"crypto/subtle"
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

	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Reasons why a request may not change state, for errors.Is. The client sees their text.
var (
	errTokenNeeded = errors.New("a valid bearer token is required")
	errNotLocal    = errors.New("changing state over HTTP requires a token: set http.token_file in the configuration. Without a token, only programs " +
		"on the same machine can do so, at a loopback address and with Content-Type: application/json or application/x-ndjson")
)

// guarded admits only requests that have the token of any of the files; "" stands for no file. If no token is
// configured, it admits only local requests.
func (s *Server) guarded(next http.HandlerFunc, files ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, shown := bearer(r)
		if shown && !s.Guesses.allowed(r) {
			s.refuseGuesses(w)
			return
		}
		err := admit(r, files...)
		if errors.Is(err, errTokenNeeded) && shown {
			s.Guesses.failedBy(r, "token")
		}
		switch {
		case err == nil:
			next(w, r)
		case errors.Is(err, errNotLocal):
			s.refuse(w, http.StatusForbidden, err.Error())
		case errors.Is(err, errTokenNeeded):
			w.Header().Set("WWW-Authenticate", `Bearer realm="rewardwatch"`)
			s.refuse(w, http.StatusUnauthorized, err.Error())
		default:
			s.refuseUnread(w, err)
		}
	}
}

func (s *Server) refuseGuesses(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "10")
	s.refuse(w, http.StatusTooManyRequests, "too many wrong tokens or passwords from this address: try again later")
}

func (s *Server) refuseUnread(w http.ResponseWriter, err error) {
	s.log.Error().Err(err).Msg("cannot check a token")
	s.refuse(w, http.StatusInternalServerError, "the token file cannot be read")
}

// bearer returns the token of a request, and whether it has one.
func bearer(r *http.Request) (token string, has bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return token, strings.EqualFold(scheme, "Bearer")
}

// admit returns why a request may not change state: errTokenNeeded, errNotLocal if none of the files is configured,
// or an errTokenFile.
func admit(r *http.Request, files ...string) error {
	switch {
	case slices.ContainsFunc(files, func(file string) bool { return file != "" }):
		return hasToken(r, files...)
	case !isLocal(r):
		return errNotLocal
	}
	return nil
}

// hasToken returns errTokenNeeded if a request has the token of none of the files, or an errTokenFile.
func hasToken(r *http.Request, files ...string) error {
	given, has := bearer(r)
	for _, file := range files {
		if file == "" || !has {
			continue
		}
		want, err := readToken(file)
		if err != nil {
			return err
		}
		if sameToken(given, want) {
			return nil
		}
	}
	return errTokenNeeded
}

// isLocal reports whether a program on this machine sends the request. A web page in a browser on this machine can
// reach loopback addresses too, with a form or a script. isLocal excludes it: browsers say where a POST comes from,
// and send JSON or NDJSON to another site only if that site allows it.
func isLocal(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return fromHere(r) && hasNone(r, "Origin", "Referer", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Cookie") && err == nil &&
		(kind == "application/json" || kind == "application/x-ndjson")
}

// fromHere reports whether a program on this machine, which may be a browser, sends the request to a loopback
// address. A web page may have pointed its own name at loopback, and a proxy forwards requests of others. fromHere
// excludes both: the page by the name, and the proxy by the headers that it adds.
func fromHere(r *http.Request) bool {
	to, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return to != nil && isLoopback(to.String()) && isLoopback(r.RemoteAddr) && namesLoopback(r.Host) && passedNoProxy(r)
}

// own lists the headers that browsers and programs send themselves, in addition to those that begin with Sec-.
// Proxies add headers under more names than a list could hold, so any other header counts as one of theirs.
var own = []string{
	"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Authorization", "Cache-Control", "Connection", "Content-Encoding",
	"Content-Length", "Content-Type", "Cookie", "Date", "Dnt", "Expect", "Idempotency-Key", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since",
	"Keep-Alive", "Origin", "Pragma", "Priority", "Purpose", "Range", "Referer", "Save-Data", "Te", "Upgrade-Insecure-Requests", "User-Agent",
	"X-Requested-With",
}

func passedNoProxy(r *http.Request) bool {
	for name := range r.Header {
		if !slices.Contains(own, name) && !strings.HasPrefix(name, "Sec-") {
			return false
		}
	}
	return true
}

// named refuses requests that reach a loopback address under a name that is not the service's. A web page has then
// pointed its own name at this machine, and its browser would let it read the answer as one of its own site.
func (s *Server) named(next http.Handler) http.Handler {
	known := []string{hostOf(s.cfg.Listen)}
	if at, err := url.Parse(s.cfg.ExternalURL); err == nil {
		known = append(known, at.Hostname())
	}
	if name, err := os.Hostname(); err == nil && !namesLoopback(s.cfg.Listen) { // on this machine too, the host name leads here
		known = append(known, name)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if to != nil && isLoopback(to.String()) && !namesLoopback(r.Host) && !slices.ContainsFunc(known, func(name string) bool { return strings.EqualFold(name, hostOf(r.Host)) }) {
			s.refuse(w, http.StatusForbidden, "unknown host name: use localhost, or set http.external_url to the public address of the service")
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

// access returns who may change state in the console.
func (s *Server) access() pages.Access {
	a := pages.Access{Local: fromHere, ExternalURL: s.cfg.ExternalURL, Allowed: s.Guesses.allowed, Failed: func(r *http.Request) { s.Guesses.failedBy(r, "token") }}
	if s.cfg.TokenFile != "" {
		a.Token = func() (string, error) { return readToken(s.cfg.TokenFile) }
	}
	return a
}

func isLoopback(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// namesLoopback reports whether the client asked for this machine itself, and not for a name that leads here.
func namesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	at, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && at.Unmap().IsLoopback()
}

// minToken is the minimum number of characters of a token.
const minToken = 32

// readToken reads a token file. Every use reads it again, so that a token can be replaced without a restart.
func readToken(file string) (string, error) {
	text, err := ingest.ReadSecretFile(file)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errTokenFile, err)
	}
	token := strings.TrimSpace(text)
	if len(token) < minToken {
		return "", fmt.Errorf("%w: the token in %s has %d characters and must have at least %d: create one with \"rewardwatch secret FILE\"",
			errTokenFile, file, len(token), minToken)
	}
	return token, nil
}

// sameToken compares tokens in constant time, whatever their lengths.
func sameToken(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
