// Package telemetry decodes telemetry version 1 and the monitor.csv files of Stable-Baselines3. Decoding is strict, and
// every refusal has a reason.
package telemetry

import (
	"bytes"
	"strconv"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/intern"
)

// V1 is the format of telemetry version 1. A message contains one JSON object per line. Blank lines are ignored, but a
// message without any record is refused.
type V1 struct{}

// NewDecoder implements Format.
func (V1) NewDecoder(o ingest.DecoderOptions) ingest.Decoder {
	d := newDecoder(o)
	if !o.AsRecorded {
		d.predictor = &predictor{}
	}
	return d
}

// decoder reads telemetry version 1 in one pass, strictly according to RFC 8259. It does not allocate once its events
// and tables have reached the size that the telemetry requires.
//
// Beyond RFC 8259, it accepts NaN, Inf and Infinity in any case and with either sign wherever a number may be. Where a
// number is expected, it also accepts such a word in quotes. A number too large for a float64 is infinite. All of these
// are telemetry faults for the bank to detect.
//
// null is the same as leaving the member out; in an array it is NaN, so that later components keep their places. If a
// key is repeated, the last value that is not null counts. Unknown members are skipped, but must be valid.
//
// A predictor reads records with the same structure as previous ones faster, with the same result.
//
// It is large because each telemetry field has a method that reads it into reused memory.
type decoder struct {
	options ingest.DecoderOptions

	names   intern.Names
	places  []string        // "0", "1", ..., the names of array components
	index   map[string]int  // positions of the names in a long object
	indexed *[]ingest.Value // values of that object
	arena   intern.Arena    // strings of the batch that are not interned

	rec     []byte // current record
	at      int    // index of the next byte of rec
	depth   int    // number of open objects and arrays
	values  int    // numbers read, limited by MaxValues
	deep    int    // numbers read within values of the observation
	scratch []byte // text of the last string with escapes
	path    []byte // name of a nested named value
	nul     bool   // whether the last string contained a NUL
	fault   fault

	zone *time.Location // for times without an offset, from a mapping; nil to refuse such times

	own []string // names that objects and arrays of named values omit; if not nil, previous values of their field are also kept

	recorded ingest.AsRecorded // of the current record, if the options request it

	predictor *predictor // nil to read each record independently
	lesson    *lesson    // what to record for the predictor; nil if nothing
}

type fault struct {
	reason ingest.Reason
	at     int // byte in the record, from 0; nowhere if the fault has no single place
	msg    string
}

const nowhere = -1

func newDecoder(o ingest.DecoderOptions) *decoder {
	places := make([]string, ingest.MaxValues)
	for i := range places {
		places[i] = strconv.Itoa(i)
	}
	return &decoder{options: o, names: intern.NewNames(), places: places, index: map[string]int{}}
}

// Reset implements Decoder.
func (d *decoder) Reset() { d.arena.Reset() }

// Decode implements Decoder. It reports refused lines, and decodes the others.
func (d *decoder) Decode(dst []ingest.Event, m *ingest.Message, refuse func(e *ingest.RecordError, raw []byte)) []ingest.Event {
	pos := m.Pos
	refused := 0
	capped := func(e *ingest.RecordError, raw []byte) {
		if refused++; refused > ingest.MaxRefusals {
			raw = nil
		}
		refuse(e, raw)
	}
	for rest := m.Value; len(rest) > 0; {
		var line []byte
		if line, rest = cutLine(rest); blank(line) {
			continue
		}
		dst = d.decodeRecord(dst, line, pos, capped)
		pos.Record++
	}
	if pos.Record == 0 {
		refuse(&ingest.RecordError{
			Pos: pos, Reason: ingest.ReasonEmptyRecord, Size: int64(len(m.Value)), Msg: "the message contains no record",
		}, m.Value)
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
func (d *decoder) decodeRecord(dst []ingest.Event, rec []byte, pos ingest.Position, refuse func(*ingest.RecordError, []byte)) []ingest.Event {
	d.rec = rec
	if d.predictor != nil {
		var fits bool
		if dst, fits = d.predictor.next(d, dst, pos); fits {
			return dst
		}
	}
	dst, ev := ingest.NextEvent(dst, pos)
	d.at, d.depth, d.values, d.deep, d.recorded = 0, 0, 0, 0, ingest.AsRecorded{}
	if d.record(ev) {
		if d.lesson != nil {
			d.predictor.learn(d, ev)
		}
		if d.options.AsRecorded {
			ev.AsRecorded = new(d.recorded)
		}
		return dst
	}
	if d.lesson != nil {
		d.predictor.learn(d, nil)
	}
	refuse(d.refusal(pos), rec)
	return dst[:len(dst)-1]
}

// refusal returns the error for the current record's fault.
func (d *decoder) refusal(pos ingest.Position) *ingest.RecordError {
	return &ingest.RecordError{
		Pos: pos, Reason: d.fault.reason, Column: d.fault.at + 1, Size: int64(len(d.rec)), Msg: d.fault.msg,
	}
}

func (d *decoder) record(ev *ingest.Event) bool {
	if !d.fits() {
		return false
	}
	d.space()
	if d.peek() != '{' {
		return d.notAnObject()
	}
	return d.members(ev) && d.end() && d.complete(ev)
}

// complete checks that an event has the required fields.
func (d *decoder) complete(ev *ingest.Event) bool {
	switch {
	case ev.Policy == "":
		return d.fail(ingest.ReasonMissingPolicy, nowhere, "a record must have a policy")
	case !ev.HasReward && ev.Action.Kind == ingest.ActionNone && len(ev.Outcomes) == 0 && !ev.HasEpisode:
		return d.fail(ingest.ReasonEmptyRecord, nowhere, "a record must have at least one of reward, action, outcomes and episode")
	}
	return true
}

// fits reports whether the record is within the size limit.
func (d *decoder) fits() bool {
	return len(d.rec) <= d.options.MaxRecord ||
		d.fail(ingest.ReasonTooLarge, nowhere, "exceeds the limit of "+strconv.Itoa(d.options.MaxRecord)+" bytes")
}

func (d *decoder) notAnObject() bool {
	start := d.at
	return d.skip() && d.end() && d.fail(ingest.ReasonWrongType, start, "a record must be a JSON object")
}

func (d *decoder) members(ev *ingest.Event) bool {
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
func (d *decoder) member(ev *ingest.Event, key []byte) bool {
	if d.null() {
		return true
	}
	if d.lesson == nil {
		return d.memberValue(ev, key)
	}
	start, f := d.at, fieldOf(key)
	return d.memberValue(ev, key) && d.lesson.member(f, d.rec, start, d.at)
}

func (d *decoder) memberValue(ev *ingest.Event, key []byte) bool {
	start := d.at
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
		return d.action(&ev.Action) && d.keep(&d.recorded.Action, start)
	case "reward":
		ev.HasReward = true
		return d.number(&ev.Reward)
	case "reward_components":
		return d.components(&ev.RewardComponents, false)
	case "observation":
		return d.observation(ev) && d.keep(&d.recorded.Observation, start)
	case "outcomes":
		return d.components(&ev.Outcomes, false)
	case "terminated":
		return d.boolean(&ev.Terminated)
	case "truncated":
		return d.boolean(&ev.Truncated)
	case "episode":
		return d.episode(ev)
	case "action_prob":
		ev.ActionProb.Known = true
		return d.number(&ev.ActionProb.P) && d.keep(&d.recorded.ActionProb, start)
	case "target_prob":
		ev.TargetProb.Known = true
		return d.number(&ev.TargetProb.P)
	case "next_observation":
		return d.nextObservation() && d.keep(&d.recorded.NextObservation, start)
	}
	return d.skip()
}
