package factor

import "math"

// leadUnits is the number of preceding units that choose the component of the first observation.
const leadUnits = 20

// lead returns the score of the component of the first observation that moved most, in the direction of the movement.
// The units before choose the component and the direction, so the expectation is 0 if nothing has moved, although an
// episode has only one start. starts is the number of scores of u that are those of first observations. With fewer than
// two, it returns zero.
func lead(before []Scored, starts int, u *Scored) Scores {
	most, at := float32(0), -1
	for k := 0; starts > 1 && k < starts; k++ {
		sum := float32(0)
		for i := max(0, len(before)-leadUnits); i < len(before); i++ {
			if of := before[i].Mean; len(of) >= starts && of[k] == of[k] {
				sum += of[k]
			}
		}
		if sum*sum > most*most {
			most, at = sum, k
		}
	}
	if at < 0 || len(u.Mean) < starts || u.Mean[at] != u.Mean[at] {
		return Scores{}
	}
	return Scores{N: 1, Mean: math.Copysign(1, float64(most)) * float64(u.Mean[at])}
}

// starts returns the number of components of the first observation that have scores. These are the first scores of an
// episode.
func (m *Model) starts() (n int) {
	for n < len(m.names) && m.names[n].part == partStart {
		n++
	}
	return n
}
