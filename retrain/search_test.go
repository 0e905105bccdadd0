package retrain

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
)

// searched gives the policies of the requests that a filter chooses.
func (r *rig) searched(f Filter) (policies []string, more bool) {
	r.t.Helper()
	if f.Limit == 0 {
		f.Limit = 100
	}
	found, more, err := r.Search(r.t.Context(), f)
	check(r.t, err)
	for _, q := range found {
		policies = append(policies, q.Policy)
	}
	return policies, more
}

func testSearch(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.consider(incident("i1", "ranker"))
		r.pass(time.Minute)
		inc := incident("i2", "bidder")
		inc.Cause, inc.Evidence = alerts.CauseEnvironment, []string{"env_version changed from 41 to 42 at the onset", "Ümlauts käme auch"}
		id := r.consider(inc).Request
		r.pass(time.Minute)
		_, err := r.Reject(t.Context(), id, "bob", "the sale ends on Monday (see CHG-4711)")
		check(t, err)
		_, err = r.Ask(t.Context(), Ask{Policy: "pricer", Recipe: "ranker", Target: "trainer", By: "alice", Why: "new catalogue"})
		check(t, err)
		start := r.receiver.start
		for name, test := range map[string]struct {
			filter Filter
			want   string
		}{
			"all":                       {Filter{}, "pricer bidder ranker"},
			"objective":                 {Filter{Text: "the bidder earns"}, "bidder"},
			"in any order and case":     {Filter{Text: "EARNS Bidder"}, "bidder"},
			"all words":                 {Filter{Text: "bidder nonsense"}, ""},
			"hypothesis":                {Filter{Text: "customers changed"}, "pricer bidder ranker"},
			"expected":                  {Filter{Text: "mean return > 180"}, "pricer bidder ranker"},
			"a part of the owner":       {Filter{Text: "shop.example"}, "pricer bidder ranker"},
			"the whole owner":           {Filter{Text: "ranking@shop.example"}, "pricer bidder ranker"},
			"evidence":                  {Filter{Text: "env_version 42"}, "bidder"},
			"evidence, its end":         {Filter{Text: "Ümlauts käme"}, "bidder"},
			"not without its accents":   {Filter{Text: "kame"}, ""},
			"why":                       {Filter{Text: "monday"}, "bidder"},
			"a name with a hyphen":      {Filter{Text: "chg-4711"}, "bidder"},
			"who":                       {Filter{Text: "alice"}, "pricer"},
			"who and what":              {Filter{Text: "bob earns"}, "bidder"},
			"words that are operators":  {Filter{Text: `"the" AND NOT (x OR *`}, ""},
			"no word of another config": {Filter{Text: "adam"}, ""},
			"policy":                    {Filter{Policy: "ranker"}, "ranker"},
			"cause":                     {Filter{Cause: "environment"}, "bidder"},
			"state":                     {Filter{State: StateRejected}, "bidder"},
			"recipe":                    {Filter{Recipe: "ranker"}, "pricer bidder ranker"},
			"another recipe":            {Filter{Recipe: "base"}, ""},
			"number":                    {Filter{Parameter: "optimizer.lr=3e-4"}, "pricer bidder ranker"},
			"another number":            {Filter{Parameter: "optimizer.lr=0.001"}, ""},
			"string":                    {Filter{Parameter: "optimizer.name = adam"}, "pricer bidder ranker"},
			"item":                      {Filter{Parameter: "seeds[0]=7"}, "pricer bidder ranker"},
			"what is null":              {Filter{Parameter: "ranges=null"}, "pricer"},
			"since":                     {Filter{Since: start.Add(time.Minute)}, "pricer bidder"},
			"until":                     {Filter{Until: start.Add(time.Minute)}, "ranker"},
			"several":                   {Filter{Text: "customers", Cause: "policy", State: StateOpen, Parameter: "seeds[0]=7"}, "ranker"},
			"with NUL":                  {Filter{Policy: "a\x00b", Cause: "\x00", Text: "a\x00b"}, ""},
		} {
			got, more := r.searched(test.filter)
			if strings.Join(got, " ") != test.want || more {
				t.Errorf("%s: %v, more %v, want %s", name, got, more, test.want)
			}
		}
		for name, f := range map[string]Filter{
			"no word": {Text: " - "}, "no path": {Parameter: "=1"}, "no value": {Parameter: "optimizer.lr"}, "no state": {State: "waiting"},
		} {
			if _, _, err := r.Search(t.Context(), f); !errors.Is(err, ErrBadFilter) {
				t.Errorf("%s: %v, want a bad filter", name, err)
			}
		}
	})
}

// Pages have each request once, also those that were opened in the same millisecond.
func testSearchByPages(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		var all []string
		for i := range 7 {
			policy := fmt.Sprint("p", i)
			if i > 3 {
				r.pass(time.Minute)
			}
			r.consider(incident("i"+policy, policy))
			all = append(all, policy)
		}
		slices.Sort(all)
		for _, parameter := range []string{"", "seeds[0]=7"} {
			var got []string
			f := Filter{Limit: 3, Parameter: parameter}
			for pages := 1; ; pages++ {
				found, more, err := r.Search(t.Context(), f)
				check(t, err)
				for _, q := range found {
					got = append(got, q.Policy)
				}
				if !more {
					if pages != 3 {
						t.Errorf("%d pages, want 3", pages)
					}
					break
				}
				f.After = found[len(found)-1].ID
			}
			if slices.Sort(got); !slices.Equal(got, all) {
				t.Errorf("got %v", got)
			}
		}
		if found, _ := r.searched(Filter{After: "rr_none"}); len(found) != 0 {
			t.Errorf("after a request that there is not: %v", found)
		}
	})
}

// What an earlier build has written is found as well.
func testSearchOfAnEarlierLedger(t *testing.T, on storage) {
	cfg := on(t)
	open := openSQLite
	if cfg.OnPostgreSQL() {
		open = openPostgreSQL
	}
	db, d, err := open(cfg)
	check(t, err)
	l := &ledger{db: db, dialect: d, waiting: func(error, time.Duration) {}}
	dir := path.Join("migrations", l.name)
	files, err := migrations.ReadDir(dir)
	check(t, err)
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	check(t, l.update(t.Context(), func(tx *sql.Tx) error {
		if _, err := schemaVersion(t.Context(), tx); err != nil {
			return err
		}
		for _, f := range files {
			if strings.HasSuffix(f.Name(), "_search.sql") {
				break
			}
			if err := apply(t.Context(), tx, dir, f.Name()); err != nil {
				return err
			}
		}
		for id, body := range map[string]string{
			"rr_1": `{"data":{"cause":"policy","contract":{"objective":"sells \u0000 as much \\u0000"},"evidence":["one","two"]}}`,
			"rr_2": `{"data":{"incident":"i2"}}`,
		} {
			e := entry{id: id, state: StateOpen, origin: id, policy: id, body: []byte(body), opened: now, due: now.Add(time.Hour), by: "alice", why: "for a reason"}
			if err := insert(t.Context(), tx, e); err != nil {
				return err
			}
		}
		return settle(t.Context(), tx, now, StateRejected, "unwanted", `id = $4`, "rr_1")
	}))
	check(t, l.close())
	l, err = openQuietly(t, cfg)
	check(t, err)
	desk := &Desk{ledger: l}
	for text, want := range map[string]string{
		"sells as much": "rr_1", "two unwanted alice": "rr_1", "reason": "rr_1 rr_2", "three": "",
	} {
		var got []string
		found, _, err := desk.Search(t.Context(), Filter{Text: text, Limit: 10})
		check(t, err)
		for _, q := range found {
			got = append(got, q.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
	}
	check(t, settleOne(t.Context(), l, "rr_2"))
	found, _, err := desk.Search(t.Context(), Filter{Text: "later alice", Limit: 10})
	check(t, err)
	if len(found) != 1 || found[0].ID != "rr_2" {
		t.Errorf("what came later: %+v", found)
	}
	check(t, l.close())
}

func settleOne(ctx context.Context, l *ledger, id string) error {
	return l.update(ctx, func(tx *sql.Tx) error {
		return settle(ctx, tx, time.Now(), StateRejected, "said later", `id = $4`, id)
	})
}

func testRecords(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.run()
		const n = recordPage + 3
		for i := range n {
			r.consider(incident(fmt.Sprint("i", i), fmt.Sprint("p", i)))
		}
		r.pass(time.Minute)
		seen := map[string]Record{}
		check(t, r.Records(t.Context(), Filter{Text: "customers"}, func(record Record) error {
			seen[record.Request.Policy] = record
			return nil
		}))
		if len(seen) != n {
			t.Errorf("%d records, want %d", len(seen), n)
		}
		if got := seen["p1"]; got.Request.State != StateDelivered || len(got.History) != 2 || len(got.Deliveries) != 1 || len(got.Decisions) != 1 {
			t.Errorf("record %+v", got)
		}
		stop := errors.New("enough")
		if err := r.Records(t.Context(), Filter{}, func(Record) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("got %v, want the error of each", err)
		}
	})
}
