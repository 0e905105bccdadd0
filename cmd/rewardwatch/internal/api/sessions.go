package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/audit"
	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/signin"
)

// registerSignIn registers the routes to the provider and back, if one is configured.
func (s *Server) registerSignIn(mux *routes, people session.Access, console *pages.Console) {
	if s.provider == nil {
		return
	}
	h := signin.Handlers{Provider: s.provider, Access: people, PageOf: pages.PageOf, Problem: console.LoginProblem, Ended: s.signedIn}
	mux.HandleFunc(signin.BeginRoute, h.Begin)
	mux.HandleFunc(signin.FinishRoute, func(w http.ResponseWriter, r *http.Request) {
		if s.Audit != nil {
			if err := s.Audit.Writable(); err != nil {
				s.log.Error().Err(err).Msg("rejected a sign-in because it could not be recorded in the audit log")
				console.LoginProblem(w, r, http.StatusServiceUnavailable, "the sign-in was rejected because the audit log is not writable")
				return
			}
		}
		h.Finish(w, r)
	})
}

// KeepSessions makes sessions opened at the provider survive a restart, and ended sessions stay ended. It keeps them in
// a file, which no other instance may use. Call it before Open.
func (s *Server) KeepSessions(path string) {
	s.sessions.Keep(path, s.cfg.OIDC.Terms(), func(err error) { s.log.Error().Err(err).Msg("failed to save sessions") })
}

// sampled limits how often strangers can make the service log something.
func sampled(log zerolog.Logger) zerolog.Logger {
	return log.Sample(&zerolog.BurstSampler{Burst: 20, Period: time.Minute})
}

// signedIn records the result of a sign-in.
func (s *Server) signedIn(r *http.Request, who session.Person, status int, why error) {
	reason := ""
	if why != nil { // anyone can cause this, with texts of their choice
		reason = strings.ToValidUTF8(fmt.Sprintf("%.500v", why), "")
		s.signIns.Warn().Str("error", reason).Str("who", who.Name).Str("from", r.RemoteAddr).Msg("sign-in failed")
	}
	if s.Audit == nil {
		return
	}
	e := audit.Entry{
		Time: s.Now().UTC(), Who: who.Name, As: "login", From: r.RemoteAddr, What: signin.FinishRoute, Object: map[string]string{},
		Result: "done", Status: status,
		Tenant: who.Tenant,
	}
	if why != nil {
		e.As, e.Result, e.Error = nothing, "refused", reason
	}
	if err := s.Audit.Append(e, why != nil); err != nil {
		s.log.Error().Err(err).Str("what", e.What).Msg("failed to record a sign-in in the audit log")
	}
}

func (s *Server) listSessions(w http.ResponseWriter, _ *http.Request) {
	s.answer(w, http.StatusOK, map[string]any{"sessions": s.sessions.List(all)})
}

func (s *Server) endSession(w http.ResponseWriter, r *http.Request) {
	ended, err := s.sessions.End(r.PathValue("id"), all)
	switch {
	case errors.Is(err, session.ErrNotSaved):
		s.refuse(w, http.StatusServiceUnavailable, err.Error())
	case err != nil:
		s.refuse(w, http.StatusNotFound, err.Error())
	default:
		s.answer(w, http.StatusOK, ended)
	}
}

// all accepts every session, for admins.
func all(session.Session) bool { return true }
