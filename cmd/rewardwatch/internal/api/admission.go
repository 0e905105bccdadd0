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

// errUnknown means that a request has neither a password nor a token. The client sees its text.
var errUnknown = errors.New("a user name and password, or a valid bearer token, is required")

// errTooMany means that too many wrong passwords or tokens have come from the address of a request.
var errTooMany = errors.New("too many invalid tokens or passwords")

// open is the right that everyone has if the configuration requires tokens but no passwords.
const open access.Right = 0

// needs returns a function that requires the same right for every request of a handler.
func needs(any access.Right) func(*http.Request) access.Right {
	return func(*http.Request) access.Right { return any }
}

// admitted admits requests according to the configuration and its web configuration file. If the file has users, a
// request needs the password of one of them, or a token with one of the rights: it cannot have both, because they are
// sent in the same header. With http.require_token, a token or a login is required unless the right is open.
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

// askWho answers a request from an unknown client. Browsers are redirected to the login page, unless they can ask for a
// password themselves.
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

// known returns the reason why a request is not admitted, or nil: errUnknown, errUnchecked, errRole, errTooMany or an
// access.ErrFile.
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
	if any == open { // with users, paths that are otherwise open require the right to read
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

// withHeaders adds the headers of the web configuration file to an answer. They replace those of the service.
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
