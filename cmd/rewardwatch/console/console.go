// Package console serves the pages on which people see what drifted, and decide on retrain requests. They are HTML made here; the scripts
// only refresh parts of them and draw charts, so that reading and deciding work without them.
package console

import (
	"bytes"
	"context"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// View is what the pages show of policies. Its methods are called by several goroutines at once and answer at once, from what was last
// published; what reads the ledger obeys its context. The console changes nothing that it is given.
type View interface {
	Summaries() []*bank.Summary
	Incidents() []alerts.Incident // open, and closed lately
	Faults() []alerts.Fault       // that hold
	// Course gives how the scores of a group went, as far as that is kept.
	Course(g ingest.Group) Course
	// Ready gives nil once everything is judged as it comes in, else what is missing.
	Ready() error
}

// Desk is what people do with retrain requests. What a method has changed is durable when it returns; its errors are those of
// retrain.Desk.
type Desk interface {
	// Unfinished gives the requests that are not finished, those that wait for an approval first, then the newest.
	Unfinished(ctx context.Context, limit int) ([]retrain.Request, error)
	// Search gives the requests that a filter chooses, the newest first, and whether there are more.
	Search(ctx context.Context, f retrain.Filter) (found []retrain.Request, more bool, err error)
	Request(ctx context.Context, id string) (retrain.Request, error)
	History(ctx context.Context, id string) ([]retrain.StateChange, error)
	Deliveries(ctx context.Context, request string, limit int) ([]retrain.Delivery, error)
	// Decisions gives why an incident did or did not order a retraining, the newest first.
	Decisions(ctx context.Context, incident string, limit int) ([]retrain.Recorded, error)
	// Delta gives what the config and the contract of a request change against those of the version before, its parent.
	Delta(q retrain.Request) (parent string, differences []retrain.Difference, err error)

	// DoSeen does what a person has decided who has seen so many entries of the history.
	DoSeen(ctx context.Context, id string, seen int, v retrain.Verb, by, why string) (retrain.Request, error)

	LinkedRequest(ctx context.Context, id, token string) (retrain.Request, error)
	ApproveByLink(ctx context.Context, id, token, by, why string) (retrain.Request, error)
	RejectByLink(ctx context.Context, id, token, by, why string) (retrain.Request, error)
}

// ledgerPatience is how long a page waits for the ledger.
const ledgerPatience = 2 * time.Second

// Console serves the pages. It has no state of its own.
type Console struct {
	view   View
	desk   Desk // nil where no retraining is configured
	access Access
	now    func() time.Time
	log    zerolog.Logger
	layout map[string]*template.Template
}

// New makes a console. desk is nil where no retraining is configured.
func New(v View, desk Desk, a Access, now func() time.Time, log zerolog.Logger) *Console {
	return &Console{view: v, desk: desk, access: a, now: now, log: log, layout: layouts()}
}

// Register has a mux serve the pages.
func (c *Console) Register(mux *http.ServeMux) {
	for pattern, page := range map[string]http.HandlerFunc{
		"GET /{$}":                  c.fleet,
		"GET /policies/{policy}":    c.policy,
		"GET /retrain/{id}/decide":  unreferred(c.linkPage),
		"POST /retrain/{id}/decide": unreferred(c.decideByLink),
		"GET /incidents":            c.incidents,
		"GET /incidents/{id}":       c.incident,
		"GET /retrain":              c.ledger,
		"GET /retrain/{id}":         c.request,
		"GET /login":                c.login,
		"GET /static/{file...}":     c.static,
	} {
		mux.Handle(pattern, secured(page))
	}
	protection := c.access.sameSite()
	protection.SetDenyHandler(http.HandlerFunc(c.crossSite))
	for pattern, form := range map[string]http.HandlerFunc{
		"POST /retrain/{id}": c.decide,
		"POST /login":        c.logIn,
		"POST /logout":       c.logOut,
	} {
		mux.Handle(pattern, secured(protection.Handler(form)))
	}
}

// securityPolicy has pages load what this service serves and nothing else.
const securityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", securityPolicy)
		w.Header().Set("Referrer-Policy", "same-origin") // with none, browsers would keep back where a form comes from
		next.ServeHTTP(w, r)
	})
}

// unreferred has browsers tell nobody of an address that holds a token.
func unreferred(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Referrer-Policy", "no-referrer")
		next(w, r)
	}
}

// page is what every template is given.
type page struct {
	Root string // leads from the page to "/", also where a proxy serves the console under a path of its own
	Nav  []navItem
	Now  string
	Data any
}

// navItem is a link at the head of every page.
type navItem struct {
	Path, Title string
	Here        bool
}

// sections are the pages that every page leads to.
func (c *Console) sections() []navItem {
	out := []navItem{{Path: "", Title: "Fleet"}, {Path: "incidents", Title: "Incidents"}, {Path: "retrain", Title: "Retraining"}}
	if c.access.Token != nil {
		out = append(out, navItem{Path: "login", Title: "Login"})
	}
	return out
}

// show answers with a page.
func (c *Console) show(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	p := page{Root: root(r), Nav: c.sections(), Now: c.now().UTC().Format("2006-01-02 15:04:05 UTC"), Data: data}
	for i := range p.Nav {
		p.Nav[i].Here = r.URL.Path == "/"+p.Nav[i].Path
	}
	var b bytes.Buffer
	if err := c.layout[name].ExecuteTemplate(&b, "layout", p); err != nil {
		c.log.Error().Err(err).Str("page", name).Msg("cannot write a page")
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if _, err := w.Write(b.Bytes()); err != nil {
		c.log.Debug().Err(err).Msg("the client went away")
	}
}

// root leads from a page to "/" as a browser resolves it: an escaped slash is part of a name.
func root(r *http.Request) string {
	return "./" + strings.Repeat("../", strings.Count(r.URL.EscapedPath(), "/")-1)
}
