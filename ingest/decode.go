package ingest

import (
	"bytes"
	"strconv"
)

// The bounds of a record. What goes beyond them is refused with the reason named.
const (
	// DefaultMaxRecord is the usual limit of a record in bytes (ReasonTooLarge).
	DefaultMaxRecord = 1 << 20
	// MaxDepth is how deep objects and arrays may nest, the record itself included (ReasonTooDeep).
	MaxDepth = 32
	// MaxValues is how many numbers a record may hold in action, observation, outcomes and reward_components together
	// (ReasonTooManyValues).
	MaxValues = 1024
	// MaxLabels is how many labels a record may have (ReasonTooManyValues).
	MaxLabels = 64
	// MaxString is the longest name, id, category, version or label in bytes (ReasonStringTooLong).
	MaxString = 1 << 10
)

// Decoder turns messages into events: telemetry version 1, strictly by RFC 8259, in one pass and without allocating
// once its events and tables have grown to what the telemetry needs. It is not safe for concurrent use.
//
// Beyond RFC 8259 it takes NaN, Inf and Infinity in any case and with either sign wherever a number may stand; a string
// that holds only such a word is taken for the number too where a number is due. A number too large for a float64 is
// infinite. All of these are telemetry faults for the bank to find.
//
// null is the same as leaving the member out; in an array it is NaN, so that the components behind it keep their
// places. Where a key is repeated, the last one that is not null holds. Unknown members are skipped, but must be valid.
type Decoder struct {
	maxRecord int
	accepted  func(e *Event, record []byte) // told of every event; may be nil

	names  internTable
	places []string       // "0", "1", ...: the names of an array's components
	index  map[string]int // places of the names of a long object
	arena  []byte         // the strings of the batch that are not interned

	rec     []byte // the record being read
	at      int    // the next byte of it
	depth   int    // objects and arrays that are open
	values  int    // numbers read for MaxValues
	scratch []byte // text of the last string that had escapes
	nul     bool   // the last string held a NUL
	fault   fault
}

type fault struct {
	reason Reason
	at     int // byte of the record, from 0; nowhere where the fault has no single place
	msg    string
}

const nowhere = -1

// NewDecoder makes a decoder that refuses records of more than maxRecord bytes.
func NewDecoder(maxRecord int) *Decoder {
	places := make([]string, MaxValues)
	for i := range places {
		places[i] = strconv.Itoa(i)
	}
	return &Decoder{maxRecord: maxRecord, names: newInternTable(), places: places, index: map[string]int{}}
}

// maxArena is the memory for strings that is kept from batch to batch.
const maxArena = 1 << 20

// Reset ends a batch: the strings of its events that are not interned become invalid.
func (d *Decoder) Reset() {
	if d.arena = d.arena[:0]; cap(d.arena) > maxArena {
		d.arena = nil
	}
}

// Decode appends the events of a message to dst and gives dst back. A message is one JSON object, or several in lines
// of their own; a line that is refused is reported and the others are decoded all the same. Blank lines are not
// records, but a message without any record is refused as one.
//
// The events between len(dst) and cap(dst) and their slices are used again. The events share no memory with msg; their
// strings are valid until Reset. What refuse is given is valid until it returns, except that it may keep the error.
func (d *Decoder) Decode(dst []Event, msg []byte, pos Position, refuse func(e *RecordError, raw []byte)) []Event {
	pos.Record = 0
	for rest := msg; len(rest) > 0; {
		var line []byte
		if line, rest = cutLine(rest); blank(line) {
			continue
		}
		dst = d.decodeRecord(dst, line, pos, refuse)
		pos.Record++
	}
	if pos.Record == 0 {
		refuse(&RecordError{
			Pos: pos, Reason: ReasonEmptyRecord, Size: int64(len(msg)), Msg: "the message holds no record",
		}, msg)
	}
	return dst
}

func cutLine(b []byte) (line, rest []byte) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}

func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// decodeRecord appends the event of one record to dst, or reports why it is refused.
func (d *Decoder) decodeRecord(dst []Event, rec []byte, pos Position, refuse func(*RecordError, []byte)) []Event {
	dst, ev := nextEvent(dst, pos)
	d.rec, d.at, d.depth, d.values = rec, 0, 0, 0
	if d.record(ev) {
		if d.accepted != nil {
			d.accepted(ev, rec)
		}
		return dst
	}
	refuse(&RecordError{
		Pos: pos, Reason: d.fault.reason, Column: d.fault.at + 1, Size: int64(len(rec)), Msg: d.fault.msg,
	}, rec)
	return dst[:len(dst)-1]
}

// nextEvent lengthens dst by an event that is empty but for the capacity of its slices.
func nextEvent(dst []Event, pos Position) ([]Event, *Event) {
	if len(dst) < cap(dst) {
		dst = dst[:len(dst)+1]
	} else {
		dst = append(dst, Event{})
	}
	ev := &dst[len(dst)-1]
	*ev = Event{
		Pos: pos, Step: -1, Length: -1,
		Labels: ev.Labels[:0], Action: Action{Values: ev.Action.Values[:0]},
		RewardComponents: ev.RewardComponents[:0], Observation: ev.Observation[:0], Outcomes: ev.Outcomes[:0],
	}
	return dst, ev
}

func (d *Decoder) record(ev *Event) bool {
	if len(d.rec) > d.maxRecord {
		return d.fail(ReasonTooLarge, nowhere, "longer than the limit of "+strconv.Itoa(d.maxRecord)+" bytes")
	}
	d.space()
	if d.peek() != '{' {
		return d.notAnObject()
	}
	if !d.members(ev) || !d.end() {
		return false
	}
	switch {
	case ev.Policy == "":
		return d.fail(ReasonMissingPolicy, nowhere, "a record needs a policy")
	case !ev.HasReward && ev.Action.Kind == ActionNone && len(ev.Outcomes) == 0 && !ev.HasEpisode:
		return d.fail(ReasonEmptyRecord, nowhere, "a record needs one of reward, action, outcomes and episode")
	}
	return true
}

func (d *Decoder) notAnObject() bool {
	start := d.at
	return d.skip() && d.end() && d.fail(ReasonWrongType, start, "a record is an object")
}

func (d *Decoder) members(ev *Event) bool {
	if !d.enter() {
		return false
	}
	for first := true; ; first = false {
		more, ok := d.next(first, '}')
		if !more {
			return ok
		}
		key, ok := d.key()
		if !ok || !d.member(ev, key) {
			return false
		}
	}
}

// member reads the value of one member of the record.
func (d *Decoder) member(ev *Event, key []byte) bool {
	if d.null() {
		return true
	}
	switch string(key) {
	case "ts":
		return d.timestamp(&ev.TS)
	case "policy":
		return d.name(&ev.Policy)
	case "env":
		return d.name(&ev.Env)
	case "policy_version":
		return d.name(&ev.Versions.Policy)
	case "env_version":
		return d.name(&ev.Versions.Env)
	case "reward_version":
		return d.name(&ev.Versions.Reward)
	case "labels":
		return d.labels(ev)
	case "agent_id":
		return d.id(&ev.AgentID)
	case "episode_id":
		return d.id(&ev.EpisodeID)
	case "step":
		return d.count(&ev.Step)
	case "action":
		return d.action(&ev.Action)
	case "reward":
		ev.HasReward = true
		return d.number(&ev.Reward)
	case "reward_components":
		return d.components(&ev.RewardComponents, false)
	case "observation":
		return d.observation(ev)
	case "outcomes":
		return d.components(&ev.Outcomes, false)
	case "terminated":
		return d.boolean(&ev.Terminated)
	case "truncated":
		return d.boolean(&ev.Truncated)
	case "episode":
		return d.episode(ev)
	case "action_prob":
		var unused float64
		return d.number(&unused)
	case "next_observation":
		return d.nextObservation()
	}
	return d.skip()
}
