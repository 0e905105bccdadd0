package main

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
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/console"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// view is what the server shows. Its methods are called by several goroutines at once and answer at once, from what
// was last published; those that read the ledger obey their context. The server changes nothing that it is given.
type view interface {
	Summaries() []*bank.Summary
	Alarms() []alerts.Alarm       // firing, and resolved lately
	Incidents() []alerts.Incident // open, and closed lately
	Faults() []alerts.Fault       // that hold
	Course(g ingest.Group) pages.Course
	// Ready gives nil once the state is restored, the group joined and the lag below its target, else what is missing.
	Ready() error
	// RetrainRequests gives the requests that a filter chooses, the newest first, and whether there are more; its error may be a
	// retrain.ErrBadFilter.
	RetrainRequests(ctx context.Context, f retrain.Filter) (found []retrain.Request, more bool, err error)
	// RetrainRecords gives all of them with what became of each, one after the other, until each fails.
	RetrainRecords(ctx context.Context, f retrain.Filter, each func(retrain.Record) error) error
	// RetrainRequest gives a request by its id, retrain.ErrUnknownRequest where there is none.
	RetrainRequest(ctx context.Context, id string) (retrain.Request, error)
	// Deliveries gives the newest delivery attempts, at most limit; of one request only where that is not "".
	Deliveries(ctx context.Context, request string, limit int) ([]retrain.Delivery, error)
}

// orders are carried out for people. When a method returns without an error, what it was asked for is durable; asked
// again, it changes nothing. The errors are those of decide.go.
type orders interface {
	Accept(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error)
	Mute(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error)
	Promote(ctx context.Context, baseline string, d alerts.Decision) (*bank.GroupSummary, error)
	Reset(ctx context.Context, policy string, labels map[string]string, d alerts.Decision) (*bank.GroupSummary, error)
	// Sample gives the values of a baseline. It changes nothing.
	Sample(ctx context.Context, baseline string) ([]bank.QuantitySample, error)
}

// The errors of the server, for errors.Is.
var (
	errTokenFile  = errors.New("http: read a token file")
	errHTTPListen = errors.New("http: listen")
	errHTTPServe  = errors.New("http: serve")
	errHTTPStop   = errors.New("http: stop")
)

// maxListed bounds what one request reads from the ledger.
const maxListed = 1000

//go:embed web
var web embed.FS

// server serves metrics, API and console, and on an address of its own the profiler.
type server struct {
	cfg      HTTPConfig
	view     view
	orders   orders
	gatherer prometheus.Gatherer
	reload   func() error
	reloads  sync.Mutex // one reload at a time
	now      func() time.Time
	log      zerolog.Logger
	shared   bool        // other instances judge other policies
	requests requestDesk // nil where no retraining is configured

	endpoints []*endpoint
	failed    chan error
}

// endpoint is one address that is served.
type endpoint struct {
	name     string
	server   *http.Server
	listener net.Listener
	done     chan struct{} // closed when Serve has returned
}

// newServer makes a server that is not listening yet. It fails with errTokenFile where a token is configured and
// cannot be read. reload is called by POST /-/reload, one
// call at a time; its error is what the client is told.
func newServer(cfg HTTPConfig, v view, o orders, gatherer prometheus.Gatherer, reload func() error, log zerolog.Logger) (*server, error) {
	s := &server{
		cfg: cfg, view: v, orders: o, gatherer: gatherer, reload: reload, now: time.Now, log: log,
		failed: make(chan error, 2), // one for each endpoint, so that neither blocks
	}
	for _, file := range []string{cfg.TokenFile, cfg.StatusTokenFile} {
		if file == "" {
			continue
		}
		if _, err := readToken(file); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Start binds the configured addresses and serves them until Stop. It fails with errHTTPListen, and then nothing is
// left open.
func (s *server) Start() error {
	if err := s.serve("http", s.cfg.Listen, s.handler(), time.Minute); err != nil {
		return err
	}
	if s.cfg.TokenFile == "" {
		s.log.Warn().Msg("without http.token_file, every program on this machine can change state over HTTP at a loopback address, and nobody else can")
	}
	if s.cfg.AdminListen == "" {
		return nil
	}
	// A profile is written for as long as its caller asks.
	if err := s.serve("admin", s.cfg.AdminListen, adminHandler(), 10*time.Minute); err != nil {
		return errors.Join(err, s.Stop(context.Background()))
	}
	return nil
}

func (s *server) serve(name, address string, h http.Handler, writeTimeout time.Duration) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%w on %s: %w", errHTTPListen, address, err)
	}
	e := &endpoint{name: name, listener: listener, done: make(chan struct{}), server: &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          stdlog.New(s.log.With().Str("endpoint", name).Logger(), "", 0),
	}}
	s.endpoints = append(s.endpoints, e)
	s.log.Info().Str("endpoint", name).Stringer("address", listener.Addr()).Msg("listening")
	if !listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
		s.log.Warn().Str("endpoint", name).Stringer("address", listener.Addr()).Msg("reachable from other machines, and whoever reaches it may read it")
	}
	go func() {
		defer close(e.done)
		if err := e.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("%w %s: %w", errHTTPServe, name, err)
		}
	}()
	return nil
}

// Addr gives the bound address of metrics, API and console. It is valid after Start.
func (s *server) Addr() string { return s.endpoints[0].listener.Addr().String() }

// AdminAddr gives the bound address of the profiler, "" where there is none. It is valid after Start.
func (s *server) AdminAddr() string {
	if len(s.endpoints) < 2 {
		return ""
	}
	return s.endpoints[1].listener.Addr().String()
}

// Failed delivers an errHTTPServe where an address stops being served before Stop.
func (s *server) Failed() <-chan error { return s.failed }

// Stop lets the requests in flight finish until ctx ends, then cuts them off. It returns when every goroutine that
// Start began has ended.
func (s *server) Stop(ctx context.Context) error {
	var errs []error
	for _, e := range s.endpoints {
		if err := e.server.Shutdown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%w %s: %w", errHTTPStop, e.name, err), e.server.Close())
		}
		<-e.done
	}
	return errors.Join(errs...)
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.gatherer, promhttp.HandlerOpts{
		ErrorLog:            stdlog.New(s.log, "", 0),
		ErrorHandling:       promhttp.ContinueOnError, // one bad series must not blind the monitoring to all others
		MaxRequestsInFlight: 8,
		EnableOpenMetrics:   true,
	}))
	mux.HandleFunc("GET /-/healthy", s.healthy)
	mux.HandleFunc("GET /-/ready", s.ready)
	mux.HandleFunc("POST /-/reload", s.guarded(s.postReload))
	mux.HandleFunc("GET /api/v1/streams", s.streams)
	mux.HandleFunc("GET /api/v1/baselines", s.baselines)
	mux.HandleFunc("GET /api/v1/baselines/{id}", s.baseline)
	mux.HandleFunc("GET /api/v1/baselines/{id}/diff/{other}", s.baselineDiff)
	mux.HandleFunc("POST /api/v1/baselines/{id}/promote", s.guarded(s.promoteBaseline))
	mux.HandleFunc("POST /api/v1/baselines/reset", s.guarded(s.resetBaseline))
	mux.HandleFunc("GET /api/v1/gates/{policy}/{version}", s.gate)
	mux.HandleFunc("GET /api/v1/alarms", s.alarms)
	mux.HandleFunc("GET /api/v1/incidents", s.incidents)
	mux.HandleFunc("GET /api/v1/incidents/{id}", s.incident)
	mux.HandleFunc("POST /api/v1/incidents/{id}/accept", s.guarded(s.acceptIncident))
	mux.HandleFunc("POST /api/v1/incidents/{id}/mute", s.guarded(s.muteIncident))
	mux.HandleFunc("GET /api/v1/retrain-requests", s.retrainRequests)
	mux.HandleFunc("POST /api/v1/retrain-requests", s.guarded(s.askRetraining))
	mux.HandleFunc("GET /api/v1/retrain-requests/{id}", s.retrainRequest)
	mux.HandleFunc("GET /api/v1/retrain-requests/{id}/history", s.requestHistory)
	mux.HandleFunc("POST /api/v1/retrain-requests/{id}/approve", s.guarded(s.decideRequest(requestDesk.Approve)))
	mux.HandleFunc("POST /api/v1/retrain-requests/{id}/reject", s.guarded(s.decideRequest(requestDesk.Reject)))
	mux.HandleFunc("POST /api/v1/retrain-requests/{id}/resend", s.guarded(s.decideRequest(requestDesk.Resend)))
	mux.HandleFunc("POST /api/v1/retrain-requests/{id}/status", s.guardedBy(s.reportRequest, s.cfg.TokenFile, s.cfg.StatusTokenFile))
	mux.HandleFunc("GET /api/v1/"+retrain.SchemaFile, s.retrainSchema)
	mux.HandleFunc("GET /api/v1/deliveries", s.deliveries)
	mux.HandleFunc("GET /api/v1/openapi.json", embedded("web/openapi.json", "application/json"))
	pages.New(s.view, s.requests, s.access(), func() time.Time { return s.now() }, s.log).Register(mux)
	return secured(mux)
}

// securityPolicy has browsers load nothing and send no form; the console says otherwise of its pages.
const securityPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// adminHandler serves the profiler. Profiles show memory, so they have an address of their own.
func adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return secured(mux)
}

// secured has browsers run nothing, embed nothing and keep nothing of what is answered.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", securityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func (s *server) healthy(w http.ResponseWriter, _ *http.Request) {
	s.plain(w, http.StatusOK, "healthy")
}

func (s *server) ready(w http.ResponseWriter, _ *http.Request) {
	if err := s.view.Ready(); err != nil {
		s.plain(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
		return
	}
	s.plain(w, http.StatusOK, "ready")
}

func (s *server) postReload(w http.ResponseWriter, _ *http.Request) {
	s.reloads.Lock()
	defer s.reloads.Unlock()
	if err := s.reload(); err != nil {
		s.refuse(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	s.answer(w, http.StatusOK, map[string]bool{"reloaded": true})
}

func (s *server) plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	s.write(w, []byte(text+"\n"))
}

func (s *server) refuse(w http.ResponseWriter, status int, message string) {
	s.answer(w, status, map[string]string{"error": message})
}

func (s *server) answer(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		s.log.Error().Err(err).Msg("cannot write an answer as JSON")
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	s.write(w, append(body, '\n'))
}

// write notes an answer that did not arrive: its status has been sent, so there is nobody left to tell.
func (s *server) write(w http.ResponseWriter, body []byte) {
	if _, err := w.Write(body); err != nil {
		s.log.Debug().Err(err).Msg("the client went away")
	}
}

func embedded(name, contentType string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		http.ServeFileFS(w, r, web, name)
	}
}
