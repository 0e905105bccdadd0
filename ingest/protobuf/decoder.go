// Package protobuf decodes telemetry version 1 in Protobuf, and rewrites any other Protobuf message as JSON.
package protobuf

import (
	"math"
	"slices"
	"strconv"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/intern"
	"google.golang.org/protobuf/encoding/protowire"
)

//go:generate go run ./generate telemetry.proto telemetrypb/telemetry.pb.go

// V1 is the format of telemetry version 1 in Protobuf. A message is an Event or an Events of telemetry.proto. An event
// is refused for the same reasons as the equivalent JSON. If the wire type of a field differs from telemetry.proto, the
// field has the wrong type. Unknown fields are skipped, but must be valid.
type V1 struct{}

// NewDecoder implements Format.
func (V1) NewDecoder(o ingest.DecoderOptions) ingest.Decoder {
	d := &decoder{options: o, names: intern.NewNames(), index: map[string]int{}}
	for i := range ingest.MaxValues {
		d.places[i] = strconv.Itoa(i)
	}
	return d
}

// decoder reads telemetry version 1 in one pass. It does not allocate once its events and tables have reached the size
// that the telemetry requires.
//
// It is large because each telemetry field has a method that reads it into reused memory.
type decoder struct {
	options ingest.DecoderOptions

	names  intern.Names
	last   [fieldLast + 1]string    // last name of each field; most records repeat it
	order  [fieldLast + 1][]string  // names in each map in the order of the previous record
	places [ingest.MaxValues]string // "0", "1", ..., the names of array components
	index  map[string]int           // positions of the names in a long map
	of     int                      // field whose names are in index
	arena  intern.Arena             // strings of the batch that are not interned

	rec       []byte // current record
	at        int    // index of the next byte of rec
	values    int    // numbers read, limited by MaxValues
	record    recordState
	unlimited bool // whether numbers do not count towards MaxValues
	fault     fault
}

// recordState contains information about the current record that is not part of the event.
type recordState struct {
	action   protowire.Number // field that set the action
	observed protowire.Number // field of the observation
	next     protowire.Number // field of the next observation
	summary  bool             // whether an episode was present

	nextValues []ingest.Value
}

type fault struct {
	reason ingest.Reason
	at     int // byte in the record, from 0; nowhere if the fault has no single place
	msg    string
}

const nowhere = -1

// Reset implements Decoder.
func (d *decoder) Reset() { d.arena.Reset() }

// batchTag is the first byte of an Events message: the tag of its only field, whose number is reserved in Event.
const batchTag = byte(1<<3 | protowire.BytesType)

// Decode implements Decoder.
func (d *decoder) Decode(dst []ingest.Event, m *ingest.Message, refuse func(e *ingest.RecordError, raw []byte)) []ingest.Event {
	switch {
	case len(m.Value) == 0:
		refuse(&ingest.RecordError{Pos: m.Pos, Reason: ingest.ReasonEmptyRecord, Msg: "the message contains no record"}, m.Value)
		return dst
	case m.Value[0] != batchTag:
		return d.decodeRecord(dst, m.Value, m.Pos, refuse)
	}
	return d.batch(dst, m, refuse)
}

// batch decodes an Events message. If it is truncated, the events before the end are still decoded.
func (d *decoder) batch(dst []ingest.Event, m *ingest.Message, refuse func(e *ingest.RecordError, raw []byte)) []ingest.Event {
	refused := 0
	capped := func(e *ingest.RecordError, raw []byte) {
		if refused++; refused > ingest.MaxRefusals {
			raw = nil
		}
		refuse(e, raw)
	}
	pos := m.Pos
	for rest := m.Value; len(rest) > 0; {
		num, typ, tag := protowire.ConsumeTag(rest)
		n := tag
		if tag > 0 {
			n = protowire.ConsumeFieldValue(num, typ, rest[tag:])
		}
		if n < 0 {
			capped(&ingest.RecordError{
				Pos: pos, Reason: ingest.ReasonBadEncoding, Column: 1, Size: int64(len(rest)),
				Msg: "the end of the message is not valid Protobuf: " + protowire.ParseError(n).Error(),
			}, rest)
			return dst
		}
		if num == 1 && typ == protowire.BytesType {
			event, _ := protowire.ConsumeBytes(rest[tag:])
			dst = d.decodeRecord(dst, event, pos, capped)
			pos.Record++
		}
		rest = rest[tag+n:]
	}
	return dst
}

// decodeRecord appends one event to dst, or reports why it is refused.
func (d *decoder) decodeRecord(dst []ingest.Event, rec []byte, pos ingest.Position, refuse func(*ingest.RecordError, []byte)) []ingest.Event {
	dst, ev := ingest.NextEvent(dst, pos)
	d.rec, d.at, d.values, d.of = rec, 0, 0, 0
	d.record = recordState{nextValues: d.record.nextValues[:0]}
	if d.event(ev) {
		if d.options.AsRecorded {
			ev.AsRecorded = d.asRecorded(ev)
		}
		return dst
	}
	refuse(&ingest.RecordError{
		Pos: pos, Reason: d.fault.reason, Column: d.fault.at + 1, Size: int64(len(rec)), Msg: d.fault.msg,
	}, rec)
	return dst[:len(dst)-1]
}

func (d *decoder) event(ev *ingest.Event) bool {
	if len(d.rec) > d.options.MaxRecord {
		return d.fail(ingest.ReasonTooLarge, nowhere, "exceeds the limit of "+strconv.Itoa(d.options.MaxRecord)+" bytes")
	}
	for d.at < len(d.rec) {
		if d.quick(ev); d.at < len(d.rec) && !d.field(ev) {
			return false
		}
	}
	return d.complete(ev)
}

// field reads the next field of the event.
func (d *decoder) field(ev *ingest.Event) bool {
	f, ok := d.tag(len(d.rec))
	return ok && d.member(ev, f)
}

// complete checks that an event has the required fields.
func (d *decoder) complete(ev *ingest.Event) bool {
	switch {
	case d.record.summary && !ev.HasEpisode:
		return d.fail(ingest.ReasonMissingReturn, nowhere, "an episode must have r")
	case ev.Policy == "":
		return d.fail(ingest.ReasonMissingPolicy, nowhere, "a record must have a policy")
	case !ev.HasReward && ev.Action.Kind == ingest.ActionNone && len(ev.Outcomes) == 0 && !ev.HasEpisode:
		return d.fail(ingest.ReasonEmptyRecord, nowhere, "a record must have at least one of reward, action, outcomes and episode")
	}
	return true
}

// The fields of Event in telemetry.proto.
const (
	fieldPolicy        = 2
	fieldTS            = 3
	fieldAgentID       = 4
	fieldEpisodeID     = 5
	fieldStep          = 6
	fieldReward        = 7
	fieldTerminated    = 8
	fieldTruncated     = 9
	fieldCategory      = 10
	fieldIndex         = 11
	fieldNumber        = 12
	fieldFlag          = 13
	fieldVector        = 14
	fieldEnv           = 15
	fieldPolicyVersion = 16
	fieldEnvVersion    = 17
	fieldRewardVersion = 18
	fieldObservation   = 19
	fieldArray         = 20
	fieldComponents    = 21
	fieldOutcomes      = 22
	fieldLabels        = 23
	fieldEpisode       = 24
	fieldActionProb    = 25
	fieldNext          = 26
	fieldNextArray     = 27
	fieldTargetProb    = 28

	fieldLast = fieldTargetProb
)

// The fields of the messages within Event.
const (
	fieldEntryKey      = 1 // in a map entry
	fieldEntryValue    = 2
	fieldVectorValues  = 1 // in Numbers
	fieldEpisodeReturn = 1 // in Episode
	fieldEpisodeLength = 2
)

// member reads one field of the event.
func (d *decoder) member(ev *ingest.Event, f field) bool {
	switch f.num {
	case fieldPolicy:
		return d.name(f, &ev.Policy)
	case fieldTS:
		return d.timestamp(f, &ev.TS)
	case fieldAgentID:
		return d.id(f, &ev.AgentID)
	case fieldEpisodeID:
		return d.id(f, &ev.EpisodeID)
	case fieldStep:
		return d.count(f, &ev.Step)
	case fieldReward:
		ev.HasReward = true
		return d.double(f, &ev.Reward)
	case fieldTerminated:
		return d.boolean(f, &ev.Terminated)
	case fieldTruncated:
		return d.boolean(f, &ev.Truncated)
	case fieldCategory, fieldIndex, fieldNumber, fieldFlag, fieldVector:
		return d.action(f, &ev.Action)
	case fieldEnv:
		return d.name(f, &ev.Env)
	case fieldPolicyVersion:
		return d.name(f, &ev.Versions.Policy)
	case fieldEnvVersion:
		return d.name(f, &ev.Versions.Env)
	case fieldRewardVersion:
		return d.name(f, &ev.Versions.Reward)
	case fieldObservation, fieldArray:
		return d.observation(f, &ev.Observation)
	case fieldComponents:
		return d.component(f, &ev.RewardComponents)
	case fieldOutcomes:
		return d.component(f, &ev.Outcomes)
	case fieldLabels:
		return d.label(f, ev)
	case fieldEpisode:
		return d.episode(f, ev)
	case fieldActionProb:
		ev.ActionProb.Known = true
		return d.double(f, &ev.ActionProb.P)
	case fieldTargetProb:
		ev.TargetProb.Known = true
		return d.double(f, &ev.TargetProb.P)
	case fieldNext, fieldNextArray:
		return d.nextObservation(f)
	}
	return d.skip(f)
}

// action reads a field of the oneof. The last one counts, but consecutive vectors are concatenated.
func (d *decoder) action(f field, a *ingest.Action) bool {
	if f.num != fieldVector || d.record.action != fieldVector {
		*a = ingest.Action{Values: a.Values[:0]}
	}
	d.record.action = f.num
	switch f.num {
	case fieldCategory:
		a.Kind = ingest.ActionCategory
		return d.name(f, &a.Category)
	case fieldIndex:
		i, ok := d.integer(f)
		if ok {
			d.setIndex(a, i)
		}
		return ok
	case fieldNumber:
		return d.actionNumber(f, a)
	case fieldFlag:
		var flag bool
		ok := d.boolean(f, &flag)
		a.Kind, a.Category = ingest.ActionCategory, strconv.FormatBool(flag)
		return ok
	}
	return d.vector(f, a)
}

// setIndex sets a whole number, which is a category that may also be a number.
func (d *decoder) setIndex(a *ingest.Action, i int64) {
	a.Kind, a.Scalar, a.Values = ingest.ActionCategory, true, append(a.Values, float64(i))
	if i >= 0 && i < ingest.MaxValues {
		a.Category = d.places[i]
		return
	}
	var digits [20]byte
	a.Category = d.names.Get(strconv.AppendInt(digits[:0], i, 10))
}

func (d *decoder) actionNumber(f field, a *ingest.Action) bool {
	var x float64
	if !d.double(f, &x) {
		return false
	}
	if x == math.Trunc(x) && x >= -(1<<63) && x < 1<<63 {
		d.setIndex(a, int64(x))
		return true
	}
	a.Kind, a.Scalar, a.Values = ingest.ActionNumeric, true, append(a.Values, x)
	return math.IsNaN(x) || math.IsInf(x, 0) || d.counted()
}

func (d *decoder) vector(f field, a *ingest.Action) bool {
	end, ok := d.open(f)
	for ok && d.at < end {
		var inner field
		if inner, ok = d.tag(end); !ok {
			break
		}
		if inner.num != fieldVectorValues {
			ok = d.skip(inner)
			continue
		}
		var xs []byte
		if xs, ok = d.doubles(inner); len(xs) > 0 {
			a.Kind, a.Values = ingest.ActionNumeric, slices.Grow(a.Values, len(xs)/8)
		}
		for ; len(xs) > 0; xs = xs[8:] {
			a.Values = append(a.Values, double(xs))
		}
	}
	return ok
}

// observation reads an entry of the map, or numbers of the array.
func (d *decoder) observation(f field, dst *[]ingest.Value) bool {
	if d.record.observed != 0 && d.record.observed != f.num {
		return d.wrongType(f, "a map or an array, not both")
	}
	if f.num == fieldObservation {
		d.record.observed = f.num
		return d.component(f, dst)
	}
	xs, ok := d.doubles(f)
	if len(xs) > 0 {
		d.record.observed = fieldArray
	}
	for ; len(xs) > 0; xs = xs[8:] {
		*dst = append(*dst, ingest.Value{Name: d.places[len(*dst)], X: double(xs)})
	}
	return ok
}

// nextObservation reads a value that is only used for exports. As in JSON, it does not count towards MaxValues.
func (d *decoder) nextObservation(f field) bool {
	r := &d.record
	if r.next != 0 && r.next != f.num {
		return d.wrongType(f, "a map or an array, not both")
	}
	d.unlimited = true
	defer func() { d.unlimited = false }()
	if f.num == fieldNext {
		r.next = f.num
		return d.component(f, &r.nextValues)
	}
	xs, ok := d.doubles(f)
	if len(xs) > 0 {
		r.next = fieldNextArray
	}
	for ; len(xs) > 0; xs = xs[8:] {
		r.nextValues = append(r.nextValues, ingest.Value{X: double(xs)})
	}
	return ok
}

// component reads an entry of a map of numbers.
func (d *decoder) component(f field, dst *[]ingest.Value) bool {
	end, ok := d.open(f)
	name, x := "", 0.0
	for ok && d.at < end {
		var inner field
		if inner, ok = d.tag(end); !ok {
			break
		}
		switch inner.num {
		case fieldEntryKey:
			ok = d.name(inner, &name)
		case fieldEntryValue:
			ok = d.double(inner, &x)
		default:
			ok = d.skip(inner)
		}
	}
	if !ok || !d.counted() {
		return false
	}
	if i := d.indexOf(f.num, *dst, name); i >= 0 {
		(*dst)[i].X = x
	} else {
		d.order[f.num] = append(d.order[f.num][:len(*dst)], name)
		*dst = append(*dst, ingest.Value{Name: name, X: x})
	}
	return true
}

// shortMap is the number of names from which a map is faster than a linear search.
const shortMap = 32

// indexOf returns the index of a name in the values of a field, or -1 if it is new.
func (d *decoder) indexOf(of protowire.Number, vs []ingest.Value, name string) int {
	if len(vs) < shortMap {
		for i := range vs {
			if vs[i].Name == name {
				return i
			}
		}
		return -1
	}
	if d.of != int(of) {
		clear(d.index)
		d.of = int(of)
	}
	for i := len(d.index); i < len(vs); i++ {
		d.index[vs[i].Name] = i
	}
	if i, ok := d.index[name]; ok {
		return i
	}
	return -1
}

// label reads an entry of the map of labels.
func (d *decoder) label(f field, ev *ingest.Event) bool {
	end, ok := d.open(f)
	var l ingest.Label
	for ok && d.at < end {
		var inner field
		if inner, ok = d.tag(end); !ok {
			break
		}
		switch inner.num {
		case fieldEntryKey:
			ok = d.name(inner, &l.Name)
		case fieldEntryValue:
			ok = d.id(inner, &l.Value)
		default:
			ok = d.skip(inner)
		}
	}
	if !ok {
		return false
	}
	for i := range ev.Labels {
		if ev.Labels[i].Name == l.Name {
			ev.Labels[i].Value = l.Value
			return true
		}
	}
	if len(ev.Labels) == ingest.MaxLabels {
		return d.fail(ingest.ReasonTooManyValues, f.start, "more than "+strconv.Itoa(ingest.MaxLabels)+" labels")
	}
	d.order[f.num] = append(d.order[f.num][:len(ev.Labels)], l.Name)
	ev.Labels = append(ev.Labels, l)
	return true
}

// episode reads the summary. Several summaries are merged, as usual in Protobuf.
func (d *decoder) episode(f field, ev *ingest.Event) bool {
	d.record.summary = true
	end, ok := d.open(f)
	for ok && d.at < end {
		var inner field
		if inner, ok = d.tag(end); !ok {
			break
		}
		switch inner.num {
		case fieldEpisodeReturn:
			ev.HasEpisode = true
			ok = d.double(inner, &ev.Return)
		case fieldEpisodeLength:
			ok = d.count(inner, &ev.Length)
		default:
			ok = d.skip(inner)
		}
	}
	return ok
}
