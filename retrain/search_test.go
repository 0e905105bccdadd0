package retrain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

// searched returns the policies of the requests that a filter selects.
func (r *rig) searched(f ledger.Filter) (policies []string, more bool) {
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

// without owns all policies except one.
type without string

func (w without) Owns(policy string) bool { return policy != string(w) }

func testSearch(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.consider(retraintest.Incident("i1", "ranker"))
		r.pass(time.Minute)
		inc := retraintest.Incident("i2", "bidder")
		inc.Cause, inc.Evidence = alerts.CauseEnvironment, []string{"env_version changed from 41 to 42 at the onset", "Ümlauts käme auch"}
		id := r.consider(inc).Request
		r.pass(time.Minute)
		_, err := r.Reject(t.Context(), id, "bob", "the sale ends on Monday (see CHG-4711)")
		check(t, err)
		_, err = r.Ask(t.Context(), Ask{Policy: "pricer", Recipe: "ranker", Target: "trainer", By: "alice", Why: "new catalogue"})
		check(t, err)
		start := r.receiver.start
		for name, test := range map[string]struct {
			filter ledger.Filter
			want   string
		}{
			"all":                       {ledger.Filter{}, "pricer bidder ranker"},
			"objective":                 {ledger.Filter{Text: "the bidder earns"}, "bidder"},
			"in any order and case":     {ledger.Filter{Text: "EARNS Bidder"}, "bidder"},
			"all words":                 {ledger.Filter{Text: "bidder nonsense"}, ""},
			"hypothesis":                {ledger.Filter{Text: "customers changed"}, "pricer bidder ranker"},
			"expected":                  {ledger.Filter{Text: "mean return > 180"}, "pricer bidder ranker"},
			"a part of the owner":       {ledger.Filter{Text: "shop.example"}, "pricer bidder ranker"},
			"the whole owner":           {ledger.Filter{Text: "ranking@shop.example"}, "pricer bidder ranker"},
			"evidence":                  {ledger.Filter{Text: "env_version 42"}, "bidder"},
			"evidence, its end":         {ledger.Filter{Text: "Ümlauts käme"}, "bidder"},
			"not without its accents":   {ledger.Filter{Text: "kame"}, ""},
			"why":                       {ledger.Filter{Text: "monday"}, "bidder"},
			"a name with a hyphen":      {ledger.Filter{Text: "chg-4711"}, "bidder"},
			"who":                       {ledger.Filter{Text: "alice"}, "pricer"},
			"who and what":              {ledger.Filter{Text: "bob earns"}, "bidder"},
			"words that are operators":  {ledger.Filter{Text: `"the" AND NOT (x OR *`}, ""},
			"no word of another config": {ledger.Filter{Text: "adam"}, ""},
			"of an owner":               {ledger.Filter{Owner: without("bidder")}, "pricer ranker"},
			"of an owner, and more":     {ledger.Filter{Owner: without("bidder"), Text: "bob earns"}, ""},
			"policy":                    {ledger.Filter{Policy: "ranker"}, "ranker"},
			"cause":                     {ledger.Filter{Cause: "environment"}, "bidder"},
			"state":                     {ledger.Filter{State: ledger.StateRejected}, "bidder"},
			"recipe":                    {ledger.Filter{Recipe: "ranker"}, "pricer bidder ranker"},
			"another recipe":            {ledger.Filter{Recipe: "base"}, ""},
			"number":                    {ledger.Filter{Parameter: "optimizer.lr=3e-4"}, "pricer bidder ranker"},
			"another number":            {ledger.Filter{Parameter: "optimizer.lr=0.001"}, ""},
			"string":                    {ledger.Filter{Parameter: "optimizer.name = adam"}, "pricer bidder ranker"},
			"item":                      {ledger.Filter{Parameter: "seeds[0]=7"}, "pricer bidder ranker"},
			"what is null":              {ledger.Filter{Parameter: "ranges=null"}, "pricer"},
			"since":                     {ledger.Filter{Since: start.Add(time.Minute)}, "pricer bidder"},
			"until":                     {ledger.Filter{Until: start.Add(time.Minute)}, "ranker"},
			"several":                   {ledger.Filter{Text: "customers", Cause: "policy", State: ledger.StateOpen, Parameter: "seeds[0]=7"}, "ranker"},
			"with NUL":                  {ledger.Filter{Policy: "a\x00b", Cause: "\x00", Text: "a\x00b"}, ""},
		} {
			got, more := r.searched(test.filter)
			if strings.Join(got, " ") != test.want || more {
				t.Errorf("%s: %v, more %v, want %s", name, got, more, test.want)
			}
		}
		for name, f := range map[string]ledger.Filter{
			"no word": {Text: " - "}, "no path": {Parameter: "=1"}, "no value": {Parameter: "optimizer.lr"}, "no state": {State: "waiting"},
		} {
			if _, _, err := r.Search(t.Context(), f); !errors.Is(err, ledger.ErrBadFilter) {
				t.Errorf("%s: %v, want a bad filter", name, err)
			}
		}
	})
}

// Pages contain each request once, also requests that were opened in the same millisecond.
func testSearchByPages(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		var all []string
		for i := range 7 {
			policy := fmt.Sprint("p", i)
			if i > 3 {
				r.pass(time.Minute)
			}
			r.consider(retraintest.Incident("i"+policy, policy))
			all = append(all, policy)
		}
		slices.Sort(all)
		for _, f := range []ledger.Filter{{}, {Parameter: "seeds[0]=7"}, {Owner: without("nothing")}} {
			var got []string
			f.Limit = 3
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
		if found, _ := r.searched(ledger.Filter{After: "rr_none"}); len(found) != 0 {
			t.Errorf("after a request that there is not: %v", found)
		}
	})
}

func testRecords(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.run()
		const n = 103
		for i := range n {
			r.consider(retraintest.Incident(fmt.Sprint("i", i), fmt.Sprint("p", i)))
		}
		r.pass(time.Minute)
		seen := map[string]ledger.Record{}
		check(t, r.Records(t.Context(), ledger.Filter{Text: "customers"}, func(record ledger.Record) error {
			seen[record.Request.Policy] = record
			return nil
		}))
		if len(seen) != n {
			t.Errorf("%d records, want %d", len(seen), n)
		}
		if got := seen["p1"]; got.Request.State != ledger.StateDelivered || len(got.History) != 2 || len(got.Deliveries) != 1 || len(got.Decisions) != 1 {
			t.Errorf("record %+v", got)
		}
		stop := errors.New("enough")
		if err := r.Records(t.Context(), ledger.Filter{}, func(ledger.Record) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("got %v, want the error of each", err)
		}
	})
}
