package fault

import "math"

// nonFiniteShare is the share of NaN or infinite values above which they are a fault.
const nonFiniteShare = .01

// nonFinite is the rule for values that are NaN or infinite. They are a fault if they make up more than
// nonFiniteShare of the values of the last faultUnits units, including this one, and occur in at least two units,
// so that a single wrong value is not a fault. Healthy telemetry has no such values, so there is nothing to learn.
type nonFinite struct {
	Bad, Total [faultUnits]uint32 // by unit, rings
	Next       int
}

// holds adds the numbers of bad and of all values of a unit, and reports whether the rule applies at it.
func (r *nonFinite) holds(bad, total int64) bool {
	r.Bad[r.Next], r.Total[r.Next] = few(bad), few(total)
	r.Next = (r.Next + 1) % faultUnits
	if bad == 0 {
		return false
	}
	var allBad, all int64
	units := 0
	for i := range r.Bad {
		allBad += int64(r.Bad[i])
		all += int64(r.Total[i])
		if r.Bad[i] > 0 {
			units++
		}
	}
	return units >= 2 && float64(allBad) > nonFiniteShare*float64(all)
}

// few returns the number of values of a unit in four bytes, which is enough for every unit.
func few(n int64) uint32 { return uint32(min(n, math.MaxUint32)) }
