package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
)

// nameCookie contains the name that a person last entered in a form in this browser, if no token identifies the person.
// It grants no rights.
const nameCookie = "rewardwatch_name"

// maxRemembered is the time for which a browser keeps the name, in seconds.
const maxRemembered = 365 * 24 * 60 * 60

// remember makes the browser keep the name, which then fills in the next form.
func (c *Console) remember(w http.ResponseWriter, r *http.Request, f formPart) {
	if f.Known {
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: nameCookie, Value: url.QueryEscape(f.By), Path: "/", MaxAge: maxRemembered,
		HttpOnly: true, Secure: c.access.Encrypted(r), SameSite: http.SameSiteStrictMode,
	})
}

// remembered returns the name that the browser keeps, or "" if there is none or if no form would accept it.
func remembered(r *http.Request) string {
	kept, err := r.Cookie(nameCookie)
	if err != nil {
		return ""
	}
	name, err := url.QueryUnescape(kept.Value)
	if err != nil || words.CheckText("name", name, words.MaxBy) != nil {
		return ""
	}
	return strings.TrimSpace(name)
}
