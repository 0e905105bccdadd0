package guard

import (
	"fmt"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// keptEvents bounds the audit of a policy's guards. Older events are dropped.
const keptEvents = 256

// Event is a trip or the release of a guard.
type Event struct {
	Seq      uint64 // sequence number of the policy's guards after the change
	Guard    string
	From, To State
	At       finding.UnitRef // newest unit that the guards had seen
	By       string          // who released the guard; "" if no person did
	Why      string
	Decided  time.Time // when a person released the guard; zero otherwise
}

// Decision is a person's decision to release a guard.
type Decision struct {
	By, Why string
	At      time.Time
}

// note adds an event to the audit. It copies the list, because summaries share it.
func (s *Set) note(e Event) {
	e.Seq = s.seq
	kept := s.events[max(0, len(s.events)+1-keptEvents):]
	s.events = append(slices.Clone(kept), e)
}

// releasedWords returns the reason of a release without a person.
func releasedWords(after int64) string { return fmt.Sprintf("%d episodes within the limit", after) }

const removedWords = "the guard is no longer in the configuration"

type eventWire struct {
	Seq     uint64              `cbor:"1,keyasint,omitzero"`
	Guard   string              `cbor:"2,keyasint,omitzero"`
	From    State               `cbor:"3,keyasint,omitzero"`
	To      State               `cbor:"4,keyasint,omitzero"`
	At      finding.UnitRefWire `cbor:"5,keyasint,omitzero"`
	By      string              `cbor:"6,keyasint,omitzero"`
	Why     string              `cbor:"7,keyasint,omitzero"`
	Decided time.Time           `cbor:"8,keyasint,omitzero"`
}

func eventWireOf(e *Event) eventWire {
	return eventWire{e.Seq, e.Guard, e.From, e.To, finding.UnitRefWireOf(&e.At), e.By, e.Why, e.Decided}
}

func (w *eventWire) live() Event {
	return Event{w.Seq, w.Guard, w.From, w.To, w.At.Live(), w.By, w.Why, w.Decided}
}
