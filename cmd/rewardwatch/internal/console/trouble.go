package console

import (
	"fmt"
	"net/http"
	"strconv"
)

// troublePage explains why there is no page.
type troublePage struct {
	Title, Text string
	Form        formPart // form that was sent but not carried out
	Starting    bool     // whether there are no other pages yet
}

// startingAgain is the number of seconds after which a browser retries while the service is starting.
const startingAgain = 3

// missing answers that the requested page does not exist.
func (c *Console) missing(w http.ResponseWriter, r *http.Request, text string) {
	c.show(w, r, http.StatusNotFound, "trouble.html", troublePage{Title: "Not found", Text: text})
}

// Unmatched responds to a request for which no page is registered, with the status that the mux has chosen.
func (c *Console) Unmatched(w http.ResponseWriter, r *http.Request, status int) {
	w.Header().Set("Content-Security-Policy", securityPolicy)
	p := troublePage{Title: "Page not found", Text: "The console has no page at this address."}
	if status == http.StatusMethodNotAllowed {
		p = troublePage{Title: "Method not allowed", Text: "This address does not accept " + r.Method + " requests."}
	}
	c.show(w, r, status, "trouble.html", p)
}

// Waiting responds to requests for all pages, and serves their styles, while the service is starting. what returns what
// the service is waiting for.
func (c *Console) Waiting(mux *http.ServeMux, what func() string) {
	mux.Handle("GET /static/{file...}", secured(http.HandlerFunc(c.static)))
	mux.Handle("/", secured(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", strconv.Itoa(startingAgain))
		w.Header().Set("Refresh", strconv.Itoa(startingAgain))
		c.show(w, r, http.StatusServiceUnavailable, "trouble.html", troublePage{
			Title: "Starting", Text: "The service is starting: " + what() + ". This page reloads until the service is ready.", Starting: true,
		})
	})))
}

// trouble answers with the reason why something cannot be shown or was not carried out.
func (c *Console) trouble(w http.ResponseWriter, r *http.Request, status int, text string, f formPart) {
	c.show(w, r, status, "trouble.html", troublePage{Title: "Temporarily unavailable", Text: text, Form: f})
}

// crossSite refuses a form from another site.
func (c *Console) crossSite(w http.ResponseWriter, r *http.Request) {
	c.others.Warn().Str("from", r.RemoteAddr).Str("origin", fmt.Sprintf("%.200s", r.Header.Get("Origin"))).Msg("rejected a form from another site")
	c.show(w, r, http.StatusForbidden, "trouble.html", troublePage{Title: "Request rejected", Text: sentence(errCrossSite)})
}
