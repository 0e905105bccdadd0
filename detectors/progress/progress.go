// Package progress describes the trend of a learning policy's return: whether it rises, stays the same, falls, or
// has collapsed. The trend is only shown: it raises no alarms and takes no part of the budget of false alarms.
package progress

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// State describes the trend of the return.
type State uint8

// The states. Unknown means that there are too few units.
const (
	Unknown State = iota
	Improving
	Plateau
	Regressing
	Collapsed
)

// String returns the name of the state.
func (s State) String() string {
	return [...]string{"unknown", "improving", "plateau", "regressing", "collapsed"}[s]
}

// MarshalText writes the name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

const (
	fewestUnits  = 200 // least units in the past for a state
	fewestPoints = 8   // least stretches in the window
	windowShare  = 4   // the window is the newest fourth of the past
	confidence   = .99 // of the interval
	levelShare   = 20  // levels are means over at least a twentieth of the past
	levelUnits   = 50  // and over at least this many units
	surely       = 3.  // standard errors by which a level must be below half of what was reached
)

// Point is a stretch of consecutive units. Slices of points begin with the oldest.
type Point struct {
	Units    float64 // that have a value
	Mean, SD float64 // of the values
	First    int64   // ordinal of the first unit, with or without a value
}

// Progress is the recent trend of the return.
type Progress struct {
	State State
	Units int64 // of the window; 0 if the state is Unknown
	// Change is the change of the return over the window along a straight line. Its interval contains the real
	// change in 99 of 100 windows, or in 97 if units depend on each other for long.
	Change, Low, High float64
	Level, Best       float64 // mean of the newest units, and the best mean of as many units in a row
}

// Of returns the recent trend of the return.
//
// The line is fitted by least squares to the means of the stretches in the window, weighted by their units. The
// error of its slope comes from the scatter of the means around the line rather than from that of the units within
// stretches, so units may depend on each other. If neighbouring means depend on each other too, the variance is
// multiplied by (1+r)/(1-r), with their correlation r. The interval is Student's, with two degrees of freedom fewer
// than stretches.
//
// The state is Collapsed if the level has lost more than half of what was reached: of the distance between the best
// level
// and the lowest one before it or, if that is more, between the best level and 0. The loss must exceed 3 standard
// errors.
func Of(past []Point) Progress {
	points, total := filled(past)
	w := window(points, total)
	if total < fewestUnits || len(w) < fewestPoints {
		return Progress{}
	}
	p := fit(w)
	l := levelsOf(points, max(levelUnits, total/levelShare))
	p.Level, p.Best = l.now, l.best
	switch {
	case l.lost():
		p.State = Collapsed
	case p.Low > 0:
		p.State = Improving
	case p.High < 0:
		p.State = Regressing
	default:
		p.State = Plateau
	}
	return p
}

// Gain is the change of the return over the whole past.
type Gain struct {
	Units             int64   // 0 if there are too few
	Change, Low, High float64 // by a straight line, with a 99% interval
	SD                float64 // of the return in stretches
}

// GainOf returns the change over the whole past, computed in the same way as that of Of over the newest fourth.
func GainOf(past []Point) Gain {
	points, total := filled(past)
	if total < fewestUnits || len(points) < fewestPoints {
		return Gain{}
	}
	p := fit(points)
	within := 0.
	for _, of := range points {
		within += of.Units * of.SD * of.SD / total
	}
	return Gain{Units: p.Units, Change: p.Change, Low: p.Low, High: p.High, SD: math.Sqrt(within)}
}

// filled returns the stretches with values, and how many values they have.
func filled(past []Point) (points []Point, total float64) {
	for _, p := range past {
		if p.Units > 0 {
			points = append(points, p)
			total += p.Units
		}
	}
	return points, total
}

// window returns the newest stretches: enough of them for a line, and a share of the past.
func window(points []Point, total float64) []Point {
	units := 0.
	for i := len(points) - 1; i >= 0; i-- {
		units += points[i].Units
		if n := len(points) - i; n >= fewestPoints && units >= max(fewestUnits/2, total/windowShare) {
			return points[i:]
		}
	}
	return points
}

// fit fits a line to the points. Slopes are per unit.
func fit(points []Point) Progress {
	var sum, sumX, sumY float64
	at := make([]float64, len(points))
	for i, p := range points {
		at[i] = sum + p.Units/2
		sum += p.Units
		sumX += p.Units * at[i]
		sumY += p.Units * p.Mean
	}
	meanX, meanY := sumX/sum, sumY/sum
	var xx, xy float64
	for i, p := range points {
		xx += p.Units * (at[i] - meanX) * (at[i] - meanX)
		xy += p.Units * (at[i] - meanX) * (p.Mean - meanY)
	}
	slope := xy / xx
	residuals := make([]float64, len(points))
	squares, neighbours := 0., 0.
	for i, p := range points {
		residuals[i] = math.Sqrt(p.Units) * (p.Mean - meanY - slope*(at[i]-meanX))
		squares += residuals[i] * residuals[i]
		if i > 0 {
			neighbours += residuals[i] * residuals[i-1]
		}
	}
	free := float64(len(points) - 2)
	variance := squares / free / xx
	if squares > 0 {
		// Residuals of a line are less correlated than the errors, by about 2 in their number (Kendall's bias).
		r := min(.9, max(0, neighbours/squares+2/float64(len(points))))
		variance *= (1 + r) / (1 - r)
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: free}.Quantile(1 - (1-confidence)/2)
	half := t * math.Sqrt(variance) * sum
	change := slope * sum
	return Progress{Units: int64(sum), Change: change, Low: change - half, High: change + half}
}

// levels are means over the same number of consecutive units.
type levels struct {
	now, best, before float64 // the newest level, the best, and the lowest before the best
	err               float64 // standard error of a level
}

// levelsOf returns the levels over at least the given number of units.
func levelsOf(points []Point, units float64) levels {
	l := levels{best: math.Inf(-1), before: math.Inf(1)}
	lowest := math.Inf(1)
	n := 0.
	for end := range points {
		n = 0
		sum := 0.
		for i := end; i >= 0 && n < units; i-- {
			n += points[i].Units
			sum += points[i].Units * points[i].Mean
		}
		if n < units {
			continue
		}
		l.now = sum / n
		if lowest = min(lowest, l.now); l.now > l.best {
			l.best, l.before = l.now, lowest
		}
	}
	l.err = math.Sqrt(varianceOf(points) / units)
	return l
}

// lost reports whether more than half of what was reached is lost, by 3 standard errors.
func (l *levels) lost() bool {
	reached := max(l.best-l.before, l.best, 0)
	return reached > surely*l.err && l.now+surely*math.Sqrt2*l.err < l.best-reached/2
}

// medianSquare is the median of the square of a normal variable.
const medianSquare = .4549

// varianceOf returns the variance of a unit that the means of neighbouring stretches show, and at least the
// variance within stretches. It therefore includes the effect of dependence between units. It takes the median, so
// that neither a trend nor a fall counts as noise.
func varianceOf(points []Point) float64 {
	within, units := 0., 0.
	var between []float64
	for i, p := range points {
		within += p.Units * p.SD * p.SD
		units += p.Units
		if i > 0 {
			apart := p.Mean - points[i-1].Mean
			between = append(between, apart*apart/(1/p.Units+1/points[i-1].Units))
		}
	}
	if len(between) == 0 {
		return within / units
	}
	slices.Sort(between)
	return max(within/units, between[len(between)/2]/medianSquare)
}
