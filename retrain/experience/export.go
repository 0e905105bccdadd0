// Package experience makes data sets to learn from out of recorded telemetry: the steps of ranges of offsets, by episode and
// in step order.
package experience

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// Source says whose steps are wanted, and of which topic.
type Source struct {
	Kafka   ingest.KafkaConfig // its group is not joined
	Policy  string
	Group   map[string]string // the values of the labels that the policy is grouped by, such as env
	MaxOpen int               // episodes at a time, as assemble.Config has it
	// Progress is told how many messages have been read, and their total. It may be nil.
	Progress func(messages, total int64)
}

// Part is a part of a data set.
type Part struct {
	Name   string
	Ranges []ingest.Range
}

// Writer writes a data set. It is given the episodes one after the other, each in step order; a step is valid until Write
// returns.
type Writer interface {
	Write(s *Step) error
	// Close finishes the data set, and leaves what it is written to open.
	Close() error
}

// Counts says what a data set holds.
type Counts struct {
	Steps      int64
	Episodes   int64
	Incomplete int64 // episodes of which only a part lies within the range that was read
	Stepless   int64 // episodes that are left out, since the telemetry has no steps of them
}

// Export reads the parts, one after the other, and closes w. Each range is read by itself: what lies between two of them is
// missing. Episodes are written as they end, which the same rules decide as in the service; those that are still open at the
// end of a range are incomplete and come after all others of it.
//
// Nothing is written where the topic does not hold all ranges: the error names those that it does not, each as
// ingest.ErrRangeGone. It is an error too where they hold no step of the group. After an error w is left open.
func Export(ctx context.Context, src Source, parts []Part, w Writer) (Counts, error) {
	return export(ctx, src, parts, w, newSpool(maxHeld))
}

func export(ctx context.Context, src Source, parts []Part, w Writer, s *spool) (counts Counts, err error) {
	defer func() { err = errors.Join(err, s.close()) }()
	var all []ingest.Range
	for _, p := range parts {
		all = append(all, p.Ranges...)
	}
	if err := ingest.CheckRanges(ctx, src.Kafka, all); err != nil {
		return Counts{}, err
	}
	x := newExporter(src, w, s)
	for _, of := range all {
		x.total += of.Last - of.First + 1
	}
	for _, p := range parts {
		x.data = p.Name
		for _, of := range p.Ranges {
			if err := x.read(ctx, of); err != nil {
				return x.counts, err
			}
		}
	}
	if x.counts.Steps == 0 {
		return x.counts, errNoStep
	}
	return x.counts, w.Close()
}

// exporter is the state of one Export.
type exporter struct {
	src    Source
	by     []string // labels that the policy is grouped by, as assemble.Config has them
	group  ingest.Group
	out    Writer
	spool  *spool
	data   string
	counts Counts

	messages, total int64
}

func newExporter(src Source, w Writer, s *spool) *exporter {
	x := &exporter{src: src, out: w, spool: s}
	var labels []ingest.Label
	for _, name := range slices.Sorted(maps.Keys(src.Group)) {
		labels = append(labels, ingest.Label{Name: name, Value: src.Group[name]})
		if label, ok := strings.CutPrefix(name, "label_"); ok {
			name = "labels." + label
		}
		x.by = append(x.by, name)
	}
	x.group = ingest.NewGroup(src.Policy, labels...)
	return x
}

// read exports one range.
func (x *exporter) read(ctx context.Context, of ingest.Range) error {
	r := x.excerpt()
	cfg := ingest.TopicConfig{Kafka: x.src.Kafka, Accepted: r.take, Progress: func(messages, _ int64) {
		if x.src.Progress != nil {
			x.src.Progress(x.messages+messages, x.total)
		}
	}}
	if _, err := ingest.ReadRanges(ctx, cfg, []ingest.Range{of}, r); err != nil {
		return err
	}
	x.messages += of.Last - of.First + 1
	return r.writeOpen()
}

func (x *exporter) excerpt() *excerpt {
	r := &excerpt{exporter: x, seen: assemble.NewExcerpt(), open: map[ingest.Position]*pile{}}
	r.episodes = assemble.New(assemble.Config{
		GroupBy: func(string) []string { return x.by },
		MaxOpen: x.src.MaxOpen,
		Dropped: func(first ingest.Position) { r.ended = append(r.ended, ending{first, false}) },
	}, assemble.NewMetrics(prometheus.NewRegistry()))
	return r
}

// excerpt is one range while it is read: the episodes of the group that are open, by the places of their first records.
type excerpt struct {
	*exporter
	episodes *assemble.Assembler
	seen     *assemble.Excerpt
	open     map[ingest.Position]*pile
	ended    []ending // with the record being read
	failed   error
}

type ending struct {
	first ingest.Position
	whole bool
}

// take reads one record. It has become a part of its episode before that is written.
func (r *excerpt) take(e *ingest.Event, text []byte) {
	if r.failed != nil || e.Policy != r.group.Policy || assemble.GroupOf(r.by, e) != r.group {
		return
	}
	r.seen.Read(e)
	first, taken := r.episodes.Fold(e, r.end)
	if taken {
		r.failed = r.keep(first, e, text)
	}
	for _, ep := range r.ended {
		if r.failed == nil {
			r.failed = r.write(ep.first, ep.whole)
		}
	}
	r.ended = r.ended[:0]
}

func (r *excerpt) end(u *ingest.Unit) {
	if u.End != ingest.EndBlock {
		r.ended = append(r.ended, ending{u.First, r.seen.Whole(u)})
	}
}

func (r *excerpt) keep(first ingest.Position, e *ingest.Event, text []byte) error {
	record, err := recordOf(e, text)
	if err != nil {
		return err
	}
	p := r.open[first]
	if p == nil {
		p = r.spool.begin()
		r.open[first] = p
	}
	return r.spool.add(p, &record)
}

// writeOpen writes the episodes that have not ended, in the order in which they began.
func (r *excerpt) writeOpen() error {
	for _, first := range slices.SortedFunc(maps.Keys(r.open), before) {
		if err := r.write(first, false); err != nil {
			return err
		}
	}
	return nil
}

func before(a, b ingest.Position) int {
	switch {
	case a.Before(b):
		return -1
	case b.Before(a):
		return 1
	}
	return 0
}

// write writes an episode, with what records that are no steps add to the steps before them.
func (r *excerpt) write(first ingest.Position, whole bool) error {
	s := Step{Data: r.data, Episode: r.counts.Episodes, Complete: whole, Index: -1}
	put := func() error {
		if s.Index < 0 {
			return nil
		}
		return r.out.Write(&s)
	}
	err := r.spool.end(r.open[first], func(record *Record) error {
		if !record.isStep() {
			s.add(record)
			return nil
		}
		if err := put(); err != nil {
			return err
		}
		s.Record = *record
		s.Index++
		return nil
	})
	delete(r.open, first)
	if err == nil {
		err = put()
	}
	r.count(s.Index+1, whole)
	return err
}

func (x *exporter) count(steps int64, whole bool) {
	if steps == 0 {
		x.counts.Stepless++
		return
	}
	x.counts.Steps += steps
	x.counts.Episodes++
	if !whole {
		x.counts.Incomplete++
	}
}

// Process implements ingest.Processor: the records have been taken.
func (r *excerpt) Process(context.Context, []ingest.Event) error { return r.failed }

// Idle implements ingest.Processor.
func (r *excerpt) Idle(context.Context, time.Time) error { return nil }

// Snapshot implements ingest.Processor; an export keeps no state.
func (r *excerpt) Snapshot(io.Writer) error { return nil }

// Restore implements ingest.Processor.
func (r *excerpt) Restore(io.Reader) error { return nil }
