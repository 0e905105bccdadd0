package retrain

import (
	"context"
	"math"
)

// Record is a request with all that the ledger knows of it.
type Record struct {
	Request    Request       `json:"request"`
	History    []StateChange `json:"history"`    // the first state first
	Deliveries []Delivery    `json:"deliveries"` // the newest first
	Decisions  []Recorded    `json:"decisions"`  // on what asked for the request, the newest first
}

// recordPage is how many requests are in memory at once while records are read.
const recordPage = 100

// Records gives the records of all requests that a filter chooses, the newest first, until each fails. Limit is not read. Its errors
// are those of Search and of each.
func (d *Desk) Records(ctx context.Context, f Filter, each func(Record) error) error {
	f.Limit = recordPage
	for more := true; more; {
		var page []Request
		var err error
		if page, more, err = d.Search(ctx, f); err != nil {
			return err
		}
		for _, q := range page {
			r, err := d.record(ctx, q)
			if err != nil {
				return err
			}
			if err := each(r); err != nil {
				return err
			}
			f.After = q.ID
		}
	}
	return nil
}

func (d *Desk) record(ctx context.Context, q Request) (Record, error) {
	history, err := d.History(ctx, q.ID)
	if err != nil {
		return Record{}, err
	}
	deliveries, err := d.Deliveries(ctx, q.ID, math.MaxInt32)
	if err != nil {
		return Record{}, err
	}
	decisions, err := d.Decisions(ctx, q.Origin, math.MaxInt32)
	return Record{Request: q, History: history, Deliveries: deliveries, Decisions: decisions}, err
}
