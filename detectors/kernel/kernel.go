// Package kernel has the innermost loops of calibrations. On amd64, they are written in assembly, since the compiler does
// not generate instructions that process four numbers at once. Their results are identical to the plain ones: they add
// in the same order, and do not fuse multiplications with additions.
package kernel

import "math"

// Scores holds the scores of eight walks, or the moves that a unit adds to them. Negative scores become 0.
type Scores [8]int64

// plainPassed adds the moves of the given units to the scores, in order. Its result has the bits of all scores on the
// way. Four scores fit in a processor's registers.
func plainPassed(moves []Scores, units []int32, s *Scores) (bits int64) {
	for four := 0; four < len(s); four += 4 {
		of := (*[4]int64)(s[four:])
		s0, s1, s2, s3 := of[0], of[1], of[2], of[3]
		for _, unit := range units {
			by := (*[4]int64)(moves[unit][four:])
			s0 = max(0, s0+by[0])
			s1 = max(0, s1+by[1])
			s2 = max(0, s2+by[2])
			s3 = max(0, s3+by[3])
			bits |= s0 | s1 | s2 | s3
		}
		*of = [4]int64{s0, s1, s2, s3}
	}
	return bits
}

// Slopes is the number of powers in a Term.
const Slopes = 9

// Term holds the numbers of one rank that are summed over a drawn baseline.
type Term struct {
	Own   float64
	Fresh [Slopes]float64
}

// Sums holds, over the terms of a drawn baseline, the sums of their own numbers and of the squares of these, and those
// of their fresh numbers.
type Sums struct {
	First, Second float64
	Fresh         [Slopes]float64
}

// plainSumsOf sums the terms at the given indexes: their own numbers as often as times says, the fresh ones by their
// weight. The sums are in variables of their own so that they stay in registers.
func plainSumsOf(table []Term, at []int32, times, weight []float64) Sums {
	var first, second, s0, s1, s2, s3, s4, s5, s6, s7, s8 float64
	times, weight = times[:len(at)], weight[:len(at)]
	for i, at := range at {
		term, w := &table[at], weight[i]
		e := times[i] * term.Own
		first += e
		second += e * term.Own
		s0 += w * term.Fresh[0]
		s1 += w * term.Fresh[1]
		s2 += w * term.Fresh[2]
		s3 += w * term.Fresh[3]
		s4 += w * term.Fresh[4]
		s5 += w * term.Fresh[5]
		s6 += w * term.Fresh[6]
		s7 += w * term.Fresh[7]
		s8 += w * term.Fresh[8]
	}
	return Sums{first, second, [Slopes]float64{s0, s1, s2, s3, s4, s5, s6, s7, s8}}
}

// Runs is the number of simulated runs of a course that are judged together.
const Runs = 4

// Course describes runs of units of which some have a rare value: the number of units, and two walks. Each must divide
// the logarithms of a run, so that they become the numbers of units before the next rare value. All other numbers are
// integers, so their sums and products are exact.
type Course struct {
	Each, Within float64
	One, Other   Fall
}

// Fall is a walk that a rare value moves by Rare, and any other by Usual, but not below 0. Its height is infinite if
// there is no such walk.
type Fall struct{ Walk, Usual, Rare, Height float64 }

// plainFound returns how many runs have a walk that reaches its height, or -1 if logs are too few to know. logs has the
// first logarithm of each run, then the second of each, and so on.
func plainFound(c *Course, logs []float64) (found int) {
	for run := range Runs {
		at := run
		for left, one, other := c.Within, c.One.Walk, c.Other.Walk; left > 0; at += Runs {
			if at >= len(logs) {
				return -1
			}
			usual := min(math.Trunc(logs[at]/c.Each), left)
			one += usual * c.One.Usual
			other += usual * c.Other.Usual
			if one >= c.One.Height || other >= c.Other.Height {
				found++
				break
			}
			one, other = max(0, one+c.One.Rare), max(0, other+c.Other.Rare)
			left -= usual + 1
		}
	}
	return found
}
