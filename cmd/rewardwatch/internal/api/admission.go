package api

import (
	"errors"
	"net/http"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/webconfig"
)

// errUnknown is why a request is not admitted: it has neither a password nor a token. The client sees its text.
var errUnknown = errors.New("a user name and password, or a valid bearer token, is required")

// errTooMany is why a request is not admitted whose address has shown too many wrong passwords or tokens.
var errTooMany = errors.New("too many wrong tokens or passwords")

// fullToken returns the file of the token that permits everything.
func (s *Server) fullToken(*http.Request) []string { return []string{s.cfg.TokenFile} }

// admitted lets requests pass as the web configuration file says. Where it has users, a request needs the password of
// one of them, or a token of one of the files that tokens returns for it: a request has only one of the two, as both
// are in the same header.
func (s *Server) admitted(next http.Handler, tokens func(*http.Request) []string) http.Handler {
	if s.web == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rules := s.web.Rules()
		if own := rules.Headers(); len(own) > 0 {
			w = &withHeaders{ResponseWriter: w, own: own}
		}
		if !rules.Allows() {
			s.refuse(w, http.StatusTooManyRequests, "too many requests: the web configuration file limits their rate")
			return
		}
		err := s.known(r, rules, tokens)
		switch {
		case err == nil:
			next.ServeHTTP(w, r)
		case errors.Is(err, errTooMany):
			s.refuseGuesses(w)
		case errors.Is(err, errUnknown):
			w.Header().Add("WWW-Authenticate", `Basic realm="rewardwatch", charset="UTF-8"`)
			w.Header().Add("WWW-Authenticate", `Bearer realm="rewardwatch"`)
			s.refuse(w, http.StatusUnauthorized, err.Error())
		default:
			s.refuseUnread(w, err)
		}
	})
}

// known returns why a request is not admitted: errUnknown, errTooMany or an errTokenFile.
func (s *Server) known(r *http.Request, rules webconfig.Rules, tokens func(*http.Request) []string) error {
	user, password, basic := r.BasicAuth()
	_, shown := bearer(r)
	switch {
	case !rules.AskForPassword(), basic && rules.Remember(user, password):
		return nil
	case !basic && !shown:
		return errUnknown
	case !s.Guesses.allowed(r):
		return errTooMany
	case basic && rules.Know(user, password):
		return nil
	case basic:
		s.Guesses.failedBy(r, "password")
		return errUnknown
	}
	err := hasToken(r, tokens(r)...)
	if errors.Is(err, errTokenNeeded) {
		s.Guesses.failedBy(r, "token")
		return errUnknown
	}
	return err
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
