package inspect

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/sample"
	"github.com/rewardwatch/rewardwatch/ingest/format"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
	shapes "github.com/rewardwatch/rewardwatch/ingest/mapping/propose"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// The limits of the records that are kept to propose a mapping for them.
const (
	keptRecords = 5000
	keptBytes   = 16 << 20
)

// refusedRecords keeps the first records that are not telemetry v1.
type refusedRecords struct {
	lines [][]byte
	size  int
}

func (r *refusedRecords) keep(raw []byte) {
	if len(raw) == 0 || len(r.lines) == keptRecords || r.size+len(raw) > keptBytes {
		return
	}
	r.lines, r.size = append(r.lines, bytes.Clone(raw)), r.size+len(raw)
}

// mapped is a mapping that is proposed for records of another shape.
type mapped struct {
	topic    string
	proposal *shapes.Proposal
	sample   *sample.Report
}

// proposeMapping proposes a mapping for the records that were refused, and configures it. It reports whether there is one
// that makes events of any; not if the topic has a mapping or another format already.
func (s *study) proposeMapping(ctx context.Context, i *inspector, counts recording.Counts) (bool, error) {
	kafka := s.cfg.Ingest.Kafka
	if t := kafka.Telemetry()[0]; counts.Accepted > 0 || len(kafka.Topics) > 1 || !t.Mapping.IsZero() || t.Format != "" && t.Format != format.JSON {
		return false, nil
	}
	m := &mapped{topic: kafka.Telemetry()[0].Topic, proposal: shapes.Of(i.raw.lines, policyName(s.args, s.topic))}
	if m.proposal == nil {
		return false, nil
	}
	lines, err := m.config().Open()
	if err != nil {
		return false, err
	}
	m.sample, err = sample.Read(ctx, lines, bytes.NewReader(bytes.Join(i.raw.lines, []byte("\n"))), []string{"-"})
	if err != nil || m.sample.Accepted == 0 {
		return false, err
	}
	s.mapped, s.options.topic, s.cfg.Ingest.Kafka.Topics = m, "", []format.Topic{m.config()}
	return true, nil
}

// config returns the topic with the mapping.
func (m *mapped) config() format.Topic {
	return format.Topic{Topic: m.topic, Mapping: m.proposal.Config()}
}

// policyName returns a name for a policy that records do not name: that of the topic, or of the file.
func policyName(args []string, isTopic bool) string {
	name := args[0]
	if !isTopic {
		name, _, _ = strings.Cut(filepath.Base(name), ".")
	}
	if name == "" || name == "-" {
		return "policy"
	}
	return name
}

// text prints the mapping, and what it makes of the first records.
func (m *mapped) text(w *inspectionWriter) {
	fmt.Fprintf(w, "\nThe records are not telemetry v1. This mapping makes them so; what follows is read with it.\n\nPROPOSED MAPPING\n\n%s\nRECORDS BEFORE AND AFTER\n",
		m.proposal.YAML("  "))
	m.sample.RecordsText(w)
	w.WriteString("\n")
}

// topicsYAML writes ingest.kafka.topics: with the mapping that is proposed, or as the configuration has them.
func topicsYAML(b *strings.Builder, topics []format.Topic, m *mapped) {
	b.WriteString("    topics:\n")
	for _, t := range topics {
		why, proposal := asInspected, shapes.Given(t.Mapping, asInspected)
		if m != nil {
			why, proposal = "where the records are written; the mapping makes telemetry v1 of them", m.proposal
		}
		isMapped := !t.Mapping.IsZero()
		t.Mapping = mapping.Config{}
		keys := differing(reflect.ValueOf(&t).Elem(), reflect.ValueOf(new(format.Topic)).Elem(), func(string) string { return why })
		keys[0].Key = "- " + keys[0].Key
		writeSettings(b, "      ", keys[:1])
		writeSettings(b, "        ", keys[1:])
		if isMapped {
			b.WriteString("        mapping:\n" + proposal.YAML("          "))
		}
	}
}
