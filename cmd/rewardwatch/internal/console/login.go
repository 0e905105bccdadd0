package console

import (
	"errors"
	"net/http"
	"net/url"
)

// loginPage asks for the token.
type loginPage struct {
	Needed  bool   // a token is configured
	In      bool   // whether it was shown already
	Request string // id of the request to decide on next, "" for none
	Problem string
}

// login shows the page that asks for the token.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	c.showLogin(w, r, http.StatusOK, loginPage{Request: r.URL.Query().Get("request")})
}

func (c *Console) showLogin(w http.ResponseWriter, r *http.Request, status int, d loginPage) {
	d.Needed = c.access.Token != nil
	d.In = d.Needed && c.may(r) == nil
	c.show(w, r, status, "login.html", d)
}

// logIn opens a session if the form has the token, and redirects to the request to decide on.
func (c *Console) logIn(w http.ResponseWriter, r *http.Request) {
	if err := parseForm(w, r); err != nil {
		c.showLogin(w, r, http.StatusBadRequest, loginPage{Problem: sentence(err)})
		return
	}
	d := loginPage{Request: r.PostForm.Get("request")}
	if c.access.Token == nil {
		c.showLogin(w, r, http.StatusOK, d)
		return
	}
	cookie, err := c.access.login(r, r.PostForm.Get("token"), c.now())
	switch {
	case errors.Is(err, errTooManyGuesses):
		w.Header().Set("Retry-After", "10")
		d.Problem = sentence(err)
		c.showLogin(w, r, http.StatusTooManyRequests, d)
		return
	case errors.Is(err, errWrongToken):
		d.Problem = sentence(err)
		c.showLogin(w, r, http.StatusUnauthorized, d)
		return
	case err != nil:
		c.log.Error().Err(err).Msg("cannot check a token")
		d.Problem = "The token cannot be checked at the moment."
		c.showLogin(w, r, http.StatusInternalServerError, d)
		return
	}
	http.SetCookie(w, cookie)
	if d.Request == "" {
		seeOther(w, "")
		return
	}
	seeOther(w, "retrain/"+url.PathEscape(d.Request))
}

// logOut ends the session of this browser.
func (c *Console) logOut(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, c.access.cookie(r, "", -1))
	seeOther(w, "login")
}
