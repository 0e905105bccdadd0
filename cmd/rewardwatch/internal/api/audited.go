package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/audit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
)

// maxAudited limits the size, in bytes, of a single value of a body and of a reason in an entry.
const maxAudited = 4 << 10

// telemetryRoute is the route to which agents send telemetry. Only requests without the right to do so have an entry;
// the others are counted as events.
const telemetryRoute = "POST /api/v1/telemetry"

// audited writes an entry for each request that may change something, whichever handler answers it. route returns the
// pattern that matches a request, or "". While the log cannot be opened, requests change nothing. If the entry for a
// change cannot be written afterwards, for example on a full disk, the change remains, and the service's own log
// reports it.
func (s *Server) audited(next http.Handler, people session.Access, route func(*http.Request) string) http.Handler {
	if s.Audit == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pattern := route(r)
		if !strings.HasPrefix(pattern, http.MethodPost) {
			next.ServeHTTP(w, r)
			return
		}
		if err := s.Audit.Writable(); err != nil && pattern != telemetryRoute {
			s.log.Error().Err(err).Msg("rejected a change because it could not be recorded in the audit log")
			s.refuse(w, http.StatusServiceUnavailable, "the change was rejected because the audit log is not writable")
			return
		}
		e := audit.Entry{Time: s.Now().UTC(), From: r.RemoteAddr, What: pattern, Object: variables(pattern, r.URL)}
		e.As, e.Who = s.identity(r, people, pattern)
		e.Tenant, _ = s.tenantOf(r, people)
		asked, said := &beginning{limit: maxReport}, &witness{ResponseWriter: w, status: http.StatusOK, body: beginning{limit: maxAudited}}
		follow := pattern != telemetryRoute && e.As != nothing // no work for clients that may do nothing
		if follow {
			e.Before = s.stateOf(r, e.Object)
			r.Body = &watched{r.Body, asked}
		}
		next.ServeHTTP(said, r)
		e.Status, e.Result = said.status, "done"
		if said.status >= http.StatusBadRequest {
			e.Result, e.Error = "refused", reasonOf(said)
		}
		wrong := said.status == http.StatusUnauthorized || said.status == http.StatusForbidden || said.status == http.StatusTooManyRequests
		unknown := wrong || e.As == nothing || e.Result != "done" && ofAnyone(pattern)
		if pattern == telemetryRoute && !wrong {
			return
		}
		if follow {
			e.After = s.stateOf(r, e.Object)
			changedOf(&e)
			e.Asked = askedFor(pattern, asked.Bytes(), &e)
		}
		if wrong {
			e.As = nothing
		}
		if err := s.Audit.Append(e, unknown); err != nil {
			s.log.Error().Err(err).Str("what", e.What).Msg("failed to record a change in the audit log")
		}
	})
}

// ofAnyone reports whether a route is for people who have shown nothing yet. Their requests can be refused before it is
// known who they are.
func ofAnyone(pattern string) bool {
	return pattern == "POST "+loginPath || pattern == "POST "+decidePath
}

// variables returns the values of a route's variables in a URL.
func variables(pattern string, at *url.URL) map[string]string {
	_, route, _ := strings.Cut(pattern, " ")
	names, values := strings.Split(route, "/"), strings.Split(at.EscapedPath(), "/")
	out := map[string]string{}
	for i, name := range names {
		if !strings.HasPrefix(name, "{") || i >= len(values) {
			continue
		}
		value, err := url.PathUnescape(values[i])
		if err != nil {
			value = values[i]
		}
		out[strings.Trim(name, "{}")] = value
	}
	return out
}

// stateOf returns the state of the object of a request for its entry, or nil if it is unknown.
func (s *Server) stateOf(r *http.Request, object map[string]string) any {
	id, policy := object["id"], object["policy"]
	switch path := r.URL.Path; {
	case object["guard"] != "":
		if g, found := s.view.Guards(policy); found {
			for i := range g.Guards {
				if g.Guards[i].Name == object["guard"] {
					return map[string]any{"tripped": g.Guards[i].Tripped, "why": g.Guards[i].Why}
				}
			}
		}
	case strings.Contains(path, "/incidents/"):
		for _, i := range s.view.Incidents() {
			if i.ID == id {
				return map[string]any{"closed": i.Closed, "muted_until": i.MutedUntil, "decisions": len(i.Decisions)}
			}
		}
	case strings.HasPrefix(path, "/retrain/"), strings.Contains(path, "/retrain-requests/"):
		if q, err := s.view.RetrainRequest(r.Context(), id); err == nil {
			return map[string]any{"state": q.State, "reason": q.Reason}
		}
	case strings.Contains(path, "/baselines/"), policy != "":
		return s.baselineIDs()
	}
	return nil
}

// baselineIDs returns the id of the baseline of each group that has one.
func (s *Server) baselineIDs() map[string]string {
	out := map[string]string{}
	for _, p := range s.view.Summaries() {
		for i := range p.Groups {
			if g := &p.Groups[i]; g.Baseline.ID != "" {
				out[g.Group.String()] = g.Baseline.ID
			}
		}
	}
	return out
}

// changedOf removes from an entry the groups whose baselines have not changed.
func changedOf(e *audit.Entry) {
	before, some := e.Before.(map[string]string)
	after, also := e.After.(map[string]string)
	if !some || !also {
		return
	}
	for group, id := range before {
		if after[group] == id {
			delete(before, group)
			delete(after, group)
		}
	}
}

// nothing stands for the proof of a request without a valid token, password or session.
const nothing = "nothing"

// identity returns the proof that permits a request, and the name of the person if it is known.
func (s *Server) identity(r *http.Request, people session.Access, pattern string) (as, who string) {
	if user, _, basic := r.BasicAuth(); basic && s.web != nil && s.web.Rules().AskForPassword() {
		who = user
	}
	if forms := !strings.HasPrefix(r.URL.Path, "/api/") && !strings.HasPrefix(r.URL.Path, "/-/"); !forms { // these accept no token
		if holder, err := s.holder(r, anything); err == nil {
			return asOf(holder), cmp.Or(holder.Name, who)
		}
	}
	switch person, in := people.Holder(r, s.Now()); {
	case pattern == "POST /retrain/{id}/decide":
		return "link", who
	case in && person.Name != "":
		return "session", person.Name
	case in:
		return "session", who
	case people.Tokens == nil && FromHere(r):
		return "local", who
	case r.URL.Path == "/login":
		return "login", who
	}
	return nothing, who
}

// anything is any right.
const anything = ^access.Right(0)

// asOf returns the proof that permits the requests of a holder.
func asOf(h access.Holder) string {
	switch h.Role {
	case access.Jobs:
		return "status token"
	case access.Agents:
		return "telemetry token"
	}
	return "token"
}

// recorded lists the fields of forms and orders that an entry may contain. It omits logs of jobs, tokens and unknown
// fields.
var recorded = []string{
	"by", "name", "why", "decision", "until", "for", "policy", "group", "recipe", "target", "incident", "id", "state", "version",
}

// askedFor returns the recorded fields of a request's body. It sets the person's name from the body if the entry has
// none.
func askedFor(pattern string, body []byte, e *audit.Entry) any {
	all := map[string]any{}
	if strings.Contains(pattern, "/api/") {
		_ = json.Unmarshal(body, &all) // a body that is not JSON will be refused
	} else if form, err := url.ParseQuery(string(body)); err == nil {
		for name := range form {
			all[name] = form.Get(name)
		}
	}
	shown := map[string]any{}
	for _, name := range recorded {
		if value, has := all[name]; has {
			shown[name] = value
		}
		if text, is := all[name].(string); is && len(text) > maxAudited {
			shown[name] = strings.ToValidUTF8(text[:maxAudited], "")
		}
	}
	for _, name := range []string{"by", "name"} {
		if text, is := shown[name].(string); is {
			e.Who = cmp.Or(e.Who, text)
		}
	}
	return shown
}

// reasonOf returns the reason for a refusal, if the API has answered.
func reasonOf(w *witness) string {
	var said struct{ Error string }
	if json.Unmarshal(w.body.Bytes(), &said) == nil && said.Error != "" {
		return said.Error
	}
	return http.StatusText(w.status)
}

// beginning keeps the beginning of the text that is written to it.
type beginning struct {
	bytes.Buffer
	limit int
}

// Write implements io.Writer.
func (b *beginning) Write(p []byte) (int, error) {
	_, _ = b.Buffer.Write(p[:min(len(p), b.limit-b.Len())]) // never fails
	return len(p), nil
}

// watched is a body whose beginning is kept.
type watched struct {
	io.ReadCloser
	begins *beginning
}

// Read implements io.Reader.
func (b *watched) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	_, _ = b.begins.Write(p[:n]) // never fails
	return n, err
}

// witness records the status of an answer and, if the request is refused, its body.
type witness struct {
	http.ResponseWriter
	status int
	body   beginning // if the request is refused
}

// Unwrap is for http.ResponseController.
func (w *witness) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *witness) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *witness) Write(body []byte) (int, error) {
	if w.status >= http.StatusBadRequest {
		_, _ = w.body.Write(body) // never fails
	}
	return w.ResponseWriter.Write(body)
}
