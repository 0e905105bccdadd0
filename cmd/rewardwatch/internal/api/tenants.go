package api

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// routes registers handlers and remembers their patterns.
type routes struct {
	*http.ServeMux
	patterns []string
}

// Handle shadows the method of the mux.
func (r *routes) Handle(pattern string, h http.Handler) {
	r.patterns = append(r.patterns, pattern)
	r.ServeMux.Handle(pattern, h)
}

// HandleFunc shadows the method of the mux.
func (r *routes) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	r.Handle(pattern, http.HandlerFunc(h))
}

// ofTenants reports whether a route is for the people and programs of a tenant, who see and change only the tenant's
// data there. Routes that are not listed are not for them.
func ofTenants(pattern string) bool {
	switch method, path, _ := strings.Cut(pattern, " "); method {
	case http.MethodGet:
		switch path {
		case "/{$}", "/policies/{policy}", "/incidents", "/incidents/{id}", "/retrain", "/retrain/{id}",
			"/api/v1/streams", "/api/v1/baselines", "/api/v1/baselines/{id}", "/api/v1/baselines/{id}/diff/{other}",
			"/api/v1/policies/{policy}/history", "/api/v1/gates/{policy}/{version}", "/api/v1/guards", "/api/v1/guards/{policy}",
			"/api/v1/guards/{policy}/history", "/api/v1/alarms", "/api/v1/incidents", "/api/v1/incidents/{id}",
			"/api/v1/retrain-requests", "/api/v1/retrain-requests/{id}", "/api/v1/retrain-requests/{id}/history",
			"/api/v1/" + recipe.SchemaFile, "/api/v1/deliveries", "/api/v1/openapi.json":
			return true
		}
	case http.MethodPost:
		switch path {
		case "/incidents/{id}", "/retrain/{id}", "/api/v1/telemetry", "/api/v1/baselines/{id}/promote", "/api/v1/baselines/reset",
			"/api/v1/guards/{policy}/{guard}/release", "/api/v1/incidents/{id}/accept", "/api/v1/incidents/{id}/mute",
			"/api/v1/incidents/{id}/comment", "/api/v1/retrain-requests", "/api/v1/retrain-requests/{id}/approve",
			"/api/v1/retrain-requests/{id}/reject", "/api/v1/retrain-requests/{id}/withdraw", "/api/v1/retrain-requests/{id}/resend",
			"/api/v1/retrain-requests/{id}/status":
			return true
		}
	}
	return false
}

// ofEveryone reports whether a route neither shows nor changes anything that belongs to a tenant.
func ofEveryone(pattern string) bool {
	switch pattern {
	case "", "GET /-/healthy", "GET /-/ready", "GET /login", "POST /login", "POST /logout", "POST /login/sessions/{id}", "GET /static/{file...}",
		"GET /login/oidc", "GET /login/oidc/callback":
		return true
	case "GET /retrain/{id}/decide", "POST /retrain/{id}/decide": // its link is signed for one request
		return true
	}
	return false
}

// errTwoTenants means that a request has a token and a session of different tenants.
var errTwoTenants = errors.New("the token and the session belong to different tenants")

// tenantOf returns the tenant that a request is confined to, or "". All of its credentials count, so that everyone with
// a token of a tenant is confined. A request whose sender is unknown is not assumed to come from the platform: it
// fails, for example with access.ErrUnknown or an access.ErrFile, even if it was admitted a moment before. A password
// of the web configuration file does not identify the sender, because people of tenants have such passwords, too.
func (s *Server) tenantOf(r *http.Request, people session.Access) (tenant string, err error) {
	known := false
	if _, shown := bearer(r); shown {
		h, err := s.holder(r, anything)
		if err != nil {
			return "", err
		}
		tenant, known = h.Tenant, true
	}
	who, in := people.Holder(r, s.Now())
	switch {
	case !in:
	case tenant == "" || tenant == who.Tenant || who.Tenant == "":
		tenant, known = cmp.Or(tenant, who.Tenant), true
	default:
		return "", errTwoTenants
	}
	if !known {
		return "", access.ErrUnknown
	}
	return tenant, nil
}

// confined reports whether anyone is confined to a tenant.
func (s *Server) confined() bool {
	for _, h := range s.holders {
		if h.Tenant != "" {
			return true
		}
	}
	return s.provider != nil && s.cfg.OIDC.Confines()
}

// divided answers the requests of each tenant with a separate handler, which has no access to the data of others.
func (s *Server) divided(platform http.Handler, people session.Access, route func(*http.Request) string) http.Handler {
	if !s.confined() {
		return platform
	}
	handlers := map[string]http.Handler{}
	for _, t := range s.Tenants {
		own := s.of(t.Name)
		mux, console, _ := own.routes(people)
		handlers[t.Name] = own.matched(mux.ServeMux, console)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pattern := route(r)
		if ofEveryone(pattern) {
			platform.ServeHTTP(w, r)
			return
		}
		_, shown := bearer(r) // if there is a session, the token has not been checked yet
		if shown && !s.Guesses.allowed(r) {
			s.refuseGuesses(w)
			return
		}
		tenant, err := s.tenantOf(r, people)
		if shown && mayGuess(err) {
			s.Guesses.failedBy(r, "token")
		}
		switch h := handlers[tenant]; {
		case errors.Is(err, access.ErrFile), errors.Is(err, errUnchecked):
			s.refuseUnread(w, err)
		case errors.Is(err, access.ErrUnknown):
			s.askWho(w, r, false)
		case err != nil:
			s.refuse(w, http.StatusForbidden, err.Error())
		case tenant == "":
			platform.ServeHTTP(w, r)
		case h == nil || !ofTenants(pattern):
			s.refuse(w, http.StatusForbidden, "tenants cannot use this path")
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// forPlatform refuses requests that are confined to a tenant.
func (s *Server) forPlatform(next http.Handler, people session.Access) http.Handler {
	if !s.confined() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tenant, err := s.tenantOf(r, people); tenant != "" || err != nil { // although it was admitted before
			s.refuse(w, http.StatusForbidden, "tenants cannot use this path")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// of returns a server that shows and changes only the data of a tenant. It shares the tokens and sessions of s.
func (s *Server) of(name string) *Server {
	owns := func(policy string) bool { return s.Tenants.Name(policy) == name }
	view := tenantView{of: s.view, owns: owns}
	own := &Server{
		cfg: s.cfg, holders: s.holders, view: view, Orders: tenantOrders{of: s.Orders, view: view}, Now: func() time.Time { return s.Now() }, log: s.log,
		web: s.web, Audit: s.Audit, provider: s.provider, sessions: s.sessions, Shared: s.Shared, stopping: s.stopping, Guesses: s.Guesses,
		Scrapes: s.Scrapes, turns: s.turns,
		reload: func() error { return errors.New("not for tenants") },
	}
	if s.Requests != nil {
		own.Requests = tenantDesk{of: s.Requests, view: view, name: name, where: s.elsewhere(http.StatusNotFound)}
	}
	if to := s.TelemetryOf(name); to != nil {
		own.Telemetry = tenantTelemetry{of: to, owns: owns, name: name}
	}
	return own
}
