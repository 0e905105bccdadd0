package telemetry

import (
	"fmt"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// maxShared limits the bytes of values that the events of one record share, times the number of events. Every event has
// a copy, so a small record could otherwise take gigabytes.
const maxShared = 32 << 20

// sharesLittle reports whether the values around the events are small enough to be copied to all of them.
func (m *mapped) sharesLittle() bool {
	if int64(shared(&m.template)+recordedBytes(&m.d.recorded))*int64(m.scan.elements) <= maxShared {
		return true
	}
	return m.d.fail(ingest.ReasonTooManyValues, nowhere, fmt.Sprintf("its %d events share more than %d bytes of values", m.scan.elements, maxShared))
}

// maxAround limits the bytes of a message's key and headers, times its number of records, because a mapping that uses
// them reads them for each record.
const (
	maxAround   = 64 << 20
	headerBytes = 16 // cost of skipping a header
	manyAround  = "the key and the headers of the message are too large for its number of records"
)

// aroundBytes returns the number of bytes outside a message's value that are read for each record.
func (m *mapped) aroundBytes(msg *ingest.Message) int {
	n := 0
	if m.plan.Programs || m.key != nil || m.reads(mapping.FromKey) {
		n += len(msg.Key)
	}
	if m.plan.Programs || m.reads(mapping.FromHeader) {
		for _, h := range msg.Headers {
			n += headerBytes + len(h.Key) + len(h.Value)
		}
	}
	return n
}

// reads reports whether a field or a condition has the given origin.
func (m *mapped) reads(from mapping.Origin) bool {
	for i := range m.plan.Fields {
		if m.plan.Fields[i].Origin == from {
			return true
		}
	}
	for i := range m.plan.Conditions {
		if m.plan.Conditions[i].Origin == from {
			return true
		}
	}
	return false
}

// Memory of a number and of a label, in addition to their strings.
const (
	valueBytes = 24
	labelBytes = 32
)

// shared returns the approximate number of bytes that are needed to copy the values of an event.
func shared(ev *ingest.Event) int {
	n := 8 * len(ev.Action.Values)
	for _, l := range ev.Labels {
		n += labelBytes + len(l.Name) + len(l.Value)
	}
	for _, values := range [][]ingest.Value{ev.RewardComponents, ev.Observation, ev.Outcomes} {
		for _, v := range values {
			n += valueBytes + len(v.Name)
		}
	}
	return n
}

func recordedBytes(r *ingest.AsRecorded) int {
	return len(r.Action) + len(r.ActionProb) + len(r.Observation) + len(r.NextObservation)
}
