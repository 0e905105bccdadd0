// Package experience builds training data sets from recorded telemetry: the steps of ranges of offsets, by episode and
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
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// Source selects whose steps to export, and from which topics.
type Source struct {
	Place   recording.Place // its topic is ignored
	Topics  []ingest.Topic  // topics of the telemetry, by index
	Policy  string
	Group   map[string]string // the values of the labels that the policy is grouped by, such as env
	MaxOpen int               // open episodes at a time, as in assemble.Config
	// Progress, if not nil, is called with the number of messages read and their total.
	Progress func(messages, total int64)
}

// Part is a part of a data set.
type Part struct {
	Name   string
	Ranges []ingest.Range
}

// Writer writes a data set. It receives the episodes one after the other, each in step order. A step is valid until
// Write returns.
type Writer interface {
	Write(s *Step) error
	// Close finishes the data set. It does not close the underlying file.
	Close() error
}

// Counts is the content of a data set.
type Counts struct {
	Steps      int64
	Episodes   int64
	Incomplete int64 // episodes that lie only partly within the range that was read
	Stepless   int64 // episodes left out because the telemetry has no steps of them
}

// Export reads the parts in order, and closes w. Each range is read separately: the records between two ranges are
// missing. Episodes are written as they end, by the same rules as in the service. Episodes that are still open at
// the end of a range are incomplete and follow all others of the range.
//
// If the topic does not hold all ranges, nothing is written, and the error names the missing ones, each as
// ingest.ErrRangeGone. Ranges without any step of the group are an error too. After an error w is left open.
func Export(ctx context.Context, src Source, parts []Part, w Writer) (Counts, error) {
	return export(ctx, src, parts, w, newSpool(maxHeld))
}

func export(ctx context.Context, src Source, parts []Part, w Writer, s *spool) (counts Counts, err error) {
	defer func() { err = errors.Join(err, s.close()) }()
	var all []ingest.Range
	for _, p := range parts {
		all = append(all, p.Ranges...)
	}
	if err := src.check(ctx, all); err != nil {
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

// check returns an error that names all ranges that their topics do not hold.
func (src *Source) check(ctx context.Context, ranges []ingest.Range) error {
	byTopic := map[string][]ingest.Range{}
	for _, of := range ranges {
		topic, _, err := of.In(src.Topics)
		if err != nil {
			return err
		}
		byTopic[topic.Name] = append(byTopic[topic.Name], of)
	}
	var gone []error
	for _, name := range slices.Sorted(maps.Keys(byTopic)) {
		err := recording.CheckRanges(ctx, src.Place.In(name), byTopic[name])
		if err != nil && !errors.Is(err, recording.ErrRangeGone) {
			return err
		}
		gone = append(gone, err)
	}
	return errors.Join(gone...)
}

// exporter is the state of one Export.
type exporter struct {
	src    Source
	by     []string // labels that group the policy, as in assemble.Config
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
	topic, index, err := of.In(x.src.Topics)
	if err != nil {
		return err
	}
	r := x.excerpt()
	cfg := recording.TopicConfig{Place: x.src.Place.In(topic.Name), Format: topic.Format, Index: index, AsRecorded: true, Progress: func(messages, _ int64) {
		if x.src.Progress != nil {
			x.src.Progress(x.messages+messages, x.total)
		}
	}}
	if _, err := recording.ReadRanges(ctx, cfg, []ingest.Range{of}, r); err != nil {
		return err
	}
	x.messages += of.Last - of.First + 1
	return r.writeOpen()
}

func (x *exporter) excerpt() *excerpt {
	r := &excerpt{exporter: x, seen: assemble.NewExcerpt(), open: map[ingest.Position]*pile{}}
	r.episodes = assemble.New(assemble.Config{
		GroupBy: func(string) []string { return x.by },
		MaxOpen: x.src.MaxOpen, FollowRests: true,
		Dropped: func(first ingest.Position) { r.ended = append(r.ended, ending{first, false}) },
	}, assemble.NewMetrics(prometheus.NewRegistry()))
	return r
}

// excerpt is the state of one range: the open episodes of the group, by the positions of their first records.
type excerpt struct {
	*exporter
	episodes *assemble.Assembler
	seen     *assemble.Excerpt
	open     map[ingest.Position]*pile
	ended    []ending // by the current record
}

type ending struct {
	first ingest.Position
	whole bool
}

// take adds one record. It adds the record to its episode before it writes the episode.
func (r *excerpt) take(e *ingest.Event) (err error) {
	if e.Policy != r.group.Policy || assemble.GroupOf(r.by, e) != r.group {
		return nil
	}
	r.seen.Read(e)
	first, taken := r.episodes.Fold(e, r.end)
	if taken {
		err = r.keep(first, e)
	}
	for _, ep := range r.ended {
		if err == nil {
			err = r.write(ep.first, ep.whole)
		}
	}
	r.ended = r.ended[:0]
	return err
}

func (r *excerpt) end(u *ingest.Unit) {
	if u.End != ingest.EndBlock {
		r.ended = append(r.ended, ending{u.First, r.seen.Whole(u)})
	}
}

func (r *excerpt) keep(first ingest.Position, e *ingest.Event) error {
	record := recordOf(e)
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

// write writes an episode in step order. Records that are not steps are merged into the steps before them.
func (r *excerpt) write(first ingest.Position, whole bool) error {
	steps := inOrder{row: Step{Data: r.data, Episode: r.counts.Episodes, Complete: whole}, out: r.out}
	err := r.spool.end(r.open[first], steps.take)
	delete(r.open, first)
	if err == nil {
		err = steps.writeAll()
	}
	r.count(steps.row.Index, whole)
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

// Process implements ingest.Processor.
func (r *excerpt) Process(_ context.Context, batch []ingest.Event) error {
	for i := range batch {
		if err := r.take(&batch[i]); err != nil {
			return err
		}
	}
	return nil
}

// Idle implements ingest.Processor.
func (r *excerpt) Idle(context.Context, time.Time) error { return nil }

// Snapshot implements ingest.Processor; an export keeps no state.
func (r *excerpt) Snapshot(io.Writer) error { return nil }

// Restore implements ingest.Processor.
func (r *excerpt) Restore(io.Reader) error { return nil }
