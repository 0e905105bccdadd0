package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// turns are the answers that wait for a slot, by kind: each kind has slots of its own, so that a flood of one does not
// delay the others. Tenants share them. Their drops are not exported.
type turns struct {
	lists   *scrapes // answers of the API that grow with the number of streams
	records *scrapes // retrain requests as NDJSON, which are not rendered first
	reads   *scrapes // other answers, which grow with one policy or request, and pages
	logins  *scrapes // the login page
	links   *scrapes // pages of genuine signed links
}

func newTurns() turns {
	t := turns{newScrapes(nil), newScrapes(nil), newScrapes(nil), newScrapes(nil), newScrapes(nil)}
	t.logins.most, t.links.most = unreadForms, unreadForms
	return t
}

// unreadForms is the limit for pages that may be unread by people who are not logged in, in bytes.
const unreadForms = 8 << 20

// pagesInTurn registers the routes of the console. Its pages take their turns: their size depends on telemetry, and
// clients that read nothing would keep as many of them in memory as they have streams. A form of somebody who may not
// send it is answered with a page, too. Those of others do not wait, so that clients that only read cannot delay them.
//
// Holders of signed links have turns of their own, or strangers could keep them from deciding. So has the login page.
type pagesInTurn struct {
	*routes
	turns
	acts   func(*http.Request) bool                              // reports whether a request is from a person who may change something
	signed func(ctx context.Context, request, token string) bool // reports whether the token of a link is genuine
}

// Handle implements pages.Mux.
func (p pagesInTurn) Handle(pattern string, h http.Handler) {
	if pattern == assetsRoute {
		p.routes.Handle(pattern, h)
		return
	}
	method, path, _ := strings.Cut(pattern, " ")
	p.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		token := r.URL.Query().Get("token")
		if method != http.MethodGet {
			if p.acts(r) {
				h.ServeHTTP(w, r)
				return
			}
			token = received(w, r).Get("token")
		}
		kind := p.reads
		if path == loginPath {
			kind = p.logins
		} else if path == decidePath && p.signed(r.Context(), r.PathValue("id"), token) {
			kind = p.links
		}
		kind.inTurn(h.ServeHTTP)(w, r)
	})
}

// maxReceived is more than any form may have, in bytes.
const maxReceived = pages.MaxForm + 1

// received reads the form of a request, so that a client that sends it slowly does not do so in its turn. The handler
// can read it again, and refuses it if it is invalid.
func received(w http.ResponseWriter, r *http.Request) url.Values {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReceived))
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{cmp.Or(err, io.EOF)}))
	form, _ := url.ParseQuery(string(body))
	return form
}

// failing is a reader without content.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Routes of the console. Anyone may send the forms of loginPath and decidePath. Files below assetsRoute are embedded, and
// take no memory.
const (
	loginPath   = "/login"
	decidePath  = "/retrain/{id}/decide"
	assetsRoute = "GET /static/{file...}"
)

// signed reports whether the token of a link to a request is genuine, although it may be too late to use it.
func (s *Server) signed(ctx context.Context, request, token string) bool {
	if s.Requests == nil || token == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	_, err := s.Requests.LinkedRequest(ctx, request, token)
	_, late := errors.AsType[*ledger.StateError](err)
	return err == nil || late || errors.Is(err, retrain.ErrLinkExpired)
}
