// Package console serves the pages that show drift, and on which people decide on retrain requests. The server renders
// the HTML; scripts only refresh parts of it and draw charts, so that reading and deciding work without them.
package console

import (
	"bytes"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// View provides the data that the pages show about policies. Its methods are safe for concurrent use and immediately
// return the last published state. Methods that read the ledger obey their context. The console does not modify the
// returned values.
type View interface {
	Summaries() []*finding.Summary
	Incidents() []alerts.Incident // open, and recently closed
	Faults() []alerts.Fault       // current
	// Delivery returns the delivery state of the alert for an open incident that is not muted.
	Delivery(incident string) alerts.Delivery
	// Course returns the past scores of a group, as far as they are kept.
	Course(g ingest.Group) plots.Course
	// History returns the past values of a group's signals. It does not wait beyond the end of ctx.
	History(ctx context.Context, g ingest.Group) (history.Record, error)
	// Ready returns nil once telemetry is judged as it arrives. Otherwise its error says what is missing.
	Ready() error
}

// Desk carries out people's actions on retrain requests. A change is durable when its method returns. Errors are those
// of retrain.Desk.
type Desk interface {
	// Unfinished returns the requests that are not finished: first those that wait for an approval, then the others,
	// newest first.
	Unfinished(ctx context.Context, limit int) ([]ledger.Request, error)
	// Search returns the requests that match a filter, newest first, and whether there are more.
	Search(ctx context.Context, f ledger.Filter) (found []ledger.Request, more bool, err error)
	Request(ctx context.Context, id string) (ledger.Request, error)
	History(ctx context.Context, id string) ([]ledger.StateChange, error)
	Deliveries(ctx context.Context, request string, limit int) ([]ledger.Delivery, error)
	// Decisions returns the reasons why an incident did or did not lead to a retrain request, newest first.
	Decisions(ctx context.Context, incident string, limit int) ([]ledger.Recorded, error)
	// Delta returns the differences between the config and the contract of a request and those of its parent, the
	// previous version.
	Delta(q ledger.Request) (parent string, differences []recipe.Difference, err error)

	// Offers returns the recipes and targets that Ask accepts for a policy. Those of the policy's trigger come first.
	Offers(policy string) (recipes, targets []string)
	// Ask opens a request for a person. A repeated ask with the same id returns the existing request.
	Ask(ctx context.Context, a retrain.Ask) (ledger.Request, error)
	// DoSeen carries out the decision of a person who has seen the first seen entries of the history.
	DoSeen(ctx context.Context, id string, seen int, v retrain.Verb, by, why string) (ledger.Request, error)

	LinkedRequest(ctx context.Context, id, token string) (ledger.Request, error)
	ApproveByLink(ctx context.Context, id, token, by, why string) (ledger.Request, error)
	RejectByLink(ctx context.Context, id, token, by, why string) (ledger.Request, error)
}

// Orders carries out people's decisions on incidents. A change is durable when its method returns, and a repeated call
// changes nothing. Its errors may be a *Refusal, whose text can be shown to people.
type Orders interface {
	Accept(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error)
	Mute(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error)
	// Comment keeps a comment with an incident, open or recently closed.
	Comment(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error)
}

// Refusal is the reason why an order was not carried out.
type Refusal struct {
	Status int
	Text   string // for people
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

// ledgerPatience is the maximum time that a page waits for the ledger.
const ledgerPatience = 2 * time.Second

// Console serves the pages. It keeps no state.
//
// It is large because each page is a method.
type Console struct {
	view   View
	orders Orders
	desk   Desk // nil if no retraining is configured
	access session.Access
	now    func() time.Time
	log    zerolog.Logger
	others zerolog.Logger // for events that other sites can cause
	layout map[string]*template.Template

	delivery time.Duration // maximum time that the answer to an approval waits for the delivery
}

// New returns a console. desk is nil if no retraining is configured.
func New(v View, orders Orders, desk Desk, a session.Access, now func() time.Time, log zerolog.Logger) *Console {
	others := log.Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Minute})
	return &Console{view: v, orders: orders, desk: desk, access: a, now: now, log: log, others: others, layout: layouts(), delivery: time.Second}
}

// Mux registers pages, such as an http.ServeMux.
type Mux interface {
	Handle(pattern string, h http.Handler)
}

// Register registers the pages with a mux.
func (c *Console) Register(mux Mux) {
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
	protection := c.access.SameSite()
	protection.SetDenyHandler(http.HandlerFunc(c.crossSite))
	for pattern, form := range map[string]http.HandlerFunc{
		"POST /retrain/{id}":   c.decide,
		"POST /incidents/{id}": c.act,
		"POST /login":          c.logIn,
		"POST /logout":         c.logOut,

		"POST /login/sessions/{id}": c.endSession,
	} {
		mux.Handle(pattern, secured(protection.Handler(form)))
	}
}

// Open reports whether a route is for people who are not logged in: the login page, assets of pages, and signed links.
func (c *Console) Open(pattern string) bool {
	switch pattern {
	case "GET /login", "POST /login", "GET /static/{file...}", "GET /retrain/{id}/decide", "POST /retrain/{id}/decide":
		return true
	}
	return false
}

// AskToLogIn redirects a browser to the login page, which then redirects back.
func AskToLogIn(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Location", root(r)+loginLink(here(r)))
	w.WriteHeader(http.StatusSeeOther)
}

// securityPolicy restricts pages to content from this service.
const securityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", securityPolicy)
		w.Header().Set("Referrer-Policy", "same-origin") // with no-referrer, browsers would hide the origin of a form
		next.ServeHTTP(w, r)
	})
}

// unreferred prevents browsers from disclosing an address that contains a token.
func unreferred(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Referrer-Policy", "no-referrer")
		next(w, r)
	}
}

// page is the data of every template.
type page struct {
	Root string // path from the page to "/", even if a proxy serves the console under a prefix
	Nav  []navItem
	User userPart
	Now  string
	Data any
}

// navItem is a link in the header of every page.
type navItem struct {
	Path, Title string
	Here        bool
}

// userPart is the part of every page's header that shows who is logged in.
type userPart struct {
	Login string // the link to the login page, "" if no token is configured
	In    bool
	Name  string // "" if unknown
	Here  bool
}

// sections returns the pages that every page links to.
func sections() []navItem {
	return []navItem{{Path: "", Title: "Fleet"}, {Path: "incidents", Title: "Incidents"}, {Path: "retrain", Title: "Retraining"}}
}

// user returns the part of the header for the person who is logged in.
func (c *Console) user(r *http.Request) userPart {
	if c.access.Tokens == nil {
		return userPart{}
	}
	u := userPart{Login: loginLink(here(r)), Here: r.URL.Path == "/login"}
	who, err := c.access.Admit(r, c.now())
	u.In, u.Name = err == nil, who.Name
	return u
}

// loginLink returns the link from the root to the login page, which then redirects to a page.
func loginLink(next string) string {
	if next == "" {
		return "login"
	}
	return "login?next=" + url.QueryEscape(next)
}

// show answers with a page.
func (c *Console) show(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	p := page{Root: root(r), Nav: sections(), User: c.user(r), Now: words.Stamp(c.now()), Data: data}
	for i := range p.Nav {
		p.Nav[i].Here = r.URL.Path == "/"+p.Nav[i].Path
	}
	var b bytes.Buffer
	if err := c.layout[name].ExecuteTemplate(&b, "layout", p); err != nil {
		c.log.Error().Err(err).Str("page", name).Msg("failed to render a page")
		status, p.Data = http.StatusInternalServerError, troublePage{Title: "Internal error", Text: "This page can't be displayed. See the service log for details."}
		b.Reset()
		if err := c.layout["trouble.html"].ExecuteTemplate(&b, "layout", p); err != nil {
			http.Error(w, "internal error", status)
			return
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if _, err := w.Write(b.Bytes()); err != nil {
		c.log.Debug().Err(err).Msg("the client disconnected")
	}
}

// root returns the relative path from a page to "/", as resolved by a browser: an escaped slash is part of a name.
func root(r *http.Request) string {
	return "./" + strings.Repeat("../", max(1, strings.Count(r.URL.EscapedPath(), "/"))-1) // a path may be empty
}
