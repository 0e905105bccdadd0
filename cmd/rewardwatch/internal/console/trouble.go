package console

import "net/http"

// troublePage says why there is no page.
type troublePage struct {
	Title, Text string
	Form        formPart // what was sent and not carried out
}

// missing answers that the requested page does not exist.
func (c *Console) missing(w http.ResponseWriter, r *http.Request, text string) {
	c.show(w, r, http.StatusNotFound, "trouble.html", troublePage{Title: "Not found", Text: text})
}

// trouble answers why something cannot be shown, or was not done.
func (c *Console) trouble(w http.ResponseWriter, r *http.Request, status int, text string, f formPart) {
	c.show(w, r, status, "trouble.html", troublePage{Title: "Temporarily unavailable", Text: text, Form: f})
}

// crossSite refuses a form of another site.
func (c *Console) crossSite(w http.ResponseWriter, r *http.Request) {
	c.log.Warn().Str("from", r.RemoteAddr).Str("origin", r.Header.Get("Origin")).Msg("refused a form from another site")
	c.show(w, r, http.StatusForbidden, "trouble.html", troublePage{Title: "Refused", Text: sentence(errCrossSite)})
}
