package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// Filter selects requests. A zero field selects all.
type Filter struct {
	// Text holds words that must all occur in objective, hypothesis, expected, owner, evidence, or in what people said
	// about the request and their names, in any order and case.
	Text         string
	Policy       string
	Cause        string // of the incident that is the origin of the request
	State        State
	Recipe       string
	Parent       string    // the id of a request: selects the next one of its policy
	Parameter    string    // path=value of a leaf of the config, such as optimizer.lr=0.001
	Since, Until time.Time // opened from Since on, and before Until
	After        string    // the id of a request: selects those after it in the order of a search
	Limit        int       // maximum number of requests

	Owner Owner // selects the requests of its policies; nil for all
}

// Owner is who some policies belong to.
type Owner interface{ Owns(policy string) bool }

// ErrBadFilter means that a filter cannot be searched for.
var ErrBadFilter = errors.New("invalid filter")

// searchPage is how many requests are read at a time to search for Parameter, which the database does not index.
const searchPage = 200

// The limits of Filter.Text: each word costs the database time.
const (
	maxSearchText  = 1000 // bytes
	maxSearchWords = 32   // different ones
)

// Search returns the requests that match a filter, the newest first, and whether there are more. The errors are
// ErrBadFilter and those of the ledger, which has a time limit.
func (r *Reader) Search(ctx context.Context, f Filter) (found []Request, more bool, err error) {
	if f.State != "" && !slices.Contains(States(), f.State) {
		return nil, false, fmt.Errorf("%w: unknown state %q", ErrBadFilter, f.State)
	}
	wanted, err := f.parameter()
	if err != nil {
		return nil, false, err
	}
	if err := r.Suspended(); err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found = []Request{}
	for after := f.After; ; {
		page := f.Limit + 1 - len(found)
		if f.Parameter != "" || f.Owner != nil {
			page = max(page, searchPage)
		}
		query, args, err := f.query(r.matches, after, page)
		if err != nil {
			return nil, false, err
		}
		read, err := list(ctx, r.reads, "requests", scanRequest, query, args...)
		if err != nil {
			return nil, false, err
		}
		for _, q := range read {
			if !wanted(q) || f.Owner != nil && !f.Owner.Owns(q.Policy) {
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

// query returns the statement that reads a page after a request, with all conditions except that on the parameter.
// matches is the dialect's condition that finds words.
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
			where(is.column+" = ?", Plain(is.value))
		}
	}
	if f.Text != "" {
		words, err := f.words()
		if err != nil {
			return "", nil, err
		}
		where(matches, `"`+strings.Join(words, `" "`)+`"`)
	}
	if f.Cause != "" {
		where("id IN (SELECT request FROM intents WHERE cause = ?)", Plain(f.Cause))
	}
	if !f.Since.IsZero() {
		where("opened_at >= ?", ceilMilli(f.Since))
	}
	if !f.Until.IsZero() {
		where("opened_at < ?", ceilMilli(f.Until))
	}
	if after != "" {
		const at = "(SELECT opened_at FROM requests WHERE id = ?)"
		where("(opened_at < "+at+" OR opened_at = "+at+" AND id > ?)", Plain(after), Plain(after), Plain(after))
	}
	query := selectRequests
	if len(conditions) > 0 {
		query += " WHERE " + strings.Join(conditions, " AND ")
	}
	args = append(args, limit)
	return query + " ORDER BY opened_at DESC, id LIMIT $" + strconv.Itoa(len(args)), args, nil
}

// words returns the words of Text, each once, because every word costs the database as much again.
func (f Filter) words() ([]string, error) {
	if len(f.Text) > maxSearchText {
		return nil, fmt.Errorf("%w: text must have at most %d bytes, not %d", ErrBadFilter, maxSearchText, len(f.Text))
	}
	var words []string
	for word := range strings.FieldsFuncSeq(f.Text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, word) }) {
			words = append(words, word)
		}
	}
	switch {
	case len(words) == 0:
		return nil, fmt.Errorf("%w: text contains no words", ErrBadFilter)
	case len(words) > maxSearchWords:
		return nil, fmt.Errorf("%w: text must have at most %d different words, not %d", ErrBadFilter, maxSearchWords, len(words))
	}
	return words, nil
}

// parameter returns the condition on the config of a request.
func (f Filter) parameter() (func(Request) bool, error) {
	if f.Parameter == "" {
		return func(Request) bool { return true }, nil
	}
	path, value, is := strings.Cut(f.Parameter, "=")
	path = strings.TrimSpace(path)
	if !is || path == "" {
		return nil, fmt.Errorf("%w: parameter must have the form key=value, such as optimizer.lr=0.001, not %q", ErrBadFilter, f.Parameter)
	}
	value = strings.TrimSpace(value)
	return func(q Request) bool { return recipe.HasParameter(q.Order, path, value) }, nil
}
