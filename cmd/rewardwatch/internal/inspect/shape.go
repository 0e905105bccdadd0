package inspect

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/sample"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/format"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
	shapes "github.com/rewardwatch/rewardwatch/ingest/mapping/propose"
)

// shape describes the recognized records of a topic.
type shape struct {
	topic    format.Topic
	messages []ingest.Message
	json     []ingest.Message // messages as a mapping reads them
	why      string           // reason for the format
	before   *sample.Report   // report without a mapping
	proposal *shapes.Proposal // nil for records in telemetry version 1
	sample   *sample.Report   // report with the proposal
	files    []string         // nil for a topic
	given    bool             // the format is configured
}

// telemetryShare is the share of accepted records from which on no mapping is needed.
const telemetryShare = .95

// recognize recognizes the records, and configures their formats and mappings. It reports whether anything had to be
// configured.
func (s *study) recognize(ctx context.Context) (bool, error) {
	if err := s.keep(ctx); err != nil || len(s.shapes) == 0 {
		return false, err
	}
	for _, f := range s.shapes {
		if err := f.recognize(ctx, s.options.registry); err != nil {
			return false, err
		}
	}
	s.propose()
	if len(s.shapes) > 1 && !s.topic && !slices.ContainsFunc(s.shapes, func(f *shape) bool { return f.proposal != nil && f.proposal.Joined != nil }) {
		s.together()
	}
	changed := false
	for _, f := range s.shapes {
		changed = changed || f.changed()
	}
	if changed || len(s.shapes) > 1 && !s.topic {
		if err := s.namedApart(); err != nil {
			return false, err
		}
		s.configure()
		return true, nil
	}
	return false, nil
}

// mostSeen is the maximum number of values that are listed for records without a mapping.
const mostSeen = 20

// nothingFits lists the values in the records of topics for which no mapping could be proposed.
func (s *study) nothingFits() error {
	var all []error
	for _, f := range s.shapes {
		if f.proposal != nil || f.given || f.before == nil || f.before.Accepted > 0 {
			continue
		}
		if seen := shapes.Seen(records(f.json)); len(seen) > 0 {
			more := ""
			if len(seen) > mostSeen {
				seen, more = seen[:mostSeen], fmt.Sprintf(", and %d more", len(seen)-mostSeen)
			}
			of := ""
			if len(s.shapes) > 1 {
				of = " of " + f.topic.Topic
			}
			all = append(all, fmt.Errorf("no field%s looks like an action, a reward or an outcome: write a mapping and pass it with --config. The records contain: %s%s",
				of, terminal.Printable(strings.Join(seen, ", ")), more))
		}
	}
	return errors.Join(all...)
}

// namedApart returns an error if several recognized topics would have the same name, or the files of one topic
// different names: a file is read as one of the topic that it is named after.
func (s *study) namedApart() error {
	if s.topic {
		return nil
	}
	files := map[string]string{} // by topic
	for _, f := range s.shapes {
		if other, taken := files[f.topic.Topic]; taken {
			return fmt.Errorf("%s and %s contain different types of records, but both are named after the topic %s: rename each file to TOPIC.ndjson",
				other, f.files[0], f.topic.Topic)
		}
		files[f.topic.Topic] = f.files[0]
		for _, other := range f.files[1:] {
			if len(s.shapes) > 1 && topicOf(other) != f.topic.Topic {
				return fmt.Errorf("%s and %s contain the same type of records, but other files contain a different type: rename them to TOPIC.1.ndjson and TOPIC.2.ndjson",
					f.files[0], other)
			}
		}
	}
	return nil
}

// configure configures the recognized topics. A local log has a single topic, in JSON.
func (s *study) configure() {
	s.options.topic = ""
	if s.cfg.Ingest.IsLocal() && len(s.shapes) == 1 && s.shapes[0].topic.IsJSON() {
		s.cfg.Ingest.Log.Mapping = s.shapes[0].topic.Mapping
		return
	}
	s.cfg.Ingest.Log, s.cfg.Ingest.Kafka.Topics = config.Default().Ingest.Log, nil
	for _, f := range s.shapes {
		s.cfg.Ingest.Kafka.Topics = append(s.cfg.Ingest.Kafka.Topics, f.topic)
	}
}

// keep keeps the messages of each topic. Files with the same type of records belong to one topic.
func (s *study) keep(ctx context.Context) error {
	listed := s.cfg.Ingest.Telemetry()
	if s.topic {
		for _, t := range listed {
			kept, err := keepTopic(ctx, s.cfg.Ingest.Kafka, t.Topic)
			if err != nil {
				return err
			}
			s.shapes = append(s.shapes, &shape{topic: t, messages: kept, given: !t.Mapping.IsZero()})
		}
		return nil
	}
	if len(listed) > 1 || !listed[0].Mapping.IsZero() || s.options.topic != "" {
		return nil // their formats are configured
	}
	for _, file := range s.args {
		kept, err := keepFiles(ctx, []string{file})
		if err != nil || len(kept) == 0 {
			s.shapes = nil
			return err // for example a monitor.csv
		}
		i := slices.IndexFunc(s.shapes, func(f *shape) bool {
			return shapes.Alike(shapes.Topic{Name: topicOf(f.files[0]), Records: records(f.messages)}, shapes.Topic{Name: topicOf(file), Records: records(kept)})
		})
		if i >= 0 {
			s.shapes[i].files = append(s.shapes[i].files, file)
			continue
		}
		s.shapes = append(s.shapes, &shape{topic: listed[0], messages: kept, files: []string{file}})
	}
	if len(s.shapes) > 1 {
		for _, f := range s.shapes {
			f.topic.Topic = topicOf(f.files[0])
		}
	}
	return nil
}

// topicOf returns the topic that a file is named after.
func topicOf(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, name)
}

// recognize recognizes the format, and reads the messages in it without a mapping.
func (f *shape) recognize(ctx context.Context, registryURL string) error {
	if f.given || len(f.messages) == 0 {
		return nil
	}
	if f.topic.Format == "" {
		c, err := recognize(ctx, f.topic.Topic, f.messages, registryURL)
		if err != nil || c == nil {
			return err
		}
		f.json = c.sample
		if c.Format != format.JSON || c.Schema != (format.Schema{}) {
			f.topic.Format, f.topic.Schema, f.why = c.Format, c.Schema, c.why
		}
	} else {
		as, err := f.topic.OpenAs(keeper{&f.json})
		if err != nil {
			return err
		}
		if _, err := decode(ctx, as, f.messages); err != nil {
			return err
		}
	}
	opened, err := f.topic.Open()
	if err != nil {
		return err
	}
	f.before, err = sample.Of(ctx, opened, f.messages)
	return err
}

// changed reports whether the records differ from the configuration.
func (f *shape) changed() bool { return f.proposal != nil || f.why != "" }

// propose proposes mappings for topics whose records are not in telemetry version 1, and for topics whose feedback
// needs one. It omits mappings that would not turn more records into events.
func (s *study) propose() {
	var topics []shapes.Topic
	var of []*shape
	for _, f := range s.shapes {
		if !f.given && len(f.json) > 0 {
			t := shapes.Topic{Name: f.topic.Topic, Records: records(f.json)}
			for i := range t.Records {
				if f.topic.Format == format.CloudEvents {
					t.Records[i].Headers = nil // headers are members of the record
				}
			}
			topics, of = append(topics, t), append(of, f)
		}
	}
	for i, p := range shapes.Together(topics, s.policyName()) {
		if p != nil && of[i].worse(p) {
			of[i].take(p)
		}
	}
}

// worse reports whether fewer records can be read without a proposal than with it.
func (f *shape) worse(p *shapes.Proposal) bool {
	if f.before == nil {
		return true
	}
	all := float64(f.before.Read + f.before.NotTaken)
	with := f.with(p)
	if float64(f.before.Accepted) >= telemetryShare*all {
		ends := f.topic.Format == format.OTLP && p.Has("terminated") // evaluations do not contain the end
		return ends || len(p.Renamed()) > 0 && with != nil && with.Accepted >= f.before.Accepted
	}
	return with != nil && float64(with.Accepted) >= float64(f.before.Accepted)+(1-telemetryShare)*all
}

// with returns the report on the records with a proposal, or nil if the proposal cannot be used.
func (f *shape) with(p *shapes.Proposal) *sample.Report {
	plan, err := format.Topic{Topic: f.topic.Topic, Mapping: p.Config()}.Open()
	if err != nil {
		return nil
	}
	out, _ := sample.Of(context.Background(), plan, f.json) // for JSON, nothing needs to be fetched
	return out
}

func (f *shape) take(p *shapes.Proposal) {
	f.proposal, f.topic.Mapping, f.sample = p, p.Config(), f.with(p)
}

// together treats different files as one topic, if they need no mapping.
func (s *study) together() {
	for _, f := range s.shapes {
		if f.changed() {
			return
		}
	}
	s.shapes = s.shapes[:1]
	s.shapes[0].topic.Topic = s.cfg.Ingest.Telemetry()[0].Topic
}

// policyName returns a name for a policy that records do not name: the name of the topic or of the file.
func (s *study) policyName() string {
	name := s.args[0]
	if !s.topic {
		name = topicOf(name)
	}
	if name == "" || s.spooled == s.args[0] {
		return "policy"
	}
	return name
}

// ShapeJSON describes the recognized records of a topic.
type ShapeJSON struct {
	Topic   string         `json:"topic"`
	Files   []string       `json:"files,omitempty"` // files with these records
	Format  string         `json:"format"`
	Why     string         `json:"why"`     // reason for the format, "" for JSON
	Mapping *string        `json:"mapping"` // null for telemetry v1
	Sample  *sample.Report `json:"sample"`  // the first records, and the events that they become
}

func (f *shape) report() ShapeJSON {
	out := ShapeJSON{Topic: f.topic.Topic, Files: f.files, Format: f.topic.Format, Why: f.why, Sample: f.sample}
	if out.Format == "" {
		out.Format = format.JSON
	}
	if f.proposal != nil {
		out.Mapping = new(f.proposal.YAML(""))
	}
	return out
}

// shownRecords is the number of records that text shows with their events. JSON shows the whole sample.
const shownRecords = 4

// text prints the format, the mapping, and the resulting events of the first records.
func (f *shape) text(w *inspectionWriter, several bool) {
	of := ""
	if several {
		of = " OF " + f.topic.Topic
	}
	if f.why != "" {
		fmt.Fprintf(w, "\nPROPOSED FORMAT%s\n\n  format: %s # %s\n", of, f.topic.Format, f.why)
	}
	if f.proposal == nil {
		return
	}
	share := "The records are not telemetry v1"
	switch renamed := f.proposal.Renamed(); {
	case f.before == nil || f.before.Accepted == 0:
	case f.before.Accepted == f.before.Read && len(renamed) > 0:
		share = "The records are telemetry v1, but some fields have other names: " + strings.Join(renamed, ", ")
	default:
		share = fmt.Sprintf("%d of %d records are not telemetry v1", f.before.Read-f.before.Accepted, f.before.Read)
	}
	fmt.Fprintf(w, "\n%s. The following output uses this mapping.\n\nPROPOSED MAPPING%s\n\n%s\nRECORDS BEFORE AND AFTER\n",
		share, of, f.proposal.YAML("  "))
	f.sample.RecordsText(w, shownRecords)
	w.WriteString("\n")
}

// logYAML writes ingest.log, with the proposed mapping or as configured.
func logYAML(b *strings.Builder, log config.LogConfig, found []*shape, file string) {
	proposal, isMapped, defaults := shapes.Given(log.Mapping, asInspected), !log.Mapping.IsZero(), config.Default().Ingest.Log
	if len(found) > 0 && found[0].proposal != nil {
		proposal = found[0].proposal
	}
	log.Mapping = mapping.Config{}
	why := func(string) string {
		if file == "" {
			return "the log that was inspected"
		}
		return asInspected
	}
	b.WriteString("  log:\n")
	writeSettings(b, "    ", complete(reflect.ValueOf(&log).Elem(), reflect.ValueOf(&defaults).Elem(), why, map[string]string{
		"max_size": "the default; above this size, the oldest judged telemetry is removed",
	}))
	if isMapped {
		b.WriteString("    mapping:\n" + proposal.YAML("      "))
	}
}

// topicsYAML writes ingest.kafka.topics, with the proposals or as configured.
func topicsYAML(b *strings.Builder, topics []format.Topic, found []*shape) {
	b.WriteString("    topics:\n")
	for _, t := range topics {
		why, proposal := asInspected, shapes.Given(t.Mapping, asInspected)
		formatWhy := why
		if i := slices.IndexFunc(found, func(f *shape) bool { return f.topic.Topic == t.Topic && !f.given }); i >= 0 {
			why = "topic with the records; the mapping converts them to telemetry v1"
			if found[i].why != "" { // otherwise the configuration names the format
				formatWhy = found[i].why
			}
			if proposal = found[i].proposal; proposal == nil {
				why = "topic with the records"
			}
		}
		isMapped := !t.Mapping.IsZero()
		t.Mapping = mapping.Config{}
		keys := differing(reflect.ValueOf(&t).Elem(), reflect.ValueOf(new(format.Topic)).Elem(), func(key string) string {
			if key == "topic" {
				return why
			}
			return formatWhy
		})
		keys[0].Key = "- " + keys[0].Key
		writeSettings(b, "      ", keys[:1])
		writeSettings(b, "        ", keys[1:])
		if isMapped {
			b.WriteString("        mapping:\n" + proposal.YAML("          "))
		}
	}
}
