package assemble

// profileSize is the most segments that a profile has.
const profileSize = 32

// profile is the course of a sequence: its means over segments of an equal number of values, in order. Segments begin
// as single values; when there are profileSize of them, neighbours join and their length doubles. The same sequence
// always leaves the same profile.
type profile struct {
	Sums  []float64 // of the whole segments
	Steps int64     // values a segment
	Sum   float64   // of the segment that is not whole yet
	Held  int64     // values in it, fewer than Steps
}

func (p *profile) reset() { *p = profile{Sums: p.Sums[:0], Steps: 1} }

func (p *profile) add(x float64) {
	p.Sum += x
	if p.Held++; p.Held < p.Steps {
		return
	}
	if len(p.Sums) == profileSize {
		p.join() // what was a whole segment is now the first half of one
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

// means gives the means of the whole segments in memory of their own, nil without any.
func (p *profile) means() []float32 {
	if len(p.Sums) == 0 {
		return nil
	}
	out := make([]float32, len(p.Sums))
	for i, sum := range p.Sums {
		out[i] = float32(sum / float64(p.Steps))
	}
	return out
}
