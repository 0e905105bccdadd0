package experience

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// inOrder writes the steps of one episode in the order of their numbers. It holds back those that a late step may still
// precede, at most assemble.Lateness. Otherwise a slightly late step would be missing from the rows.
type inOrder struct {
	row  Step // the row of the next step
	out  Writer
	held []Record // in step order
	last int64    // the highest step number
}

// take adds the next record of the episode, in order of arrival.
func (o *inOrder) take(record *Record) error {
	switch {
	case record.isStep():
		o.hold(*record)
	case len(o.held) > 0:
		o.held[len(o.held)-1].add(record)
	}
	ready := 0 // one step is always held, because an end or outcomes may follow
	for ready < len(o.held)-1 && o.last-o.held[ready].Step >= assemble.Lateness {
		ready++
	}
	return o.write(ready)
}

// hold inserts a step in its place. If any step has no number, they stay in order of arrival.
func (o *inOrder) hold(step Record) {
	at := len(o.held)
	if step.Step >= 0 {
		for at > 0 && o.held[at-1].Step > step.Step {
			at--
		}
		o.last = max(o.last, step.Step)
	}
	o.held = slices.Insert(o.held, at, step)
}

func (o *inOrder) writeAll() error { return o.write(len(o.held)) }

// write writes the first n of the held steps.
func (o *inOrder) write(n int) error {
	for i := range n {
		o.row.Record = o.held[i]
		if err := o.out.Write(&o.row); err != nil {
			return err
		}
		o.row.Index++
	}
	o.held = slices.Delete(o.held, 0, n)
	return nil
}
