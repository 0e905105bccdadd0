package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/webconfig"
)

// errUnknown is why a request is not admitted: it has neither a password nor a token. The client sees its text.
var errUnknown = errors.New("a user name and password, or a valid bearer token, is required")

// errTooMany is why a request is not admitted whose address has shown too many wrong passwords or tokens.
var errTooMany = errors.New("too many invalid tokens or passwords")

// open is the right that everyone has, where the configuration asks for tokens but not for passwords.
const open access.Right = 0

// needs returns the right that every request of a handler needs.
func needs(any access.Right) func(*http.Request) access.Right {
	return func(*http.Request) access.Right { return any }
}

// admitted lets requests pass as the configuration and its web configuration file say. Where the file has users, a request
// needs the password of one of them, or a token with one of the rights: a request has only one of the two, as both are in
// the same header. With http.require_token, a token or a login is needed where the right is not open.
func (s *Server) admitted(next http.Handler, needs func(*http.Request) access.Right) http.Handler {
	if s.web == nil && !s.cfg.RequireToken {
		return next
	}
	people := s.access()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var rules webconfig.Rules
		if s.web != nil {
			rules = s.web.Rules()
		}
		if own := rules.Headers(); len(own) > 0 {
			w = &withHeaders{ResponseWriter: w, own: own}
		}
		if !rules.Allows() {
			s.refuse(w, http.StatusTooManyRequests, "too many requests: the web configuration file limits their rate")
			return
		}
		err := s.known(r, rules, people, needs(r))
		switch {
		case err == nil:
			next.ServeHTTP(w, r)
		case errors.Is(err, errTooMany):
			s.refuseGuesses(w)
		case errors.Is(err, errRole):
			s.refuse(w, http.StatusForbidden, err.Error())
		case errors.Is(err, errUnknown):
			s.askWho(w, r, rules.AskForPassword())
		default:
			s.refuseUnread(w, err)
		}
	})
}

// askWho answers a request of somebody unknown. Browsers are led to the login page, unless they ask for a password
// themselves.
func (s *Server) askWho(w http.ResponseWriter, r *http.Request, password bool) {
	if !password && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
		pages.AskToLogIn(w, r)
		return
	}
	why := access.ErrUnknown
	if password {
		w.Header().Add("WWW-Authenticate", `Basic realm="rewardwatch", charset="UTF-8"`)
		why = errUnknown
	}
	w.Header().Add("WWW-Authenticate", `Bearer realm="rewardwatch"`)
	s.refuse(w, http.StatusUnauthorized, why.Error())
}

// known returns why a request is not admitted: errUnknown, errUnchecked, errRole, errTooMany or an access.ErrFile.
func (s *Server) known(r *http.Request, rules webconfig.Rules, people session.Access, any access.Right) error {
	user, password, basic := r.BasicAuth()
	_, shown := bearer(r)
	users := rules.AskForPassword()
	switch {
	case !users && (!s.cfg.RequireToken || any == open), users && basic && rules.Remember(user, password):
		return nil
	case !users && s.in(r, people, any):
		return nil
	case !basic && !shown:
		return errUnknown
	case !s.Guesses.allowed(r):
		return errTooMany
	case users && basic && rules.Know(user, password):
		return nil
	case basic:
		s.Guesses.failedBy(r, "password")
		return errUnknown
	}
	if any == open { // users make a path that is open to others one of readers
		any = access.Read
	}
	_, err := s.holder(r, any)
	if mayGuess(err) {
		s.Guesses.failedBy(r, "token")
	}
	if errors.Is(err, access.ErrUnknown) {
		return errUnknown
	}
	return err
}

// in reports whether a request has a session of the console with one of the rights.
func (s *Server) in(r *http.Request, people session.Access, any access.Right) bool {
	who, in := people.Holder(r, s.Now())
	return in && who.Role.Permits(any)
}

// withHeaders adds the headers of the web configuration file to an answer, in place of those of the service.
type withHeaders struct {
	http.ResponseWriter
	own  map[string]string
	sent bool
}

// Unwrap is for http.ResponseController.
func (w *withHeaders) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *withHeaders) WriteHeader(status int) {
	if !w.sent {
		w.sent = true
		for name, value := range w.own {
			w.Header().Set(name, value)
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *withHeaders) Write(body []byte) (int, error) {
	if !w.sent {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(body)
}
