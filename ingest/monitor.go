package ingest

import "bytes"

// monitor reads the lines of a monitor.csv of Stable-Baselines3: #{header in JSON}, the names of the columns, and a row
// an episode. The header may come again, where files were put together. A row has the return r and the length l; other
// columns are not looked at, t among them: it counts seconds from a start that no clock is set by.
type monitor struct {
	fixedPolicy string // "" for the header's env_id

	headed   bool // a header was seen, good or bad
	named    bool // and the names of its columns
	policy   string
	unusable fault // why rows are refused, with an empty reason where they are not

	columns    int // how many there are
	r, l       int // and where r and l stand
	fieldsRead [][]byte
}

// heading reads the line where it is not a row. It leaves d.fault where the line is refused.
func (m *monitor) heading(d *Decoder, line []byte) (heading, ok bool) {
	switch {
	case line[0] == '#' || !m.headed:
		return true, m.header(d, line)
	case !m.named:
		return true, m.names(d, line)
	}
	return false, true
}

func (m *monitor) header(d *Decoder, line []byte) bool {
	m.headed, m.named, m.policy, m.unusable = true, false, m.fixedPolicy, fault{}
	envID, ok := envID(d, line[1:])
	switch {
	case m.policy != "":
	case !ok:
		m.unusable = fault{ReasonBadHeader, nowhere, "the header above names no env_id, as it cannot be read"}
	case envID == "":
		m.unusable = fault{ReasonMissingPolicy, nowhere, "the header above has no env_id, and no other policy is given"}
	default:
		m.policy = envID
	}
	return ok || d.fail(ReasonBadHeader, d.fault.at+1, d.fault.msg)
}

// envID reads the header's object.
func envID(d *Decoder, object []byte) (id string, ok bool) {
	d.rec, d.at, d.depth = object, 0, 0
	d.space()
	if d.peek() != '{' {
		return "", d.expected("an object")
	}
	if !d.enter() {
		return "", false
	}
	for first := true; ; first = false {
		more, ok := d.next(first, '}')
		if !more {
			return id, ok && d.end()
		}
		key, ok := d.key()
		switch {
		case !ok:
			return "", false
		case d.null():
		case string(key) == "env_id":
			ok = d.name(&id)
		default:
			ok = d.skip()
		}
		if !ok {
			return "", false
		}
	}
}

// names finds the columns r and l.
func (m *monitor) names(d *Decoder, line []byte) bool {
	m.named, m.r, m.l = true, -1, -1
	m.cut(line, MaxValues)
	m.columns = len(m.fieldsRead)
	for i, name := range m.fieldsRead {
		switch string(bytes.Trim(name, "\" ")) {
		case "r":
			m.r = i
		case "l":
			m.l = i
		}
	}
	if m.r >= 0 && m.l >= 0 && m.columns <= MaxValues {
		return true
	}
	m.unusable = fault{ReasonBadHeader, nowhere, "the names of the columns above cannot be used"}
	return d.fail(ReasonBadHeader, nowhere, "the columns must be named, r and l among them")
}

// cut cuts a CSV row into its fields as they are written, up to one more than limit. A quote that comes twice inside
// quotes ends and begins them, which gives the same.
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
func (m *monitor) row(d *Decoder, ev *Event, row []byte) bool {
	if m.unusable.reason != "" {
		d.fault = m.unusable
		return false
	}
	m.cut(row, m.columns)
	if len(m.fieldsRead) != m.columns {
		return d.fail(ReasonWrongColumns, nowhere, "not as many columns as the header names")
	}
	ev.Policy, ev.HasEpisode = m.policy, true
	d.field(m.fieldsRead[m.r])
	if !d.number(&ev.Return) || d.at != len(d.rec) {
		return d.fail(ReasonWrongType, nowhere, "r is not a number")
	}
	d.field(m.fieldsRead[m.l])
	if !d.count(&ev.Length) && d.fault.reason == ReasonOutOfRange {
		return d.fail(ReasonOutOfRange, nowhere, "l does not lie between 0 and 2^63-1")
	}
	if ev.Length < 0 || d.at != len(d.rec) {
		return d.fail(ReasonWrongType, nowhere, "l is not a whole number")
	}
	return true
}

// field makes a field the record to read from.
func (d *Decoder) field(text []byte) {
	d.rec, d.at, d.depth = bytes.TrimSpace(text), 0, 0
}
