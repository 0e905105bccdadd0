package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"

	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/console"
)

// What keeps a request from changing state, for errors.Is. The text is for the client.
var (
	errTokenNeeded = errors.New("a valid bearer token is needed")
	errNotLocal    = errors.New("changing state over HTTP needs a token: set http.token_file in the configuration. Without one, only programs " +
		"on the same machine can, at a loopback address and with Content-Type: application/json")
)

// guarded lets through only who knows the token, or, while none is configured, who is local.
func (s *server) guarded(next http.HandlerFunc) http.HandlerFunc {
	return s.guardedBy(next, s.cfg.TokenFile)
}

// guardedBy takes the token of any of the files; "" is none.
func (s *server) guardedBy(next http.HandlerFunc, files ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch err := admit(r, files...); {
		case err == nil:
			next(w, r)
		case errors.Is(err, errNotLocal):
			s.refuse(w, http.StatusForbidden, err.Error())
		case errors.Is(err, errTokenNeeded):
			w.Header().Set("WWW-Authenticate", `Bearer realm="rewardwatch"`)
			s.refuse(w, http.StatusUnauthorized, err.Error())
		default:
			s.log.Error().Err(err).Msg("cannot check a token")
			s.refuse(w, http.StatusInternalServerError, "the token file cannot be read")
		}
	}
}

// admit says what keeps a request from changing state: errTokenNeeded, errNotLocal where none of the files is configured, or an
// errTokenFile.
func admit(r *http.Request, files ...string) error {
	configured := false
	for _, file := range files {
		if file == "" {
			continue
		}
		configured = true
		want, err := readToken(file)
		if err != nil {
			return err
		}
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if strings.EqualFold(scheme, "Bearer") && sameToken(given, want) {
			return nil
		}
	}
	switch {
	case configured:
		return errTokenNeeded
	case !isLocal(r):
		return errNotLocal
	}
	return nil
}

// isLocal reports whether a program on this machine asks. A page in a browser on it reaches loopback addresses too, by a form or by a
// script. It may not pass: browsers say of a POST where it comes from, and send JSON elsewhere only where they were allowed to.
func isLocal(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return fromHere(r) && hasNone(r, "Origin", "Referer", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Cookie") && err == nil && kind == "application/json"
}

// fromHere reports whether a program on this machine, which may be a browser, asks at a loopback address. A page may have pointed a name
// of its own here, and a proxy asks for others. Neither may pass: the one is seen by the name, and the other says for whom it asks.
func fromHere(r *http.Request) bool {
	to, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return to != nil && isLoopback(to.String()) && isLoopback(r.RemoteAddr) && namesLoopback(r.Host) &&
		hasNone(r, "Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip")
}

func hasNone(r *http.Request, headers ...string) bool {
	return !slices.ContainsFunc(headers, func(name string) bool { return r.Header.Get(name) != "" })
}

// access says who may change state in the console.
func (s *server) access() pages.Access {
	a := pages.Access{Local: fromHere, ExternalURL: s.cfg.ExternalURL}
	if s.cfg.TokenFile != "" {
		a.Token = func() (string, error) { return readToken(s.cfg.TokenFile) }
	}
	return a
}

func isLoopback(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// namesLoopback reports whether the client has asked for this machine, and not for a name that leads here.
func namesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	at, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && at.Unmap().IsLoopback()
}

// readToken reads a token file. It is read anew for each use, so that a token can be replaced without a restart.
func readToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errTokenFile, err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("%w: %s holds no token", errTokenFile, file)
	}
	return token, nil
}

// sameToken takes the same time wherever the tokens differ, also in length.
func sameToken(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
