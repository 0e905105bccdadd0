package api

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/audit"
	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/signin"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/tenant"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/webconfig"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// View provides the data that the server shows. Its methods are safe for concurrent use and immediately return the last
// published state. Methods that read the ledger obey their context. The server does not modify the returned values.
type View interface {
	Summaries() []*finding.Summary
	Alarms() []alerts.Alarm       // firing, and recently resolved
	Incidents() []alerts.Incident // open, and recently closed
	Faults() []alerts.Fault       // current
	// Guards returns the guards of a policy, and false if it is not monitored here; AllGuards returns those of all
	// policies.
	Guards(policy string) (*guard.Summary, bool)
	AllGuards() []*guard.Summary
	// GuardsChanged returns a channel that is closed when a guard next trips or is released.
	GuardsChanged() <-chan struct{}
	Delivery(incident string) alerts.Delivery
	Course(g ingest.Group) plots.Course
	History(ctx context.Context, g ingest.Group) (history.Record, error)
	// Ready returns nil once the state is restored, the group joined and the lag below its target. Otherwise its error
	// says what is missing.
	Ready() error
	// Degraded returns an error that says what does not work although the service is ready, or nil.
	Degraded() error
	// RetrainRequests returns the requests that match a filter, newest first, and whether there are more. Its error may
	// be a ledger.ErrBadFilter.
	RetrainRequests(ctx context.Context, f ledger.Filter) (found []ledger.Request, more bool, err error)
	// RetrainRecords calls each with every matching request and its history, until each fails.
	RetrainRecords(ctx context.Context, f ledger.Filter, each func(ledger.Record) error) error
	// RetrainRequest returns a request by its id, or ledger.ErrUnknownRequest.
	RetrainRequest(ctx context.Context, id string) (ledger.Request, error)
	// Deliveries returns the newest delivery attempts, at most limit. If request is not "", it returns only those of
	// that request.
	Deliveries(ctx context.Context, request string, limit int) ([]ledger.Delivery, error)
}

// orders carries out the orders of people. When a method returns without an error, its change is durable; a repeated
// call changes nothing. The errors are those of package engine.
type orders interface {
	pages.Orders
	Promote(ctx context.Context, baseline string, d alerts.Decision) (*finding.GroupSummary, error)
	Reset(ctx context.Context, policy string, labels map[string]string, d alerts.Decision) (*finding.GroupSummary, error)
	// Forget removes a policy with its baselines. pending means that other instances have yet to do so.
	Forget(ctx context.Context, policy string, d alerts.Decision) (pending bool, err error)
	// Release releases a guard that has tripped.
	Release(ctx context.Context, policy, guard string, d alerts.Decision) (*guard.Summary, error)
	// Sample returns the values of a baseline. It changes nothing, and does not delay judging.
	Sample(ctx context.Context, baseline string) ([]finding.QuantitySample, error)
}

// The errors of the server, for errors.Is.
var (
	errHTTPListen = errors.New("http: listen")
	errHTTPServe  = errors.New("http: serve")
	errHTTPStop   = errors.New("http: stop")
)

//go:embed web
var web embed.FS

// Server serves metrics, API and console, and the profiler on a separate address.
//
// It is large because each route is a method.
type Server struct {
	cfg      Config
	holders  access.Holders
	view     View
	Orders   orders // set before Open
	gatherer prometheus.Gatherer
	series   atomic.Pointer[[]Series]
	reload   func() error
	reloads  sync.Mutex // one reload at a time
	Now      func() time.Time
	log      zerolog.Logger
	web      *webconfig.File  // nil if none is configured
	Audit    *audit.Log       // nil if none is configured
	provider *signin.Provider // nil if none is configured
	signIns  zerolog.Logger   // for failed sign-ins
	sessions *session.Store
	Shared   bool        // other instances judge other policies
	Requests RequestDesk // nil if no retraining is configured
	Tenants  tenant.List // set before Open

	Telemetry   TelemetryReceiver                     // for the platform; nil if no topic can accept its telemetry
	TelemetryOf func(tenant string) TelemetryReceiver // set before Open

	missing atomic.Pointer[string]       // what the service is waiting for before it can answer; nil if it never waited
	opened  atomic.Pointer[http.Handler] // nil before Open

	stopping  chan struct{} // closed by Stop, so that it does not wait for long polls
	stopOnce  sync.Once
	endpoints []*endpoint
	failed    chan error
	Guesses   *guesses // counts wrong tokens
	Scrapes   *scrapes
	turns
}

// endpoint is one address on which the server listens.
type endpoint struct {
	name     string
	server   *http.Server
	listener net.Listener
	done     chan struct{} // closed when Serve has returned
}

// New returns a server that does not listen yet. It fails with access.ErrFile, webconfig.ErrBad or audit.ErrLog if a
// configured token, the web configuration or the audit log cannot be used. POST /-/reload calls reload, one call at a
// time, and sends its error to the client.
func New(cfg Config, v View, o orders, gatherer prometheus.Gatherer, reload func() error, log zerolog.Logger) (*Server, error) {
	s := &Server{
		cfg: cfg, holders: cfg.holders(), view: v, Orders: o, gatherer: gatherer, reload: reload, Now: time.Now, log: log, signIns: sampled(log),
		failed:   make(chan error, 2), // one for each endpoint, so that neither blocks
		stopping: make(chan struct{}), TelemetryOf: func(string) TelemetryReceiver { return nil },
	}
	s.Guesses, s.Scrapes = newGuesses(time.Now, log), newScrapes(s.Metrics())
	s.turns = newTurns()
	err := s.holders.Check()
	if err != nil {
		return nil, err
	}
	if cfg.WebConfigFile != "" {
		if s.web, err = webconfig.Open(cfg.WebConfigFile, log); err != nil {
			return nil, err
		}
	}
	s.sessions = session.NewStore(func() time.Time { return s.Now() })
	if cfg.OIDC.Enabled() {
		if s.provider, err = signin.New(cfg.OIDC, cfg.ExternalURL, func() time.Time { return s.Now() }); err != nil {
			return nil, err
		}
	}
	if cfg.AuditLog != "" {
		if s.Audit, err = audit.Open(cfg.AuditLog); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// WaitsFor makes every path except health and metrics respond with what the service is waiting for, from before Start
// until Open.
func (s *Server) WaitsFor(what string) { s.missing.Store(&what) }

// Open starts serving all paths.
func (s *Server) Open() {
	h := s.Handler()
	s.opened.Store(&h)
}

// Start binds the configured addresses and serves them until Stop. If it fails, with errHTTPListen, it leaves no
// listener open.
func (s *Server) Start() error {
	if s.missing.Load() == nil {
		s.Open()
	}
	starting := s.starting()
	current := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if opened := s.opened.Load(); opened != nil {
			(*opened).ServeHTTP(w, r)
			return
		}
		starting.ServeHTTP(w, r)
	})
	if err := s.serve("http", s.cfg.Listen, current, time.Minute); err != nil {
		return err
	}
	if !s.holders.Anyone(access.Administer) && s.provider == nil {
		s.log.Warn().Msg("http.token_file is not set: any program on this machine can change state over HTTP, but other machines cannot")
	}
	if s.cfg.AdminListen == "" {
		return nil
	}
	// Writing a profile takes as long as its caller asks.
	if err := s.serve("admin", s.cfg.AdminListen, s.profiler(), 10*time.Minute); err != nil {
		return errors.Join(err, s.Stop(context.Background()))
	}
	return nil
}

func (s *Server) serve(name, address string, h http.Handler, writeTimeout time.Duration) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%w on %s: %w", errHTTPListen, address, err)
	}
	listener = newCapped(listener, s.trusts())
	e := &endpoint{name: name, listener: listener, done: make(chan struct{}), server: &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          connectionLog(s.log.With().Str("endpoint", name).Logger()),
	}}
	s.endpoints = append(s.endpoints, e)
	s.log.Info().Str("endpoint", name).Stringer("address", listener.Addr()).Bool("tls", s.encrypts()).Msg("listening")
	s.warnOfOthers(name, listener.Addr().(*net.TCPAddr))
	serve := func() error { return e.server.Serve(listener) }
	if s.encrypts() {
		s.web.Configure(e.server)
		serve = func() error { return e.server.ServeTLS(listener, "", "") }
	}
	go func() {
		defer close(e.done)
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("%w %s: %w", errHTTPServe, name, err)
		}
	}()
	return nil
}

// connectionErrors logs the errors of a server. Those of connections are sampled, because a client can cause them as often
// as it can connect; panics are not. The texts of the former contain what the client has sent, such as names of protocols.
type connectionErrors struct{ all, sampled zerolog.Logger }

func connectionLog(log zerolog.Logger) *stdlog.Logger {
	return stdlog.New(connectionErrors{log, sampled(log)}, "", 0)
}

// Write implements io.Writer.
func (c connectionErrors) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if strings.HasPrefix(text, "http: panic serving ") || strings.HasPrefix(text, "http2: panic serving ") {
		c.all.Error().Msg(text)
	} else {
		c.sampled.Warn().Msg(text)
	}
	return len(line), nil
}

// encrypts reports whether the server uses TLS.
func (s *Server) encrypts() bool { return s.web != nil && s.web.Encrypts() }

// warnOfOthers warns if other machines can reach an address on which anyone can read, or on which credentials are not
// encrypted.
func (s *Server) warnOfOthers(name string, at *net.TCPAddr) {
	if at.IP.IsLoopback() {
		return
	}
	warn := func(why string) { s.log.Warn().Str("endpoint", name).Stringer("address", at).Msg(why) }
	if !s.cfg.RequireToken && (s.web == nil || !s.web.Rules().AskForPassword() && !s.web.AsksForCertificate()) {
		warn("the address is reachable from other machines: any client that can reach it can read the data")
	}
	if !s.encrypts() && (len(s.holders) > 0 || s.web != nil) {
		warn("the address is reachable from other machines without TLS: others on the network can read the tokens and passwords that clients send")
	}
}

// Addr returns the bound address of metrics, API and console. It is valid after Start.
func (s *Server) Addr() string { return s.endpoints[0].listener.Addr().String() }

// URL returns an address at which people can reach the console without an external URL. If the service listens on all
// addresses, this is the name of its machine, because 0.0.0.0 or [::] cannot be opened from another machine. It is
// valid after Start.
func (s *Server) URL() string {
	at := s.endpoints[0].listener.Addr().(*net.TCPAddr)
	host := at.IP.String()
	if name, err := os.Hostname(); at.IP.IsUnspecified() && err == nil {
		host = name
	}
	return s.scheme() + "://" + net.JoinHostPort(host, strconv.Itoa(at.Port))
}

// scheme returns the scheme of the server's URLs.
func (s *Server) scheme() string {
	if s.encrypts() {
		return "https"
	}
	return "http"
}

// AdminAddr returns the bound address of the profiler, or "" if there is none. It is valid after Start.
func (s *Server) AdminAddr() string {
	if len(s.endpoints) < 2 {
		return ""
	}
	return s.endpoints[1].listener.Addr().String()
}

// Failed delivers an errHTTPServe if an address stops being served before Stop.
func (s *Server) Failed() <-chan error { return s.failed }

// Stop lets the requests in progress finish until ctx ends, and then cuts them off. It returns once every goroutine of
// Start has ended.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { close(s.stopping) })
	var errs []error
	for _, e := range s.endpoints {
		if err := e.server.Shutdown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%w %s: %w", errHTTPStop, e.name, err), e.server.Close())
		}
		<-e.done
	}
	return errors.Join(errs...)
}

// starting answers requests until the service is open.
func (s *Server) starting() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.forPlatform(s.Scrapes, s.access()))
	mux.HandleFunc("GET /-/healthy", s.healthy)
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		s.plain(w, http.StatusServiceUnavailable, "not ready: "+*s.missing.Load())
	})
	mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		s.refuse(w, http.StatusServiceUnavailable, "the service is starting: "+*s.missing.Load())
	})
	pages.New(s.view, consoleOrders{s}, nil, session.Access{}, s.Now, s.log).Waiting(mux, func() string { return *s.missing.Load() })
	return s.forwarded(secured(s.named(s.admitted(mux, func(r *http.Request) access.Right {
		switch {
		case r.URL.Path == "/-/healthy" || r.URL.Path == "/-/ready" || r.URL.Path == "/login" || strings.HasPrefix(r.URL.Path, "/static/"):
			return open
		case strings.HasPrefix(r.URL.Path, "/api/"): // a token that will be valid later is not a guess
			return access.Read | access.Send | access.Report
		}
		return access.Read
	}))))
}

// routes returns the handlers of all paths except the profiler's, and the rights that some of them need instead of
// access.Read.
func (s *Server) routes(people session.Access) (*routes, *pages.Console, map[string]access.Right) {
	mux := &routes{ServeMux: http.NewServeMux()}
	rights := s.changes(mux)
	const guards, gates, request = "GET /api/v1/guards/{policy}", "GET /api/v1/gates/{policy}/{version}", "GET /api/v1/retrain-requests/{id}"
	rights[guards], rights[gates], rights[request] = access.Obey, access.Follow, access.Follow
	mux.Handle("GET /metrics", s.forPlatform(s.Scrapes, people))
	mux.HandleFunc("GET /-/healthy", s.healthy)
	mux.HandleFunc("GET /-/ready", s.ready)
	mux.HandleFunc("GET /api/v1/streams", s.lists.inTurn(s.streams))
	mux.HandleFunc("GET /api/v1/baselines", s.lists.inTurn(s.baselines))
	mux.HandleFunc("GET /api/v1/baselines/{id}", s.reads.inTurn(s.baseline))
	mux.HandleFunc("GET /api/v1/baselines/{id}/diff/{other}", s.reads.inTurn(s.baselineDiff))
	mux.HandleFunc("GET /api/v1/policies/{policy}/history", s.reads.inTurn(s.signalHistory))
	mux.HandleFunc(gates, s.reads.inTurn(s.gate))
	mux.HandleFunc("GET /api/v1/guards", s.lists.inTurn(s.allGuards))
	mux.HandleFunc(guards, s.policyGuards)
	mux.HandleFunc("GET /api/v1/guards/{policy}/history", s.reads.inTurn(s.guardHistory))
	mux.HandleFunc("GET /api/v1/alarms", s.lists.inTurn(s.alarms))
	mux.HandleFunc("GET /api/v1/incidents", s.lists.inTurn(s.incidents))
	mux.HandleFunc("GET /api/v1/incidents/{id}", s.reads.inTurn(s.incident))
	mux.HandleFunc("GET /api/v1/retrain-requests", s.retrainRequests)
	mux.HandleFunc(request, s.reads.inTurn(s.retrainRequest))
	mux.HandleFunc("GET /api/v1/retrain-requests/{id}/history", s.reads.inTurn(s.requestHistory))
	mux.HandleFunc("GET /api/v1/"+recipe.SchemaFile, s.retrainSchema)
	mux.HandleFunc("GET /api/v1/deliveries", s.reads.inTurn(s.deliveries))
	const sessions = "GET /api/v1/sessions"
	rights[sessions] = access.Administer
	mux.HandleFunc(sessions, s.guarded(s.listSessions, access.Administer))
	mux.HandleFunc("GET /api/v1/openapi.json", embedded("web/openapi.json", "application/json"))
	console := pages.New(s.view, consoleOrders{s}, s.Requests, people, func() time.Time { return s.Now() }, s.log)
	console.Register(pagesInTurn{routes: mux, turns: s.turns, signed: s.signed, acts: func(r *http.Request) bool {
		who, err := people.Admit(r, s.Now())
		return err == nil && who.Role.Permits(access.Act)
	}})
	s.registerSignIn(mux, people, console)
	return mux, console, rights
}

// Handler returns the handler of all paths except those of the profiler.
func (s *Server) Handler() http.Handler {
	people := s.access()
	mux, console, rights := s.routes(people)
	route := func(r *http.Request) string { _, pattern := mux.Handler(r); return pattern }
	answers := s.divided(s.matched(mux.ServeMux, console), people, route)
	admitted := s.admitted(answers, func(r *http.Request) access.Right {
		pattern := route(r)
		if any, listed := rights[pattern]; listed {
			return any
		}
		if pattern == "GET /-/healthy" || pattern == "GET /-/ready" || pattern == signin.BeginRoute || pattern == signin.FinishRoute || console.Open(pattern) {
			return open
		}
		return access.Read
	})
	return s.holders.Within(s.forwarded(secured(s.named(s.audited(admitted, people, route)))))
}

// changes registers the routes that change state, and returns the rights that they need.
func (s *Server) changes(mux *routes) map[string]access.Right {
	rights := map[string]access.Right{}
	for _, change := range []struct {
		route   string
		handler http.HandlerFunc
		needs   access.Right
	}{
		{"/-/reload", s.postReload, access.Administer},
		{"/api/v1/sessions/{id}/end", s.endSession, access.Administer},
		{"/api/v1/telemetry", s.postTelemetry, access.Send},
		{"/api/v1/baselines/{id}/promote", s.promoteBaseline, access.Decide},
		{"/api/v1/baselines/reset", s.resetBaseline, access.Decide},
		{"/api/v1/policies/{policy}/forget", s.forgetPolicy, access.Administer},
		{"/api/v1/guards/{policy}/{guard}/release", s.releaseGuard, access.Decide},
		{"/api/v1/incidents/{id}/accept", s.acceptIncident, access.Decide},
		{"/api/v1/incidents/{id}/mute", s.muteIncident, access.Act},
		{"/api/v1/incidents/{id}/comment", s.commentIncident, access.Act},
		{"/api/v1/retrain-requests", s.askRetraining, access.Act},
		{"/api/v1/retrain-requests/{id}/approve", s.decideRequest(RequestDesk.Approve), access.Decide},
		{"/api/v1/retrain-requests/{id}/reject", s.decideRequest(RequestDesk.Reject), access.Decide},
		{"/api/v1/retrain-requests/{id}/withdraw", s.decideRequest(RequestDesk.Withdraw), access.Decide},
		{"/api/v1/retrain-requests/{id}/resend", s.decideRequest(RequestDesk.Resend), access.Decide},
		{"/api/v1/retrain-requests/{id}/status", s.reportRequest, access.Report},
	} {
		pattern := "POST " + change.route
		rights[pattern] = change.needs
		mux.HandleFunc(pattern, s.guarded(change.handler, change.needs))
	}
	return rights
}

// matched answers requests that match no route: with a page for browsers, and with JSON for paths of the API.
func (s *Server) matched(mux *http.ServeMux, console *pages.Console) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		why := &unmatched{header: http.Header{}}
		h.ServeHTTP(why, r)
		if allow := why.header.Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
		}
		switch {
		case !strings.HasPrefix(r.URL.Path, "/api/") && !strings.HasPrefix(r.URL.Path, "/-/"):
			console.Unmatched(w, r, why.status)
		case why.status == http.StatusMethodNotAllowed:
			s.refuse(w, why.status, fmt.Sprintf("%s does not accept %s: use %s", r.URL.Path, r.Method, why.header.Get("Allow")))
		default:
			s.refuse(w, why.status, "unknown path: see GET /api/v1/openapi.json for all API paths")
		}
	})
}

// unmatched records the answer of a mux to a request that matches no route.
type unmatched struct {
	header http.Header
	status int
}

func (u *unmatched) Header() http.Header         { return u.header }
func (u *unmatched) Write(b []byte) (int, error) { return len(b), nil }
func (u *unmatched) WriteHeader(status int)      { u.status = status }

// securityPolicy prevents browsers from loading anything or sending forms. The console sets its own policy for its
// pages.
const securityPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// profiler returns the handler of the separate address.
func (s *Server) profiler() http.Handler {
	return s.forwarded(secured(s.named(s.admitted(s.forPlatform(s.ofAdmins(adminHandler()), s.access()), needs(access.Administer)))))
}

// adminHandler serves the profiler. It has a separate address, because profiles reveal the contents of memory.
func adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// secured prevents browsers from running, embedding or storing any part of an answer.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", securityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if r.TLS != nil && !namesLoopback(r.Host) {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) {
	s.plain(w, http.StatusOK, "healthy")
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if err := s.view.Ready(); err != nil {
		s.plain(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
		return
	}
	if err := s.view.Degraded(); err != nil {
		s.plain(w, http.StatusOK, "ready, but "+err.Error())
		return
	}
	s.plain(w, http.StatusOK, "ready")
}

func (s *Server) postReload(w http.ResponseWriter, _ *http.Request) {
	s.reloads.Lock()
	defer s.reloads.Unlock()
	if err := s.reload(); err != nil {
		s.refuse(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	s.answer(w, http.StatusOK, map[string]bool{"reloaded": true})
}

func (s *Server) plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	s.write(w, []byte(text+"\n"))
}

func (s *Server) refuse(w http.ResponseWriter, status int, message string) {
	s.answer(w, status, map[string]string{"error": message})
}

func (s *Server) answer(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		s.log.Error().Err(err).Msg("failed to encode a response as JSON")
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	s.write(w, append(body, '\n'))
}

// write writes a body, and logs if it did not arrive. Its status has already been sent, so the client cannot be told.
func (s *Server) write(w http.ResponseWriter, body []byte) {
	if _, err := w.Write(body); err != nil {
		s.log.Debug().Err(err).Msg("the client disconnected")
	}
}

func embedded(name, contentType string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		http.ServeFileFS(w, r, web, name)
	}
}
