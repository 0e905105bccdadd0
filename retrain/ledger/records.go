package ledger

import (
	"context"
	"math"
)

// Record is a request with everything that the ledger knows about it.
type Record struct {
	Request    Request       `json:"request"`
	History    []StateChange `json:"history"`    // the first state first
	Deliveries []Delivery    `json:"deliveries"` // the newest first
	Decisions  []Recorded    `json:"decisions"`  // on the origin of the request, the newest first
}

// recordPage is how many requests are in memory at once while records are read.
const recordPage = 100

// Records calls each with the records of all requests that match a filter, the newest first, until it fails. The
// filter's Limit is ignored. The errors are those of Search and of each.
func (r *Reader) Records(ctx context.Context, f Filter, each func(Record) error) error {
	f.Limit = recordPage
	for more := true; more; {
		var page []Request
		var err error
		if page, more, err = r.Search(ctx, f); err != nil {
			return err
		}
		for _, q := range page {
			whole, err := r.record(ctx, q)
			if err != nil {
				return err
			}
			if err := each(whole); err != nil {
				return err
			}
			f.After = q.ID
		}
	}
	return nil
}

func (r *Reader) record(ctx context.Context, q Request) (Record, error) {
	history, err := r.History(ctx, q.ID)
	if err != nil {
		return Record{}, err
	}
	deliveries, err := r.Deliveries(ctx, q.ID, math.MaxInt32)
	if err != nil {
		return Record{}, err
	}
	decisions, err := r.Decisions(ctx, q.Origin, math.MaxInt32)
	return Record{Request: q, History: history, Deliveries: deliveries, Decisions: decisions}, err
}
