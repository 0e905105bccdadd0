package propose

import "encoding/json"

// Bounds from which records are steps of agents whose task never ends.
const (
	leastRecords     = 100
	closeCorrelation = .8
	leastNumbers     = 3  // fewer do not tell
	mostChoices      = 20 // of an action that is a number
	mostKinds        = 10 // of a label that looks like an agent
)

// goesOn reports whether the records are steps of agents whose task never ends, since most of their numbers hardly differ
// from those of the agent's record before. agent is the text that tells the agents apart, nil if there is one agent, and
// percent the share of such numbers. Independent decisions may have some, such as the hour, but not most.
func (f *finder) goesOn() (agent *place, percent int, yes bool) {
	if len(f.records) < leastRecords {
		return nil, 0, false
	}
	_, percent = f.carriedOver(nil)
	for _, p := range f.outer.order {
		if p.kind() != isText || p.times > 0 || f.taken(p) || len(p.values) < 2 || len(p.values)*fewSteps > len(f.records) {
			continue
		}
		if _, share := f.carriedOver(p); share > percent {
			agent, percent = p, share
		}
	}
	return agent, percent, percent > 50
}

// carriedOver returns how many places have numbers, and the percentage of them at which they hardly differ from one record
// of an agent to the next. It is 0 if fewer than two do.
func (f *finder) carriedOver(agent *place) (all, percent int) {
	near := 0
	for _, p := range f.outer.order {
		counts := p.upwards*20 > p.n*19 && len(p.values)*2 > min(p.n, maxDistinct) // a time, or a number of the record
		if k := p.kind(); k != isNumber && k != isTruth || len(p.values) < 2 || counts {
			continue
		}
		all++
		if f.autocorrelation(p, agent) > closeCorrelation {
			near++
		}
	}
	if near < 2 {
		return all, 0
	}
	return all, 100 * near / all
}

// autocorrelation returns that of lag 1 of the numbers at a place, within the records of each agent.
func (f *finder) autocorrelation(p, agent *place) float64 {
	series := map[string]*moments{}
	for _, r := range f.records {
		x, ok := numberOf(at(r, p.names))
		if !ok {
			continue
		}
		var id string
		if agent != nil {
			id, _ = at(r, agent.names).(string)
		}
		if series[id] == nil {
			series[id] = &moments{origin: x}
		}
		series[id].add(x)
	}
	covariance, variance := 0., 0.
	for _, s := range series {
		c, v := s.sums()
		covariance, variance = covariance+c, variance+v
	}
	if variance == 0 {
		return 0
	}
	return covariance / variance
}

// numberOf returns a number, or 0 and 1 for a boolean.
func numberOf(value any) (x float64, ok bool) {
	switch v := value.(type) {
	case json.Number:
		x, err := v.Float64()
		return x, err == nil
	case bool:
		if v {
			x = 1
		}
		return x, true
	}
	return 0, false
}

// moments are sums of a series of numbers, from the first one, so that large numbers lose no precision.
type moments struct {
	origin, last, n      float64
	sum, square, product float64
}

func (m *moments) add(x float64) {
	x -= m.origin
	if m.n > 0 {
		m.product += m.last * x
	}
	m.n, m.last, m.sum, m.square = m.n+1, x, m.sum+x, m.square+x*x
}

// sums returns the sums of the products of neighbors, and of the squares, about the mean.
func (m *moments) sums() (products, squares float64) {
	mean := m.sum / m.n
	return m.product - (m.n-1)*mean*mean, max(0, m.square-m.n*mean*mean)
}
