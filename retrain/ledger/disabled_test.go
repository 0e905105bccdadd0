package ledger

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// The ledger recognizes a target that answered 410 without storing its URL, and removes URLs that earlier builds
// stored.
func testAddressesAreNotKept(t *testing.T, on storage) {
	l, err := Open(t.Context(), on(t), quiet)
	check(t, err)
	t.Cleanup(func() { check(t, l.Close()) })
	kept := func() (all []string) {
		rows, err := l.db.QueryContext(t.Context(), `SELECT target || ' ' || url FROM disabled_targets ORDER BY target`)
		check(t, err)
		defer rows.Close()
		for rows.Next() {
			var text string
			check(t, rows.Scan(&text))
			all = append(all, text)
		}
		check(t, rows.Err())
		return all
	}
	of := func(name, path string) target.Target {
		return target.Target{Name: name, Webhook: "https://hooks.example/" + path}
	}
	check(t, l.Update(t.Context(), func(tx *Tx) error {
		_, err := tx.ExecContext(t.Context(), `INSERT INTO disabled_targets (target, url, at, request) VALUES ('old', 'https://hooks.example/hidden?key=1', 1, 'r')`)
		return errors.Join(err, disable(t.Context(), tx, time.Now(), of("new", "hidden?key=2"), "r"))
	}))
	disabled := func(when string) {
		for _, test := range []struct {
			target target.Target
			want   bool
		}{{of("old", "hidden?key=1"), true}, {of("new", "hidden?key=2"), true}, {of("old", "hidden?key=2"), false}, {of("new", "other"), false}} {
			got, err := isDisabled(t.Context(), l.db, test.target)
			check(t, err)
			if got != test.want {
				t.Errorf("%s: %s at %s is disabled: %v, want %v", when, test.target.Name, test.target.Webhook, got, test.want)
			}
		}
	}
	disabled("before")
	for range 2 { // the second start has nothing to do
		check(t, l.Resume(t.Context(), nil))
		disabled("after")
		all := kept()
		if text := strings.Join(all, "\n"); len(all) != 2 || strings.Contains(text, "hidden") || strings.Contains(text, "key") || strings.Count(text, " hooks.example") != 2 {
			t.Errorf("the ledger keeps %s", text)
		}
	}
}
