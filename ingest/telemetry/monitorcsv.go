package telemetry

import (
	"bytes"
	"math"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Monitor is the format of a monitor.csv file of Stable-Baselines3, with one line per message. The lines are #{header
// in JSON}, the column names, and one row per episode. The header may be repeated in concatenated files. A row has the
// return r, the length l, and t, the seconds from the header's t_start to the end of the episode. The time of a row is
// t_start plus t. If either is missing or invalid, the row is accepted without a time. Other columns are ignored.
//
// An env_id of None is ignored, because Stable-Baselines3 writes it for environments without an ID.
type Monitor struct {
	Policy  string // "" to use the header's env_id
	Unnamed string // policy if both Policy and env_id are missing
	Env     bool   // whether the env_id is the env of the rows
	Agent   string // agent of all rows; "" for none
}

// NewDecoder implements Format.
func (m Monitor) NewDecoder(o ingest.DecoderOptions) ingest.Decoder {
	return &monitor{options: m, decoder: newDecoder(o)}
}

// monitor reads the lines of a monitor.csv.
type monitor struct {
	options Monitor
	decoder *decoder

	headed   bool // whether a header was seen, valid or not
	named    bool // whether the column names were seen
	policy   string
	env      string
	start    int64 // t_start in Unix nanoseconds; 0 if the header has no valid one
	unusable fault // why rows are refused; its reason is empty if they are not

	columns    int // number of columns
	r, l, t    int // indices of r, l and t; t is -1 if absent
	fieldsRead [][]byte
}

// Decode implements Decoder. The message is one line.
func (m *monitor) Decode(dst []ingest.Event, msg *ingest.Message, refuse func(*ingest.RecordError, []byte)) []ingest.Event {
	line := bytes.TrimRight(msg.Value, "\r")
	heading, ok := m.heading(m.decoder, line)
	if heading && ok {
		return dst
	}
	if !heading {
		var ev *ingest.Event
		dst, ev = ingest.NextEvent(dst, msg.Pos)
		if m.row(m.decoder, ev, line) {
			return dst
		}
		dst = dst[:len(dst)-1]
	}
	fault := m.decoder.fault
	refuse(&ingest.RecordError{
		Pos: msg.Pos, Reason: fault.reason, Column: fault.at + 1, Size: int64(len(line)), Msg: fault.msg,
	}, line)
	return dst
}

// Reset implements Decoder.
func (m *monitor) Reset() { m.decoder.Reset() }

// heading reads the line if it is a header or the column names. If the line is refused, d.fault is set.
func (m *monitor) heading(d *decoder, line []byte) (heading, ok bool) {
	switch {
	case line[0] == '#' || !m.headed:
		return true, m.header(d, line)
	case !m.named:
		return true, m.names(d, line)
	}
	return false, true
}

func (m *monitor) header(d *decoder, line []byte) bool {
	m.headed, m.named, m.policy, m.env, m.unusable = true, false, m.options.Policy, "", fault{}
	envID, start, ok := headerOf(d, line[1:])
	if m.start = start; !ok {
		m.start = 0
	}
	if envID == "None" {
		envID = ""
	}
	if m.options.Env {
		m.env = envID
	}
	if ok && m.policy == "" && envID == "" {
		m.policy = m.options.Unnamed
	}
	switch {
	case m.policy != "":
	case !ok:
		m.unusable = fault{ingest.ReasonBadHeader, nowhere, "the file header is not readable, so env_id is unknown"}
	case envID == "":
		m.unusable = fault{ingest.ReasonMissingPolicy, nowhere, "the file header has no env_id, and no policy is set"}
	default:
		m.policy = envID
	}
	return ok || d.fail(ingest.ReasonBadHeader, d.fault.at+1, d.fault.msg)
}

// headerOf reads the header's object. It returns env_id, and t_start in Unix nanoseconds.
func headerOf(d *decoder, object []byte) (id string, start int64, ok bool) {
	d.rec, d.at, d.depth = object, 0, 0
	d.space()
	if d.peek() != '{' {
		return "", 0, d.fail(ingest.ReasonInvalidJSON, d.at, `not NDJSON or monitor.csv: expected "{" or "#{", found `+d.found())
	}
	if !d.enter() {
		return "", 0, false
	}
	for first := true; ; first = false {
		more, ok := d.next(first, '}')
		if !more {
			return id, start, ok && d.end()
		}
		key, ok := d.key()
		switch {
		case !ok:
			return "", 0, false
		case d.null():
		case string(key) == "env_id":
			ok = d.name(&id)
		case string(key) == "t_start" && d.atNumeral():
			ok = d.startTime(&start)
		default:
			ok = d.skip()
		}
		if !ok {
			return "", 0, false
		}
	}
}

// maxUnixSeconds is the limit below which a number is a Unix time in seconds, as in telemetry.
const maxUnixSeconds = 1e11

// startTime reads seconds since 1970. It sets dst to 0 if the number is not such a time.
func (d *decoder) startTime(dst *int64) bool {
	n, ok := d.numeral()
	if !ok {
		return false
	}
	if *dst = 0; n.float() < maxUnixSeconds {
		if ns, valid := unixNano(&n); valid {
			*dst = ns
		}
	}
	return true
}

// names finds the columns r, l and t.
func (m *monitor) names(d *decoder, line []byte) bool {
	m.named, m.r, m.l, m.t = true, -1, -1, -1
	m.cut(line, ingest.MaxValues)
	m.columns = len(m.fieldsRead)
	for i, name := range m.fieldsRead {
		switch string(bytes.Trim(name, "\" ")) {
		case "r":
			m.r = i
		case "l":
			m.l = i
		case "t":
			m.t = i
		}
	}
	if m.r >= 0 && m.l >= 0 && m.columns <= ingest.MaxValues {
		return true
	}
	m.unusable = fault{ingest.ReasonBadHeader, nowhere, "the row of column names is invalid"}
	return d.fail(ingest.ReasonBadHeader, nowhere, "the row of column names must include r and l")
}

// cut splits a CSV row into at most limit+1 raw fields. A doubled quote within quotes closes and reopens them, which
// has the same effect.
func (m *monitor) cut(row []byte, limit int) {
	m.fieldsRead = m.fieldsRead[:0]
	quoted, start := false, 0
	for i, c := range row {
		switch {
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted && len(m.fieldsRead) < limit:
			m.fieldsRead = append(m.fieldsRead, row[start:i])
			start = i + 1
		}
	}
	m.fieldsRead = append(m.fieldsRead, row[start:])
}

// row reads an episode.
func (m *monitor) row(d *decoder, ev *ingest.Event, row []byte) bool {
	if m.unusable.reason != "" {
		d.fault = m.unusable
		return false
	}
	m.cut(row, m.columns)
	if len(m.fieldsRead) != m.columns {
		return d.fail(ingest.ReasonWrongColumns, nowhere, "the number of columns differs from the header")
	}
	ev.Policy, ev.Env, ev.AgentID, ev.HasEpisode = m.policy, m.env, m.options.Agent, true
	d.field(m.fieldsRead[m.r])
	if !d.number(&ev.Return) || d.at != len(d.rec) {
		return d.fail(ingest.ReasonWrongType, nowhere, "r must be a number")
	}
	d.field(m.fieldsRead[m.l])
	if !d.count(&ev.Length) && d.fault.reason == ingest.ReasonOutOfRange {
		return d.fail(ingest.ReasonOutOfRange, nowhere, "l must be from 0 to 2^63-1")
	}
	if ev.Length < 0 || d.at != len(d.rec) {
		return d.fail(ingest.ReasonWrongType, nowhere, "l must be a whole number")
	}
	ev.TS = m.time(d)
	return true
}

// time returns the end of the row's episode in Unix nanoseconds, or 0 if unknown.
func (m *monitor) time(d *decoder) int64 {
	if m.start == 0 || m.t < 0 {
		return 0
	}
	d.field(m.fieldsRead[m.t])
	seconds := math.NaN()
	if !d.number(&seconds) || d.at != len(d.rec) || !(seconds >= 0 && seconds < float64(math.MaxInt64-m.start)/float64(time.Second)) {
		return 0
	}
	return m.start + int64(math.Round(seconds*1e6))*int64(time.Microsecond)
}

// field makes text the record to read from.
func (d *decoder) field(text []byte) {
	d.rec, d.at, d.depth = bytes.TrimSpace(text), 0, 0
}
