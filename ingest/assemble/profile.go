package assemble

import "slices"

// profileSize is the maximum number of segments of a profile.
const profileSize = 32

// profile describes the course of a sequence by its means over segments of equal length, in order. Segments begin as
// single values. When there are profileSize segments, neighboring ones are joined and their length doubles. The same
// sequence always produces the same profile.
type profile struct {
	Sums  []float64 // of the complete segments
	Steps int64     // values per segment
	Sum   float64   // of the incomplete segment
	Held  int64     // number of values in it, less than Steps
}

func (p *profile) reset() { *p = profile{Sums: p.Sums[:0], Steps: 1} }

func (p *profile) add(x float64) {
	p.Sum += x
	if p.Held++; p.Held < p.Steps {
		return
	}
	if len(p.Sums) == profileSize {
		p.join() // the segment is now the first half of a longer one
		return
	}
	p.Sums = append(p.Sums, p.Sum)
	p.Sum, p.Held = 0, 0
}

func (p *profile) join() {
	for i := range profileSize / 2 {
		p.Sums[i] = p.Sums[2*i] + p.Sums[2*i+1]
	}
	p.Sums = p.Sums[:profileSize/2]
	p.Steps *= 2
}

// appendMeans appends the means of the complete segments.
func (p *profile) appendMeans(out []float32) []float32 {
	out = slices.Grow(out, len(p.Sums))
	for _, sum := range p.Sums {
		out = append(out, float32(sum/float64(p.Steps)))
	}
	return out
}
