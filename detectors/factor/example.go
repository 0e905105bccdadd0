package factor

import (
	"math"
	"strconv"
	"strings"
)

// leastCompared is the minimum number of steps for an example.
const leastCompared = 30

// examples returns the clearest example for each factor that has moved.
func (m *Model) examples(v *Verdict, s *Signs) []Example {
	var out []Example
	for f := range Factors {
		if !v.Factors[f].Moved {
			continue
		}
		if e, found := m.example(v.Factors[f].Foremost, s, &m.baseline.signs); found {
			out = append(out, e)
		}
	}
	return out
}

// example returns the example for the foremost coordinate of a factor: the coordinate itself if it is a number; for
// categories, the one whose share differs most from what the law predicts.
func (m *Model) example(foremost Shift, s, base *Signs) (best Example, found bool) {
	of := foremost.Coordinate.part
	if of == partPreference {
		of = partPolicy
	}
	at, most := 0, 0.
	for i := range m.regressions {
		r := &m.regressions[i]
		for k := range r.q {
			if r.part == of && r.shows(k, foremost.Coordinate.Index) {
				e := Example{
					Factor: foremost.Coordinate.Factor, Name: m.nameOf(r.part, k), Share: r.categories || m.isLabel(r.part, k),
					Otherwise: foremost.Spread && !r.categories,
				}
				if enough := e.compare(s.mean(at+k), base.mean(at+k)); !enough && !e.Otherwise {
					continue
				}
				if by := math.Abs(e.Actual - e.Expected); !found || by > most {
					best, most, found = e, by, true
				}
			}
		}
		at += r.q
	}
	return best, found
}

// shows reports whether the k-th number of a part can be the example of one of its coordinates. For the ending of
// episodes, only the share that end can.
func (r *regression) shows(k, coordinate int) bool {
	switch {
	case !r.categories:
		return k == coordinate
	case r.part == partEnding:
		return k == 1
	default:
		return true
	}
}

// mean returns the sums for a number; zeros if there are none.
func (s *Signs) mean(at int) Mean {
	if at < len(s.Means) {
		return s.Means[at]
	}
	return Mean{}
}

// compare sets the actual value, and the value that the law predicts, corrected by its error on the baseline. It
// reports whether there are enough steps.
func (e *Example) compare(now, then Mean) (enough bool) {
	if now.N < leastCompared || then.N < leastCompared {
		return false
	}
	e.Expected = float64(now.Expected/now.N + (then.Actual-then.Expected)/then.N)
	e.Actual = float64(now.Actual / now.N)
	if e.Share {
		e.Expected = min(1, max(0, e.Expected))
	}
	return true
}

// isLabel reports whether a number that a part predicts is the share of one value of a label, at the start of episodes.
func (m *Model) isLabel(p part, k int) bool {
	return p == partStart && strings.HasPrefix(m.Vocabulary.Names[k], labelMark)
}

// nameOf returns the name of the k-th number that a part predicts; empty if it needs none.
func (m *Model) nameOf(p part, k int) string {
	switch {
	case p == partStart || p == partChange:
		return strings.TrimPrefix(m.Vocabulary.Names[k], labelMark)
	case p == partPolicy && m.Vocabulary.Numbers == 0:
		return m.Vocabulary.Categories[k]
	case p == partPolicy && m.Vocabulary.Numbers > 1:
		return strconv.Itoa(k)
	}
	return ""
}
