package protobuf

import (
	"encoding/binary"
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
	"google.golang.org/protobuf/encoding/protowire"
)

// The functions in this file read fields faster if they are in the form that most encoders write: one-byte lengths,
// ASCII strings, and map entries in the order of the previous record. Each begins at the byte d.at, after the tag. For
// any other form, it returns false and has only changed d.at. The functions in wire.go then read the field from its
// beginning, and accept or refuse it.

// quick reads fields up to the first one in a different form.
func (d *decoder) quick(ev *ingest.Event) {
	for start := d.at; d.at+1 < len(d.rec); start = d.at {
		tag := int(d.rec[d.at])
		d.at++
		if tag >= 0x80 { // the second byte of a three-byte tag makes it greater than the tags of all fields
			tag = tag&0x7f | int(d.rec[d.at])<<7
			d.at++
		}
		if !d.quickField(ev, tag) {
			d.at = start
			return
		}
	}
}

// The wire types as they are in tags.
const (
	isVarint  = int(protowire.VarintType)
	isFixed64 = int(protowire.Fixed64Type)
	isBytes   = int(protowire.BytesType)
)

func (d *decoder) quickField(ev *ingest.Event, tag int) bool {
	switch tag {
	case fieldPolicy<<3 | isBytes:
		return d.quickName(fieldPolicy, &ev.Policy)
	case fieldTS<<3 | isFixed64:
		return d.quickTime(&ev.TS)
	case fieldAgentID<<3 | isBytes:
		return d.quickID(&ev.AgentID)
	case fieldEpisodeID<<3 | isBytes:
		return d.quickID(&ev.EpisodeID)
	case fieldStep<<3 | isVarint:
		return d.quickCount(&ev.Step)
	case fieldReward<<3 | isFixed64:
		return d.quickDouble(&ev.Reward, &ev.HasReward)
	case fieldTerminated<<3 | isVarint:
		return d.quickBoolean(&ev.Terminated)
	case fieldTruncated<<3 | isVarint:
		return d.quickBoolean(&ev.Truncated)
	case fieldCategory<<3 | isBytes:
		return d.quickCategory(&ev.Action)
	case fieldEnv<<3 | isBytes:
		return d.quickName(fieldEnv, &ev.Env)
	case fieldPolicyVersion<<3 | isBytes:
		return d.quickName(fieldPolicyVersion, &ev.Versions.Policy)
	case fieldEnvVersion<<3 | isBytes:
		return d.quickName(fieldEnvVersion, &ev.Versions.Env)
	case fieldRewardVersion<<3 | isBytes:
		return d.quickName(fieldRewardVersion, &ev.Versions.Reward)
	case fieldObservation<<3 | isBytes:
		return d.quickObservation(&ev.Observation)
	case fieldComponents<<3 | isBytes:
		return d.quickComponent(fieldComponents, &ev.RewardComponents)
	case fieldOutcomes<<3 | isBytes:
		return d.quickComponent(fieldOutcomes, &ev.Outcomes)
	case fieldLabels<<3 | isBytes:
		return d.quickLabel(ev)
	case fieldActionProb<<3 | isFixed64:
		return d.quickDouble(&ev.ActionProb.P, &ev.ActionProb.Known)
	case fieldNext<<3 | isBytes:
		return d.quickNext()
	case fieldTargetProb<<3 | isFixed64:
		return d.quickDouble(&ev.TargetProb.P, &ev.TargetProb.Known)
	}
	return false
}

func (d *decoder) quickTime(dst *int64) bool {
	if len(d.rec)-d.at < 8 {
		return false
	}
	ns := int64(binary.LittleEndian.Uint64(d.rec[d.at:]))
	if ns < 0 {
		return false
	}
	*dst = ns
	d.at += 8
	return true
}

func (d *decoder) quickDouble(dst *float64, has *bool) bool {
	if len(d.rec)-d.at < 8 {
		return false
	}
	*dst, *has = math.Float64frombits(binary.LittleEndian.Uint64(d.rec[d.at:])), true
	d.at += 8
	return true
}

func (d *decoder) quickBoolean(dst *bool) bool {
	if d.at == len(d.rec) || d.rec[d.at] > 1 {
		return false
	}
	*dst = d.rec[d.at] == 1
	d.at++
	return true
}

// quickCount reads an integer of one or two bytes.
func (d *decoder) quickCount(dst *int64) bool {
	b := d.rec[d.at:]
	switch {
	case len(b) > 0 && b[0] < 0x80:
		*dst = int64(b[0])
		d.at++
		return true
	case len(b) > 1 && b[1] < 0x80:
		*dst = int64(b[0]&0x7f) | int64(b[1])<<7
		d.at += 2
		return true
	}
	return false
}

// quickText reads a string or a message with a one-byte length.
func (d *decoder) quickText() (text []byte, ok bool) {
	b := d.rec[d.at:]
	if len(b) == 0 || b[0] >= 0x80 || int(b[0]) >= len(b) {
		return nil, false
	}
	end := 1 + int(b[0])
	d.at += end
	return b[1:end], true
}

func (d *decoder) quickID(dst *string) bool {
	text, ok := d.quickText()
	if !ok || !plain(text) {
		return false
	}
	*dst = d.arena.Hold(text)
	return true
}

func (d *decoder) quickName(num protowire.Number, dst *string) bool {
	text, ok := d.quickText()
	if !ok {
		return false
	}
	last := &d.last[num]
	if *last != string(text) {
		if !plain(text) {
			return false
		}
		*last = d.names.Get(text)
	}
	*dst = *last
	return true
}

func (d *decoder) quickCategory(a *ingest.Action) bool {
	if !d.quickName(fieldCategory, &a.Category) {
		return false
	}
	a.Kind, a.Scalar, a.Values = ingest.ActionCategory, false, a.Values[:0]
	d.record.action = fieldCategory
	return true
}

func (d *decoder) quickObservation(dst *[]ingest.Value) bool {
	if d.record.observed == fieldArray || !d.quickComponent(fieldObservation, dst) {
		return false
	}
	d.record.observed = fieldObservation
	return true
}

func (d *decoder) quickNext() bool {
	r := &d.record
	if r.next == fieldNextArray || !d.quickEntry(fieldNext, &r.nextValues) {
		return false
	}
	r.next = fieldNext
	return true
}

// quickComponent reads an entry of a map of numbers that count towards MaxValues.
func (d *decoder) quickComponent(num protowire.Number, dst *[]ingest.Value) bool {
	if d.values == ingest.MaxValues || !d.quickEntry(num, dst) {
		return false
	}
	d.values++
	return true
}

// quickEntry reads an entry of a map of numbers whose name is the same as that of the entry at this position in the
// previous record. The name is therefore known to be unique.
func (d *decoder) quickEntry(num protowire.Number, dst *[]ingest.Value) bool {
	entry, ok := d.quickText()
	at := len(*dst)
	if !ok || at >= len(d.order[num]) {
		return false
	}
	name := d.order[num][at]
	x, ok := after(entry, name, byte(fieldEntryValue<<3|isFixed64))
	if !ok || len(x) != 8 {
		return false
	}
	*dst = append(*dst, ingest.Value{Name: name, X: math.Float64frombits(binary.LittleEndian.Uint64(x))})
	return true
}

// quickLabel reads a label whose name is the same as that of the label at this position in the previous record.
func (d *decoder) quickLabel(ev *ingest.Event) bool {
	entry, ok := d.quickText()
	at := len(ev.Labels)
	if !ok || at >= len(d.order[fieldLabels]) {
		return false
	}
	name := d.order[fieldLabels][at]
	value, ok := after(entry, name, byte(fieldEntryValue<<3|isBytes))
	if !ok || len(value) == 0 || int(value[0]) != len(value)-1 || !plain(value[1:]) {
		return false
	}
	ev.Labels = append(ev.Labels, ingest.Label{Name: name, Value: d.arena.Hold(value[1:])})
	return true
}

// after returns the bytes after the name and the tag of the value in a map entry. The entry must have at most 127
// bytes.
func after(entry []byte, name string, tag byte) (value []byte, ok bool) {
	n := 2 + len(name)
	if len(entry) <= n || entry[0] != fieldEntryKey<<3|byte(isBytes) || int(entry[1]) != len(name) || string(entry[2:n]) != name || entry[n] != tag {
		return nil, false
	}
	return entry[n+1:], true
}

// plain reports whether text is ASCII without NUL. It examines eight bytes at a time: the subtraction sets the high bit
// of each NUL. A borrow can only set it incorrectly above a NUL.
func plain(text []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; len(text) >= 8; text = text[8:] {
		if w := binary.LittleEndian.Uint64(text); (w|(w-ones))&highs != 0 {
			return false
		}
	}
	for _, c := range text {
		if c == 0 || c >= 0x80 {
			return false
		}
	}
	return true
}
