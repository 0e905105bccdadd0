package telemetry

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// field is the use of a value in a template.
type field uint8

// The fields: members of a record, the parts of members that have several, and values that are not part of the event.
const (
	unknown field = iota
	ts
	timeInUnit // from a mapping
	policy
	env
	policyVersion
	envVersion
	rewardVersion
	labels
	agentID
	episodeID
	stepCount
	action
	terminated
	truncated
	episode
	episodeLength
	passedText
	passedTruth

	// Numbers, which may have any magnitude.
	reward
	actionProb
	targetProb
	episodeReturn
	rewardComponents
	observations // members of an object, or one number
	observed     // elements of an array
	outcomes
	actionElement // of an array
	nextObservation
	passedNumber
)

// fieldOf returns the field for a member of the record.
func fieldOf(key []byte) field {
	switch string(key) {
	case "ts":
		return ts
	case "policy":
		return policy
	case "env":
		return env
	case "policy_version":
		return policyVersion
	case "env_version":
		return envVersion
	case "reward_version":
		return rewardVersion
	case "labels":
		return labels
	case "agent_id":
		return agentID
	case "episode_id":
		return episodeID
	case "step":
		return stepCount
	case "action":
		return action
	case "reward":
		return reward
	case "reward_components":
		return rewardComponents
	case "observation":
		return observations
	case "outcomes":
		return outcomes
	case "terminated":
		return terminated
	case "truncated":
		return truncated
	case "episode":
		return episode
	case "action_prob":
		return actionProb
	case "target_prob":
		return targetProb
	case "next_observation":
		return nextObservation
	}
	return unknown
}

// listed reports whether the index of a value of this field is its position in a list.
func (f field) listed() bool {
	switch f {
	case labels, rewardComponents, observations, observed, outcomes, actionElement:
		return true
	}
	return false
}

// constant reports whether values of this field are assumed to repeat until a record differs.
func (f field) constant() bool {
	switch f {
	case policy, env, policyVersion, envVersion, rewardVersion, labels, agentID, episodeID, terminated, truncated, passedText, passedTruth:
		return true
	}
	return false
}

// keep stores the event's value in a value of a template.
func (v *noted) keep(ev *ingest.Event) {
	switch v.field {
	case policy:
		v.text = ev.Policy
	case env:
		v.text = ev.Env
	case policyVersion:
		v.text = ev.Versions.Policy
	case envVersion:
		v.text = ev.Versions.Env
	case rewardVersion:
		v.text = ev.Versions.Reward
	case agentID:
		v.text = strings.Clone(ev.AgentID)
	case episodeID:
		v.text = strings.Clone(ev.EpisodeID)
	case terminated:
		v.truth = ev.Terminated
	case truncated:
		v.truth = ev.Truncated
	case labels:
		v.name, v.text = ev.Labels[v.index].Name, strings.Clone(ev.Labels[v.index].Value)
	case rewardComponents:
		v.name = ev.RewardComponents[v.index].Name
	case observations, observed:
		v.name = ev.Observation[v.index].Name
	case outcomes:
		v.name = ev.Outcomes[v.index].Name
	}
}

// set sets a field of the event to a value that repeats.
func (v *noted) set(ev *ingest.Event) {
	switch v.field {
	case policy:
		ev.Policy = v.text
	case env:
		ev.Env = v.text
	case policyVersion:
		ev.Versions.Policy = v.text
	case envVersion:
		ev.Versions.Env = v.text
	case rewardVersion:
		ev.Versions.Reward = v.text
	case agentID:
		ev.AgentID = v.text
	case episodeID:
		ev.EpisodeID = v.text
	case terminated:
		ev.Terminated = v.truth
	case truncated:
		ev.Truncated = v.truth
	case labels:
		ev.Labels = append(ev.Labels[:v.index], ingest.Label{Name: v.name, Value: v.text})
	}
}

// value reads the value of a step, exactly like the decoder. It returns false for anything unexpected.
func (p *predictor) value(d *decoder, ev *ingest.Event, s *step) bool {
	switch s.field {
	case unknown:
		return true // end of the record
	case labels:
		return s.label(d, ev)
	case passedText:
		return d.passText()
	case passedTruth:
		return d.literal("true") || d.literal("false")
	case ts:
		return p.timestamp(d, &ev.TS)
	case timeInUnit:
		return d.quickTimeIn(&ev.TS, s.index)
	case policy:
		return s.interned(d, &ev.Policy) && ev.Policy != "" // required in every event
	case env:
		return s.interned(d, &ev.Env)
	case policyVersion:
		return s.interned(d, &ev.Versions.Policy)
	case envVersion:
		return s.interned(d, &ev.Versions.Env)
	case rewardVersion:
		return s.interned(d, &ev.Versions.Reward)
	case agentID:
		return d.id(&ev.AgentID)
	case episodeID:
		return d.id(&ev.EpisodeID)
	case stepCount:
		return d.quickCount(&ev.Step)
	case action:
		return s.action(d, &ev.Action)
	case terminated:
		return d.boolean(&ev.Terminated)
	case truncated:
		return d.boolean(&ev.Truncated)
	case episodeLength:
		return d.quickCount(&ev.Length)
	}
	return s.number(d, ev)
}

// number reads a number, NaN or an infinity.
func (s *step) number(d *decoder, ev *ingest.Event) bool {
	x, ok := d.quickFloat()
	if !ok && !s.unusual(d, &x) {
		return false
	}
	if s.scale != 0 {
		x *= s.scale
	}
	switch s.field {
	case reward:
		ev.HasReward, ev.Reward = true, x
	case actionProb:
		ev.ActionProb = ingest.Prob{P: x, Known: true}
	case targetProb:
		ev.TargetProb = ingest.Prob{P: x, Known: true}
	case episodeReturn:
		ev.HasEpisode, ev.Return = true, x
	case rewardComponents:
		ev.RewardComponents = append(ev.RewardComponents[:s.index], ingest.Value{Name: s.name, X: x})
	case observations, observed:
		ev.Observation = append(ev.Observation[:s.index], ingest.Value{Name: s.name, X: x})
	case outcomes:
		ev.Outcomes = append(ev.Outcomes[:s.index], ingest.Value{Name: s.name, X: x})
	case actionElement:
		ev.Action.Kind, ev.Action.Values = ingest.ActionNumeric, append(ev.Action.Values[:s.index], x)
	}
	return true
}

// unusual reads a number in one of the less common notations of its field.
func (s *step) unusual(d *decoder, x *float64) bool {
	isNumber, ok := false, false
	switch s.field {
	case reward, actionProb, targetProb, episodeReturn:
		isNumber, ok = d.tryNumber(x)
	case observed, actionElement:
		if d.null() {
			*x = math.NaN()
			return true
		}
		isNumber, ok = d.component(x, true)
	case rewardComponents, observations, outcomes, nextObservation:
		isNumber, ok = d.component(x, true)
	case passedNumber:
		if isNumber = d.atNumeral(); isNumber {
			_, ok = d.numeral()
		}
	}
	return isNumber && ok
}

// label reads the value of a label, and appends it to the list.
func (s *step) label(d *decoder, ev *ingest.Event) bool {
	value, ok := d.labelValue()
	if ok {
		ev.Labels = append(ev.Labels[:s.index], ingest.Label{Name: s.name, Value: value})
	}
	return ok
}

// quickFloat reads a number in a common notation.
func (d *decoder) quickFloat() (x float64, ok bool) {
	q, ok := quickDecimal(d.rec, d.at)
	if !ok || q.mantissa > 1<<53 {
		return 0, false
	}
	d.at = q.end
	return q.float(), true
}

func (d *decoder) quickCount(dst *int64) bool {
	q, ok := quickDecimal(d.rec, d.at)
	if !ok || q.places > 0 || q.negative {
		return d.count(dst)
	}
	*dst, d.at = int64(q.mantissa), q.end
	return true
}

// interned reads an interned string, which is usually the same as in the previous record.
func (s *step) interned(d *decoder, dst *string) bool {
	start := d.at + 1
	end := start + len(s.last)
	if s.last != "" && end < len(d.rec) && d.rec[start-1] == '"' && d.rec[end] == '"' && string(d.rec[start:end]) == s.last {
		*dst, d.at = s.last, end+1
		return true
	}
	if !d.name(dst) {
		return false
	}
	if s.last = ""; len(*dst) == d.at-1-start && d.rec[start-1] == '"' { // an escape sequence is longer than its character
		s.last = *dst
	}
	return true
}

// action reads an action that is not an array.
func (s *step) action(d *decoder, a *ingest.Action) bool {
	switch d.peek() {
	case '[':
		return false // its numbers count towards MaxValues
	case '"':
		*a = ingest.Action{Kind: ingest.ActionCategory, Values: a.Values[:0]}
		return s.interned(d, &a.Category)
	}
	q, ok := quickDecimal(d.rec, d.at)
	if !ok || q.negative || q.places > 0 || q.mantissa >= uint64(len(d.places)) {
		return d.action(a)
	}
	d.at = q.end
	a.Kind, a.Scalar, a.Category = ingest.ActionCategory, true, d.places[q.mantissa]
	a.Values = append(a.Values[:0], float64(q.mantissa))
	return true
}

// passText reads a string that is not part of the event. It returns false for a quoted NaN or infinity, which may be a
// number in an observation.
func (d *decoder) passText() bool {
	if d.peek() != '"' {
		return false
	}
	text, ok := d.str()
	_, isWord := nonFinite(text)
	return ok && !isWord
}

// minute is the start of the last timestamp's minute, in Unix seconds without regard to the time zone.
type minute struct {
	known bool
	text  [len("2006-01-02T15:04:")]byte
	begin int64
}

// timestamp reads a timestamp. Most are in the same minute as the previous one.
func (p *predictor) timestamp(d *decoder, dst *int64) bool {
	if d.peek() != '"' {
		return d.quickUnixTime(dst)
	}
	text, ok := d.str()
	if !ok || len(text) < minTimestamp {
		return false
	}
	if m := &p.minute; !m.known || string(text[:len(m.text)]) != string(m.text[:]) {
		begin, ok := minuteOf(text)
		if !ok {
			return false
		}
		m.known, m.begin = true, begin
		copy(m.text[:], text)
	}
	*dst, ok = withinMinute(p.minute.begin, text, d.zone)
	return ok
}

func (d *decoder) quickUnixTime(dst *int64) bool {
	q, ok := quickDecimal(d.rec, d.at)
	if !ok {
		return d.timestamp(dst)
	}
	n := numeral{text: d.rec[d.at:q.end], negative: q.negative, integer: q.places == 0, exact: true, mantissa: q.mantissa, exp: -q.places}
	d.at = q.end
	*dst, ok = unixNano(&n)
	return ok
}

func (d *decoder) quickTimeIn(dst *int64, exponent int) bool {
	q, ok := quickDecimal(d.rec, d.at)
	if !ok || q.negative || q.places > 0 {
		return d.timeIn(dst, exponent)
	}
	n := numeral{mantissa: q.mantissa}
	d.at = q.end
	*dst, ok = n.nanoseconds(exponent)
	return ok
}

// maxQuickDigits is the maximum number of digits that quickDecimal reads, so that the mantissa cannot overflow.
const maxQuickDigits = 18

// decimal is a number without an exponent.
type decimal struct {
	mantissa uint64
	places   int // number of digits after the decimal point
	end      int // index after the number in its record
	negative bool
}

// float returns the nearest float64. The mantissa must be at most 2^53, so that it is exact.
func (q *decimal) float() float64 {
	x := float64(q.mantissa) / powersOfTen[q.places]
	if q.negative {
		return -x
	}
	return x
}

// quickDecimal parses the number at i, mostly eight digits at a time. It returns false for numbers with more than 18
// digits or an exponent, and for anything that is not a number.
func quickDecimal(b []byte, i int) (q decimal, ok bool) {
	if i < len(b) && b[i] == '-' {
		q.negative = true
		i++
	}
	first := i
	for ; i < len(b) && i < first+4 && '0' <= b[i] && b[i] <= '9'; i++ { // most numbers have few digits before the decimal point
		q.mantissa = q.mantissa*10 + uint64(b[i]-'0')
	}
	if i == first+4 {
		q.mantissa, i = quickDigits(b, i, q.mantissa)
	}
	whole := i - first
	if whole == 0 || whole > 1 && b[first] == '0' {
		return q, false
	}
	if i < len(b) && b[i] == '.' {
		point := i
		q.mantissa, i = quickDigits(b, i+1, q.mantissa)
		if q.places = i - point - 1; q.places == 0 {
			return q, false
		}
	}
	q.end = i
	return q, whole+q.places <= maxQuickDigits && (i == len(b) || b[i]|0x20 != 'e')
}

// quickPowers contains the powers of ten up to 10^8.
var quickPowers = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}

// quickDigits appends the digits that start at i to a mantissa, and returns the index after them. The mantissa
// overflows if there are too many digits.
func quickDigits(b []byte, i int, mantissa uint64) (uint64, int) {
	for i+8 <= len(b) {
		value, digits := eightDigits(binary.LittleEndian.Uint64(b[i:]))
		mantissa, i = mantissa*quickPowers[digits]+value, i+digits
		if digits < 8 {
			return mantissa, i
		}
	}
	for ; i < len(b) && '0' <= b[i] && b[i] <= '9'; i++ {
		mantissa = mantissa*10 + uint64(b[i]-'0')
	}
	return mantissa, i
}

// eightDigits returns the number of digits at the beginning of eight characters, and their value. The first character
// is the lowest byte. An addition can only carry into the next byte from a character that is not a digit, so the lowest
// set bit is correct.
func eightDigits(w uint64) (value uint64, digits int) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	w ^= ones * '0'
	if other := (w + ones*(0x80-10) | w) & highs; other != 0 {
		digits = bits.TrailingZeros64(other) / 8
	} else {
		digits = 8
	}
	w <<= 8 * (8 - digits) // prepend zeros
	w = w*10 + w>>8        // pairs of digits, in every other byte
	w = (w&0x000000ff000000ff)*(100+1_000_000<<32) + (w>>16&0x000000ff000000ff)*(1+10_000<<32)
	return w >> 32, digits
}
