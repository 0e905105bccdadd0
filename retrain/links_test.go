package retrain

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// token returns the token of a request's link.
func (r *rig) token(q ledger.Request) string {
	r.t.Helper()
	r.ServeUnder("https://rewardwatch.example/drift/")
	link, err := r.Link(r.t.Context(), q)
	check(r.t, err)
	token, ok := strings.CutPrefix(link, "https://rewardwatch.example/drift/retrain/"+q.ID+"/decide?token=")
	if !ok {
		r.t.Fatalf("the link is %q", link)
	}
	return token
}

func testLinkDecidesOnce(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		q := r.waiting("ranker")
		token := r.token(q)
		for range 2 { // viewing it decides nothing
			if seen, err := r.LinkedRequest(t.Context(), q.ID, token); err != nil || seen.State != ledger.StateAwaitingApproval {
				t.Fatalf("%+v, %v, want one that waits", seen, err)
			}
		}
		var wg sync.WaitGroup
		results := make(chan error, 8)
		for i := range cap(results) {
			decide := r.ApproveByLink
			if i%2 == 1 {
				decide = r.RejectByLink
			}
			wg.Go(func() {
				_, err := decide(t.Context(), q.ID, token, fmt.Sprint("person ", i), "because")
				results <- err
			})
		}
		wg.Wait()
		close(results)
		decided := 0
		for err := range results {
			var void *ledger.StateError
			if err == nil {
				decided++
			} else if !errors.As(err, &void) || !void.State.Final() && void.State != ledger.StateOpen {
				t.Errorf("a second use: %v, want a StateError", err)
			}
		}
		if states := r.states(q.ID); decided != 1 || len(states) != 2 {
			t.Errorf("%d uses decided, states %v; want one", decided, states)
		}
		// A person who approved a request by its link cannot take that back by the link, even before the delivery.
		other := r.waiting("other")
		token = r.token(other)
		opened, err := r.ApproveByLink(t.Context(), other.ID, token, "ann", "go on")
		check(t, err)
		if history, err := r.History(t.Context(), other.ID); err != nil || opened.State != ledger.StateOpen || history[1].By != "ann (by signed link)" || history[1].Reason != "go on" {
			t.Errorf("request %+v with history %+v, %v", opened, history, err)
		}
		var void *ledger.StateError
		if _, err := r.RejectByLink(t.Context(), other.ID, token, "mallory", "no"); !errors.As(err, &void) || void.State != ledger.StateOpen {
			t.Errorf("rejected by the same link: %v", err)
		}
		if link, err := r.Link(t.Context(), opened); link != "" || err != nil {
			t.Errorf("what waits for nobody has the link %q, %v", link, err)
		}
	})
}

func testLinkThatIsNotGenuine(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		q, other := r.waiting("ranker"), r.waiting("other")
		bad := func(name, id, token string) {
			t.Helper()
			if _, err := r.LinkedRequest(t.Context(), id, token); !errors.Is(err, ErrBadLink) {
				t.Errorf("%s: shown, %v", name, err)
			}
			if _, err := r.ApproveByLink(t.Context(), id, token, "mallory", "x"); !errors.Is(err, ErrBadLink) {
				t.Errorf("%s: approved, %v", name, err)
			}
			if _, err := r.RejectByLink(t.Context(), id, token, "mallory", "x"); !errors.Is(err, ErrBadLink) {
				t.Errorf("%s: rejected, %v", name, err)
			}
		}
		bad("before there is a key", q.ID, linkToken(nil, q.ID, q.DueAt))
		var keys int
		check(t, r.ledger.Update(t.Context(), func(tx *ledger.Tx) error {
			return tx.QueryRowContext(t.Context(), `SELECT count(*) FROM link_key`).Scan(&keys)
		}))
		if keys != 0 {
			t.Error("a link that is not genuine has made a key")
		}
		token := r.token(q)
		key, err := r.ledger.LinkKey(t.Context())
		check(t, err)
		if len(key) != 32 || bytes.Equal(key, make([]byte, 32)) {
			t.Fatalf("the key is %x", key)
		}
		end, signature, _ := strings.Cut(token, ".")
		later := linkToken(key, q.ID, q.DueAt.Add(time.Hour))
		laterEnd, _, _ := strings.Cut(later, ".")
		for name, token := range map[string]string{
			"none":              "",
			"no signature":      end + ".",
			"no time":           "." + signature,
			"a later time":      laterEnd + "." + signature,
			"another signature": end + "." + strings.Repeat("A", len(signature)),
			"one bit":           token[:len(token)-2] + string(token[len(token)-2]^1) + token[len(token)-1:],
			"shortened":         token[:len(token)-1],
			"lengthened":        token + "A",
			"another spelling":  strings.ToUpper(end) + "." + signature,
			"another key":       linkToken(make([]byte, 32), q.ID, q.DueAt),
			"of another":        r.token(other),
			"not a text":        "\x00\xff",
		} {
			bad(name, q.ID, token)
		}
		bad("another request", other.ID, token)
		bad("unknown request", "rr_none", token)
		if now, err := r.Request(t.Context(), q.ID); err != nil || now.State != ledger.StateAwaitingApproval || len(r.states(q.ID)) != 1 {
			t.Errorf("request %+v, %v, want it to wait", now, err)
		}
	})
}

func testLinkEndsInTime(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		q := r.waiting("ranker")
		token := r.token(q)
		r.pass(time.Until(q.DueAt) - time.Millisecond)
		if _, err := r.LinkedRequest(t.Context(), q.ID, token); err != nil {
			t.Errorf("before its time: %v", err)
		}
		r.pass(time.Millisecond)
		if _, err := r.LinkedRequest(t.Context(), q.ID, token); !errors.Is(err, ErrLinkExpired) {
			t.Errorf("shown at its time: %v, want ErrLinkExpired", err)
		}
		if _, err := r.ApproveByLink(t.Context(), q.ID, token, "ann", "go on"); !errors.Is(err, ErrLinkExpired) {
			t.Errorf("at its time: %v, want ErrLinkExpired", err)
		}
	})
}

// The key is that of the ledger, so a link of another instance, or of an earlier process, is valid everywhere.
func testLinkOfAllInstances(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		q := r.waiting("ranker")
		token := r.token(q)
		r.reopen()
		if again := r.token(q); again != token {
			t.Error("a restart has made another link")
		}
		if _, err := r.ApproveByLink(t.Context(), q.ID, token, "ann", "go on"); err != nil {
			t.Error(err)
		}
	})
}

// A target receives a token that permits reports on the request that it comes with.
func testReportTokenOfADelivery(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		var tokens []string
		note := func(code int) http.HandlerFunc {
			return func(w http.ResponseWriter, req *http.Request) {
				tokens = append(tokens, req.Header.Get(target.ReportTokenHeader))
				w.WriteHeader(code)
			}
		}
		r := newRig(t, on, note(500), note(202), note(202))
		r.cfg.Targets[0].Webhook = "http://localhost/retrain"
		r.reopen()
		if is, err := r.IsReportToken(t.Context(), "rr_1", reportToken(nil, "rr_1")); is || err != nil {
			t.Errorf("before there is a key: %v, %v", is, err)
		}
		r.run()
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(jittered(5*time.Second) + lateness)
		id := r.request().ID
		if len(tokens) != 2 || tokens[0] == "" || tokens[0] != tokens[1] {
			t.Fatalf("the attempts have the tokens %q", tokens)
		}
		if q := r.request(); strings.Contains(string(q.Order), tokens[0]) {
			t.Errorf("the body that others can read has the token: %s", q.Order)
		}
		r.cfg.Targets[0].Webhook = "http://trainer.test/retrain"
		r.reopen()
		r.run()
		r.consider(retraintest.Incident("i2", "other"))
		if r.pass(lateness); len(tokens) != 3 || tokens[2] != "" {
			t.Errorf("a token was sent in clear text: %q", tokens)
		}
		key, err := r.ledger.LinkKey(t.Context())
		check(t, err)
		for _, tt := range []struct {
			id, token string
			want      bool
		}{
			{id, tokens[0], true},
			{"rr_other", tokens[0], false},
			{id, tokens[0] + "A", false},
			{id, "", false},
			{id, reportToken(make([]byte, 32), id), false},
			{id, linkToken(key, id, time.Now().Add(time.Hour)), false},
		} {
			if is, err := r.IsReportToken(t.Context(), tt.id, tt.token); is != tt.want || err != nil {
				t.Errorf("%s with %q: %v, %v", tt.id, tt.token, is, err)
			}
		}
	})
}

func testWaitingRequestIsAnnounced(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		var log bytes.Buffer
		r.log = zerolog.New(&log)
		open := r.consider(retraintest.Incident("i1", "first")).Request
		log.Reset()
		r.announce(t.Context(), open)
		if log.Len() > 0 {
			t.Errorf("one that waits for nobody: %s", log.String())
		}
		q := r.waiting("ranker")
		log.Reset()
		r.announce(t.Context(), q.ID)
		if !strings.Contains(log.String(), q.ID) || strings.Contains(log.String(), "link") {
			t.Errorf("without a URL: %s", log.String())
		}
		log.Reset()
		token := r.token(q)
		r.announce(t.Context(), q.ID)
		if !strings.Contains(log.String(), "https://rewardwatch.example/drift/retrain/"+q.ID+"/decide?token="+token) {
			t.Errorf("with one: %s", log.String())
		}
	})
}

func testUnfinishedRequests(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		waits := r.waiting("waits")
		r.pass(time.Minute)
		open := r.consider(retraintest.Incident("i1", "open")).Request
		r.pass(time.Minute)
		rejected := r.waiting("rejected").ID
		_, err := r.Reject(t.Context(), rejected, "ann", "no")
		check(t, err)
		for limit, want := range map[int]string{10: waits.ID + " " + open, 1: waits.ID} {
			found, err := r.Unfinished(t.Context(), limit)
			check(t, err)
			var ids []string
			for _, q := range found {
				ids = append(ids, q.ID)
			}
			if got := strings.Join(ids, " "); got != want {
				t.Errorf("unfinished are %s, want %s", got, want)
			}
		}
	})
}

func testDeltaOfARequest(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		q := r.waiting("ranker")
		parent, differences, err := r.Delta(q)
		check(t, err)
		var paths []string
		for _, d := range differences {
			paths = append(paths, d.Path)
		}
		const want = "config.debug config.optimizer.lr config.ranges[0].first config.ranges[0].last config.ranges[0].partition config.run " +
			"config.seeds[0] config.seeds[1] contract.expected contract.hypothesis contract.objective"
		if got := strings.Join(paths, " "); parent != "base" || got != want {
			t.Errorf("its recipe's parent is %q, and what differs is %s, want %s", parent, got, want)
		}
		q.Recipe = "gone"
		leaves, err := recipe.LeavesOfOrder(q.Order)
		check(t, err)
		parent, differences, err = r.Delta(q)
		check(t, err)
		if parent != "" || len(differences) != len(leaves) {
			t.Errorf("of a recipe that is gone: %q and %d differences, want all %d values", parent, len(differences), len(leaves))
		}
	})
}
