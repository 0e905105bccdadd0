package console

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
)

// loginPage is the content of the login page.
type loginPage struct {
	Needed   bool   // whether people must log in to decide
	Token    bool   // whether people can log in with a token
	Provider string // name of the provider at which people can log in, "" if there is none
	Link     string // link to the provider
	In       bool   // whether the person is logged in
	Name     string // name of the person who is logged in, or as entered
	Next     string // page to return to, "" for the fleet
	Problem  string
	Sessions []sessionLine // sessions that the person may end
}

// sessionLine is an open session.
type sessionLine struct {
	ID, Name, Role, By, From, Opened, Used string
	Own                                    bool
}

// login shows the page that asks for the token.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	c.showLogin(w, r, http.StatusOK, loginPage{Next: PageOf(r.URL.Query().Get("next"))})
}

func (c *Console) showLogin(w http.ResponseWriter, r *http.Request, status int, d loginPage) {
	d.Needed, d.Token, d.Provider = c.access.Tokens != nil, !c.access.OnlyProvider, c.access.Provider
	if d.Provider != "" {
		d.Link = strings.TrimSuffix(c.access.ExternalURL, "/") + "/login/oidc?next=" + url.QueryEscape(d.Next)
	}
	if who, err := c.may(r, access.Read); d.Needed && err == nil {
		d.In, d.Name = true, who.Name
		d.Sessions = c.sessions(r, who)
	}
	c.show(w, r, status, "login.html", d)
}

// sessions returns the open sessions that a person may end.
func (c *Console) sessions(r *http.Request, who session.Person) []sessionLine {
	if c.access.Store == nil {
		return nil
	}
	var out []sessionLine
	for _, s := range c.access.Store.List(session.Sees(who), c.access.Cookies(r)...) {
		from, _, err := net.SplitHostPort(s.From)
		if err != nil {
			from = s.From
		}
		out = append(out, sessionLine{
			ID: s.ID, Name: s.Name, Role: s.Role, By: s.By, From: from, Opened: words.Stamp(s.Opened), Used: words.Stamp(s.Used), Own: s.Own,
		})
	}
	return out
}

// endSession ends a session of the person, or of anyone for an admin.
func (c *Console) endSession(w http.ResponseWriter, r *http.Request) {
	who, err := c.may(r, access.Read)
	if err == nil && c.access.Store != nil {
		_, err = c.access.Store.End(r.PathValue("id"), session.Sees(who))
	}
	if err != nil {
		status, text := c.refusal(err)
		c.showLogin(w, r, status, loginPage{Problem: text})
		return
	}
	seeOther(w, "../../login")
}

// LoginProblem shows the login page with a problem.
func (c *Console) LoginProblem(w http.ResponseWriter, r *http.Request, status int, why string) {
	secured(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.showLogin(w, r, status, loginPage{Problem: sentence(errors.New(why))})
	})).ServeHTTP(w, r)
}

// logIn opens a session if the form contains a valid token, and redirects back to the page that the person came from.
func (c *Console) logIn(w http.ResponseWriter, r *http.Request) {
	if err := parseForm(w, r); err != nil {
		c.showLogin(w, r, http.StatusBadRequest, loginPage{Problem: sentence(err)})
		return
	}
	d := loginPage{Next: PageOf(r.PostForm.Get("next")), Name: strings.TrimSpace(r.PostForm.Get("name"))}
	if c.access.Tokens == nil {
		c.showLogin(w, r, http.StatusOK, d)
		return
	}
	if d.Name != "" {
		if err := words.CheckText("your name", d.Name, words.MaxBy); err != nil {
			d.Problem = sentence(err)
			c.showLogin(w, r, http.StatusBadRequest, d)
			return
		}
	}
	cookie, err := c.access.Login(r, r.PostForm.Get("token"), session.Person{Name: d.Name}, c.now())
	switch {
	case errors.Is(err, session.ErrTooManyGuesses):
		w.Header().Set("Retry-After", "10")
		d.Problem = sentence(err)
		c.showLogin(w, r, http.StatusTooManyRequests, d)
		return
	case errors.Is(err, session.ErrWrongToken):
		d.Problem = sentence(err)
		c.showLogin(w, r, http.StatusUnauthorized, d)
		return
	case err != nil:
		c.log.Error().Err(err).Msg("failed to check a token")
		d.Problem = "The token cannot be checked right now."
		c.showLogin(w, r, http.StatusInternalServerError, d)
		return
	}
	http.SetCookie(w, cookie)
	seeOther(w, d.Next)
}

// PageOf returns the path of a page of the console, relative to the root, with its query. For anything else it returns
// "", because a link to the login page must not lead to another site.
func PageOf(path string) string {
	at, err := url.Parse(path)
	if err != nil || at.Scheme != "" || at.Host != "" || at.Opaque != "" || at.Fragment != "" || strings.ContainsAny(path, "\\") {
		return ""
	}
	segments := strings.Split(at.EscapedPath(), "/")
	known := slices.Contains([]string{"policies", "incidents", "retrain"}, segments[0]) || at.Path == ""
	dots := func(segment string) bool { // browsers resolve these, even if they are escaped
		plain, err := url.PathUnescape(segment)
		return err != nil || strings.Trim(plain, ".") == ""
	}
	if !known || slices.ContainsFunc(segments[1:], dots) {
		return ""
	}
	return path
}

// here returns the path of the requested page, relative to the root, with its query.
func here(r *http.Request) string {
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/")
	query := r.URL.Query()
	if query.Del("saved"); len(query) > 0 {
		path += "?" + query.Encode()
	}
	return PageOf(path)
}

// logOut ends the session of this browser.
func (c *Console) logOut(w http.ResponseWriter, r *http.Request) {
	c.access.End(r, c.now())
	http.SetCookie(w, c.access.Cookie(r, "", -1))
	seeOther(w, "login")
}
