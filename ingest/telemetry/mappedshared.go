package telemetry

import (
	"fmt"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// maxShared bounds how much the events of one record have in common, in bytes, times their number: each has it, so a small
// record would otherwise cost gigabytes.
const maxShared = 32 << 20

// sharesLittle reports whether what has been read around the events is small enough for all of them to have it.
func (m *mapped) sharesLittle() bool {
	if int64(shared(&m.template)+recordedBytes(&m.d.recorded))*int64(m.scan.elements) <= maxShared {
		return true
	}
	return m.d.fail(ingest.ReasonTooManyValues, nowhere, fmt.Sprintf("its %d events share more than %d bytes of values", m.scan.elements, maxShared))
}

// maxAround bounds the bytes of the key and the headers of a message, times its records: a mapping that reads them does so
// for each record.
const (
	maxAround   = 64 << 20
	headerBytes = 16 // of a header to pass by
	manyAround  = "the key and the headers of the message are too large for its number of records"
)

// aroundBytes returns how many bytes around the value of a message are read for each record.
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

// reads reports whether a field or a condition is from a place.
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

// Bytes that a number and a label take beside their texts.
const (
	valueBytes = 24
	labelBytes = 32
)

// shared returns about how many bytes of an event another one gets that has the same values.
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
