package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/sample"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
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

// proposeMapping proposes a mapping for the records that were refused. It returns nil if there is none that makes events
// of any, or if the topic has a mapping or another format already.
func (o inspectOptions) proposeMapping(ctx context.Context, cfg *config.Config, records *refusedRecords, args []string, isTopic bool) (*mapped, error) {
	kafka := cfg.Ingest.Kafka
	if t := kafka.Telemetry()[0]; len(kafka.Topics) > 1 || !t.Mapping.IsZero() || t.Format != "" && t.Format != format.JSON {
		return nil, nil
	}
	m := &mapped{topic: kafka.Telemetry()[0].Topic, proposal: shapes.Of(records.lines, policyName(args, isTopic))}
	if m.proposal == nil {
		return nil, nil
	}
	lines, err := m.config().Open()
	if err != nil {
		return nil, err
	}
	m.sample, err = sample.Read(ctx, lines, bytes.NewReader(bytes.Join(records.lines, []byte("\n"))), []string{"-"})
	if err != nil || m.sample.Accepted == 0 {
		return nil, err
	}
	return m, nil
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

// again inspects the telemetry with the mapping. Of the standard input, there are only the records that were kept.
func (m *mapped) again(ctx context.Context, c *terminal.Console, o inspectOptions, cfg *config.Config, records *refusedRecords, args []string, isTopic bool) (inspection, error) {
	cfg.Ingest.Kafka.Topics = []format.Topic{m.config()}
	o.topic = ""
	i := newInspector(cfg, time.Now())
	var counts recording.Counts
	var err error
	if slices.Contains(args, "-") {
		kept := *c
		kept.In = bytes.NewReader(bytes.Join(records.lines, []byte("\n")))
		counts, err = i.read(ctx, &kept, o, []string{"-"}, false)
	} else {
		counts, err = i.read(ctx, c, o, args, isTopic)
	}
	r := i.report(counts, isTopic)
	r.mapped = m
	r.Mapping = new(m.proposal.YAML(""))
	r.Sample = m.sample
	if counts.Accepted == 0 {
		err = errors.Join(err, terminal.ErrNoEvent)
	}
	return r, err
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

// feedbackSetting returns how feedback that comes in records of its own is joined, "" if there is none.
func (m *mapped) feedbackSetting() []setting {
	if m == nil || m.proposal.Joined == nil {
		return nil
	}
	j := m.proposal.Joined
	why := j.Why + "; an hour is a guess, as no delay was seen"
	if j.Delays > 0 {
		why = fmt.Sprintf("%s; half of the feedback comes within %s, 99 %% within %s", j.Why, j.Median.Round(time.Second), j.Q99.Round(time.Second))
	}
	value := fmt.Sprintf("{key: %s, window: %s, default: {reward: 0}}", j.Key, model.Duration(j.Window()))
	return []setting{{"feedback", value, why}}
}
