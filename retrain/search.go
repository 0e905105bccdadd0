package retrain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Filter chooses requests. What is left at its zero value chooses all.
type Filter struct {
	// Text has words that must all stand in objective, hypothesis, expected, owner, evidence, or in what was said of the request and by whom, in
	// any order and case.
	Text         string
	Policy       string
	Cause        string // of the incident that asked for it
	State        State
	Recipe       string
	Parent       string    // the id of a request: the one of its policy that came next
	Parameter    string    // path=value of a leaf of the config, such as optimizer.lr=0.001
	Since, Until time.Time // opened from then on, and before
	After        string    // the id of a request: those that come after it in the order of a search
	Limit        int       // at most so many
}

// ErrBadFilter says what in a filter cannot be searched for.
var ErrBadFilter = errors.New("bad filter")

// searchPage is how many requests are read at once where Parameter is looked for, which the database does not know.
const searchPage = 200

// Search gives the requests that a filter chooses, the newest first, and whether there are more. Its errors are ErrBadFilter and those of the
// ledger.
func (d *Desk) Search(ctx context.Context, f Filter) (found []Request, more bool, err error) {
	if f.State != "" && !slices.Contains(States(), f.State) {
		return nil, false, fmt.Errorf("%w: no state is called %q", ErrBadFilter, f.State)
	}
	wanted, err := f.parameter()
	if err != nil {
		return nil, false, err
	}
	found = []Request{}
	for after := f.After; ; {
		page := f.Limit + 1 - len(found)
		if f.Parameter != "" {
			page = max(page, searchPage)
		}
		query, args, err := f.query(d.ledger.matches, after, page)
		if err != nil {
			return nil, false, err
		}
		read, err := list(ctx, d.ledger, "requests", scanRequest, query, args...)
		if err != nil {
			return nil, false, err
		}
		for _, q := range read {
			if !wanted(q) {
				continue
			}
			if len(found) == f.Limit {
				return found, true, nil
			}
			found = append(found, q)
		}
		if len(read) < page {
			return found, false, nil
		}
		after = read[len(read)-1].ID
	}
}

// query gives the statement that reads a page after a request, with all conditions but that of the parameter. matches is the condition of
// the dialect that finds words.
func (f Filter) query(matches, after string, limit int) (string, []any, error) {
	var conditions []string
	var args []any
	where := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", "$"+strconv.Itoa(len(args)), 1)
		}
		conditions = append(conditions, condition)
	}
	for _, is := range []struct{ column, value string }{{"policy", f.Policy}, {"state", string(f.State)}, {"recipe", f.Recipe}, {"parent", f.Parent}} {
		if is.value != "" {
			where(is.column+" = ?", plain(is.value))
		}
	}
	if f.Text != "" {
		words := strings.FieldsFunc(f.Text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
		if len(words) == 0 {
			return "", nil, fmt.Errorf("%w: text has no word", ErrBadFilter)
		}
		where(matches, `"`+strings.Join(words, `" "`)+`"`)
	}
	if f.Cause != "" {
		where("id IN (SELECT request FROM intents WHERE cause = ?)", plain(f.Cause))
	}
	if !f.Since.IsZero() {
		where("opened_at >= ?", ceilMilli(f.Since))
	}
	if !f.Until.IsZero() {
		where("opened_at < ?", ceilMilli(f.Until))
	}
	if after != "" {
		const at = "(SELECT opened_at FROM requests WHERE id = ?)"
		where("(opened_at < "+at+" OR opened_at = "+at+" AND id > ?)", plain(after), plain(after), plain(after))
	}
	query := selectRequests
	if len(conditions) > 0 {
		query += " WHERE " + strings.Join(conditions, " AND ")
	}
	args = append(args, limit)
	return query + " ORDER BY opened_at DESC, id LIMIT $" + strconv.Itoa(len(args)), args, nil
}

// parameter gives the condition on the config of a request.
func (f Filter) parameter() (func(Request) bool, error) {
	if f.Parameter == "" {
		return func(Request) bool { return true }, nil
	}
	path, value, is := strings.Cut(f.Parameter, "=")
	path = strings.TrimSpace(path)
	if !is || path == "" {
		return nil, fmt.Errorf("%w: parameter must be written as in optimizer.lr=0.001, not %q", ErrBadFilter, f.Parameter)
	}
	path, value = within("config", path), strings.TrimSpace(value)
	return func(q Request) bool {
		leaves, err := LeavesOfOrder(q.Order) // a request of a build before recipes has none
		return err == nil && slices.ContainsFunc(leaves, func(l Leaf) bool { return l.Path == path && sameScalar(l.Value, value) })
	}, nil
}

// sameScalar reports whether a leaf has a value: numbers are compared as such, and strings also without their quotes.
func sameScalar(leaf, value string) bool {
	if leaf == value || leaf == strconv.Quote(value) {
		return true
	}
	a, errA := strconv.ParseFloat(leaf, 64)
	b, errB := strconv.ParseFloat(value, 64)
	return errA == nil && errB == nil && a == b
}
