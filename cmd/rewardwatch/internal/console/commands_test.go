package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// A command that is copied from a page is sent to the service that showed the page, regardless of its address.
func TestCommandsNameTheServer(t *testing.T) {
	const text = "accept it (rewardwatch incident accept 9f3c51aa00d7e214) to go on; rewardwatch explain 0fa1"
	for name, test := range map[string]struct{ external, host, proto, want string }{
		"the usual one": {"", "127.0.0.1:9464", "", text},
		"another port": {"", "127.0.0.1:9999", "", "accept it (rewardwatch incident accept 9f3c51aa00d7e214 --server http://127.0.0.1:9999) to go on; " +
			"rewardwatch explain 0fa1 --server http://127.0.0.1:9999"},
		"https":      {"", "drift.example", "https", "rewardwatch explain 0fa1 --server https://drift.example"},
		"configured": {"https://drift.example/rewardwatch/", "10.0.0.7:9464", "", "rewardwatch explain 0fa1 --server https://drift.example/rewardwatch"},
		"brackets":   {"", "[::1]:9464", "", "rewardwatch explain 0fa1 --server 'http://[::1]:9464'"},
		"a hostile":  {"", "x;rm -rf /", "", text},
	} {
		a := someAccess()
		a.ExternalURL = test.external
		c := New(&madeUp{}, &madeUpOrders{}, nil, a, nil, zerolog.Nop())
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = test.host
		r.Header.Set("X-Forwarded-Proto", test.proto)
		if got := c.commands(r, text); !strings.HasSuffix(got, test.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, prose := range []string{"request one manually (rewardwatch retrain request)", "rewardwatch retrains nothing", "rewardwatch explains it"} {
		if got := (&Console{}).commands(httptest.NewRequest(http.MethodGet, "/", nil), prose); strings.Contains(got, "--server http://example.coms") || strings.Contains(got, "explain --") {
			t.Errorf("%s: %s", prose, got)
		}
	}
}

func TestIncidentNamesTheServerInCommands(t *testing.T) {
	r := newRig(t)
	wants(t, "the incident", r.send(http.MethodGet, somePage, nil), 200, "<code>rewardwatch explain 5f0c2e9a11d04b7c --server http://example.com</code>")
}

// A page with a form that was refused keeps the input: it does not reload by itself.
func TestPagesAreReadAgainWithoutARefusedForm(t *testing.T) {
	r := newRig(t)
	r.logIn()
	for _, path := range []string{somePage, "/retrain/rr_waits"} {
		const refresh = `hx-get="?" hx-trigger="every 5s"`
		wants(t, path, r.send(http.MethodGet, path, nil), 200, refresh)
		form := decision("approve", 1)
		form.Del("why")
		refused := r.send(http.MethodPost, path, form)
		if refused.Code != http.StatusBadRequest || strings.Contains(refused.Body.String(), refresh) {
			t.Errorf("a refused form of %s gives %d and is read again:\n%s", path, refused.Code, refused.Body)
		}
	}
}

// The reason for a retraining is at the top of its page: what has drifted since when and by how much, with the
// incident.
func TestRequestBeginsWithItsDrift(t *testing.T) {
	r := newRig(t)
	body := r.send(http.MethodGet, "/retrain/rr_waits", nil).Body.String()
	top, _, _ := strings.Cut(body, `id="config"`)
	for _, want := range []string{
		"<dt>Drift</dt><dd>return has drifted from the baseline since <time", "The mean return is now 401.7, down from 482.1 in the baseline (-1.29 SD",
		`<a href="./../incidents/5f0c2e9a11d04b7c">Show the incident</a>`, "<dt>Signals at request time</dt><dd>return, outcome.conversion</dd>", "<dt>Cause</dt><dd>environment</dd>",
	} {
		if !strings.Contains(top, want) {
			t.Errorf("the top lacks %q:\n%s", want, top)
		}
	}
	link := r.send(http.MethodGet, "/retrain/rr_waits/decide?token=x", nil)
	wants(t, "the page of a link", link, 200, "<tr><th>Drift</th><td>return has drifted from the baseline since <time")
	r.view.incidents = nil
	top, _, _ = strings.Cut(r.send(http.MethodGet, "/retrain/rr_waits", nil).Body.String(), `id="config"`)
	if want := "<dt>Incident</dt><dd><code>5f0c2e9a11d04b7c</code> (no longer stored)"; !strings.Contains(top, want) {
		t.Errorf("without the incident, the top lacks %q:\n%s", want, top)
	}
}
