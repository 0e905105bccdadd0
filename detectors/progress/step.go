package progress

import "math"

const (
	leastRise     = .1 // minimum length of a rise, as a share of the past
	withinStretch = 16 // positions of a step that are tried within a stretch
)

// IsStep reports whether the values changed at once rather than over time: by least squares, a step fits the past
// better than any rise over at least a tenth of it. For random noise, the result is arbitrary.
func IsStep(past []Point) bool {
	points, total := filled(past)
	step, rise := math.Inf(1), math.Inf(1)
	edges := edgesOf(points)
	for i, start := range edges {
		if i+1 < len(edges) { // a step may lie within a stretch
			for part := range withinStretch {
				at := start + float64(part)/withinStretch*(edges[i+1]-start)
				step = min(step, residualsOf(points, edges, at, at))
			}
		}
		for _, end := range edges[i:] {
			if end-start >= leastRise*total {
				rise = min(rise, residualsOf(points, edges, start, end))
			}
		}
	}
	return step < rise
}

// edgesOf returns the bounds of the stretches, in units.
func edgesOf(points []Point) []float64 {
	edges := make([]float64, len(points)+1)
	for i, p := range points {
		edges[i+1] = edges[i] + p.Units
	}
	return edges
}

// residualsOf returns the residual sum of squares, weighted by units, of a level that rises linearly from start to end. If
// these are equal, it is a step.
func residualsOf(points []Point, edges []float64, start, end float64) float64 {
	total := edges[len(edges)-1]
	var meanX, meanY float64
	risen := make([]float64, len(points))
	for i, p := range points {
		risen[i] = (areaOf(edges[i+1], start, end) - areaOf(edges[i], start, end)) / p.Units
		meanX += p.Units * risen[i] / total
		meanY += p.Units * p.Mean / total
	}
	var xx, xy, yy float64
	for i, p := range points {
		x, y := risen[i]-meanX, p.Mean-meanY
		xx, xy, yy = xx+p.Units*x*x, xy+p.Units*x*y, yy+p.Units*y*y
	}
	if xx == 0 {
		return yy
	}
	return max(0, yy-xy*xy/xx)
}

// areaOf returns the integral up to a unit of a function that rises linearly from 0 at start to 1 at end.
func areaOf(unit, start, end float64) float64 {
	switch {
	case unit <= start:
		return 0
	case unit >= end:
		return (end-start)/2 + unit - end
	default:
		return (unit - start) * (unit - start) / (2 * (end - start))
	}
}
