// Package sample reads records with the format and the mapping of a topic, and shows the result.
package sample

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// shown is the maximum number of records in a report.
const shown = 10

// Report is the result of reading the records of a sample.
type Report struct {
	Read     int64           `json:"read"`      // accepted and refused records
	Accepted int64           `json:"accepted"`  // events
	NotTaken int64           `json:"not_taken"` // records that the mapping leaves out
	Refused  []Refusal       `json:"refused"`   // most common reason first
	Missing  []MissingSource `json:"missing"`   // fields without a value in any record
	Records  []Record        `json:"records"`   // the first records with an event
}

// Refusal counts the records that were refused for a reason.
type Refusal struct {
	Reason  ingest.Reason `json:"reason"`
	Records int64         `json:"records"`
	First   int64         `json:"first"` // number of the first such record, from 0
	Message string        `json:"message"`
}

// MissingSource is a field whose source had no value in any record.
type MissingSource struct {
	Field  string `json:"field"`
	Source string `json:"source"`
}

// Record is a record and its events as telemetry v1.
type Record struct {
	Record string            `json:"record"`
	Events []json.RawMessage `json:"events"`
}

// Usable reports whether a sample shows that its format and its mapping fit: at least one record is an event, and every
// field without a default has a value in some record.
func (r *Report) Usable() bool { return r.Accepted > 0 && len(r.Missing) == 0 }

// Read reads files as the lines of a topic.
func Read(ctx context.Context, lines ingest.Format, stdin io.Reader, files []string) (*Report, error) {
	r := &Report{Refused: []Refusal{}, Missing: []MissingSource{}, Records: []Record{}}
	var found []bool
	mapped, isMapped := lines.(telemetry.Mapped)
	if isMapped {
		found = make([]bool, len(mapped.Plan.Fields))
		mapped.Found = func(i int) { found[i] = true }
		lines = mapped
	}
	counts, err := recording.ReadFiles(ctx, recording.FilesConfig{Format: watched{lines, r}, Stdin: stdin, Refuse: r.refuse}, files, &engine.Collector{})
	if err != nil {
		return nil, err
	}
	r.Read, r.Accepted, r.NotTaken = counts.Read, counts.Accepted, counts.LeftOut
	if isMapped && r.Accepted > 0 {
		r.missing(mapped.Plan, found)
	}
	slices.SortFunc(r.Refused, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(b.Records, a.Records), strings.Compare(string(a.Reason), string(b.Reason)))
	})
	return r, nil
}

// Of reads messages of a topic.
func Of(ctx context.Context, f ingest.Format, messages []ingest.Message) (*Report, error) {
	r := &Report{Refused: []Refusal{}, Missing: []MissingSource{}, Records: []Record{}}
	d := watched{f, r}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord, LeftOut: func(ingest.Position) { r.NotTaken++ }})
	for i := range messages {
		if err := ingest.Prepare(ctx, d, &messages[i]); err != nil {
			return nil, err
		}
		events := d.Decode(nil, &messages[i], func(e *ingest.RecordError, raw []byte) {
			r.refuse(e, raw)
			r.Read++
		})
		r.Accepted += int64(len(events))
		r.Read += int64(len(events))
		d.Reset()
	}
	return r, nil
}

// missing lists the fields without a value. It omits sources that files do not have, such as keys and headers, and
// fields with a default, which need not have a value.
func (r *Report) missing(p *mapping.Plan, found []bool) {
	for i := range p.Fields {
		f := &p.Fields[i]
		if !found[i] && f.Default == nil && (f.Origin == mapping.FromPath || f.Origin == mapping.FromExpression) {
			r.Missing = append(r.Missing, MissingSource{Field: f.Name, Source: f.Written})
		}
	}
}

func (r *Report) refuse(e *ingest.RecordError, _ []byte) {
	i := slices.IndexFunc(r.Refused, func(known Refusal) bool { return known.Reason == e.Reason })
	if i < 0 {
		i = len(r.Refused)
		message := strings.TrimPrefix(e.Error(), "record "+e.Pos.String()+", ")
		message = strings.TrimPrefix(message, "record "+e.Pos.String()+": ")
		r.Refused = append(r.Refused, Refusal{Reason: e.Reason, First: e.Pos.Offset, Message: message})
	}
	r.Refused[i].Records++
}

// watched is a format that adds its first records and their events to a report.
type watched struct {
	ingest.Format
	report *Report
}

// NewDecoder implements ingest.Format.
func (w watched) NewDecoder(o ingest.DecoderOptions) ingest.Decoder {
	return &watchedDecoder{w.Format.NewDecoder(o), w.report}
}

type watchedDecoder struct {
	ingest.Decoder
	report *Report
}

// Prepare implements ingest.Preparer.
func (w *watchedDecoder) Prepare(ctx context.Context, m *ingest.Message) error {
	return ingest.Prepare(ctx, w.Decoder, m)
}

// Decode implements ingest.Decoder.
func (w *watchedDecoder) Decode(dst []ingest.Event, m *ingest.Message, refuse func(e *ingest.RecordError, raw []byte)) []ingest.Event {
	before := len(dst)
	dst = w.Decoder.Decode(dst, m, refuse)
	if events := dst[before:]; len(events) > 0 && len(w.report.Records) < shown {
		r := Record{Record: strings.TrimSpace(string(m.Value))}
		for i := range events[:min(len(events), shown)] {
			r.Events = append(r.Events, telemetry.AppendEvent(nil, &events[i]))
		}
		w.report.Records = append(w.report.Records, r)
	}
	return dst
}
