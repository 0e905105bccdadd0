package propose

import (
	"encoding/json"
	"slices"
)

// Thresholds for deciding whether successive records of an agent are steps of a continuing task.
const (
	leastRecords = 100
	leastNumbers = 3  // fewer are not conclusive
	mostNumbers  = 64 // columns that are compared
	mostAgents   = 16 // text columns that are tried as the agent
	mostChoices  = 20 // distinct values of a numeric action
	mostKinds    = 10 // distinct values of a label that looks like an agent

	goesOnFrom    = .8 // autocorrelation above which numbers continue those of the previous record
	rewardGoesOn  = .5
	standsAlone   = .3 // autocorrelation below which numbers are independent of the previous record
	rewardIsAlone = .2
)

// column contains the numbers at a place, in the order of the records.
type column struct {
	records []int32 // indices of the records that have a number
	x       []float64
	reward  bool
}

// columns returns the numbers of the records, except times and record numbers.
func (f *finder) columns() (all []column) {
	reward, _ := f.placeOf("reward")
	for _, p := range f.outer.order {
		counts := p.upwards*20 > p.n*19 && len(p.values)*2 > min(p.n, maxDistinct)
		if k := p.kind(); k != isNumber && k != isTruth || len(p.values) < 2 || counts || len(all) == mostNumbers {
			continue
		}
		c := column{reward: p == reward}
		for i, r := range f.records {
			if x, ok := numberOf(at(r, p.names)); ok {
				c.records, c.x = append(c.records, int32(i)), append(c.x, x)
			}
		}
		all = append(all, c)
	}
	return all
}

// agentsAt numbers the agents of the records by the text at a place. If p is nil, there is one agent.
func (f *finder) agentsAt(p *place) []int32 {
	numbers, of := map[string]int32{}, make([]int32, len(f.records))
	if p == nil {
		return of
	}
	for i, r := range f.records {
		id, _ := at(r, p.names).(string)
		if _, known := numbers[id]; !known {
			numbers[id] = int32(len(numbers))
		}
		of[i] = numbers[id]
	}
	return of
}

// goesOn reports whether the records are steps of agents whose task never ends: the reward and most of the other
// numbers are close to those of the agent's previous record. Independent decisions also have some such numbers, such as
// the hour. agent is the text that identifies the agents, or nil if there is one agent. percent is the percentage of
// such numbers.
func (f *finder) goesOn() (agent *place, percent int, yes bool) {
	if len(f.records) < leastRecords || f.uniqueText() != nil {
		return nil, 0, false
	}
	columns := f.columns()
	percent, yes = carriedOver(columns, f.agentsAt(nil))
	tried := 0
	for _, p := range f.outer.order {
		if p.kind() != isText || p.times > 0 || f.taken(p) || len(p.values) < 2 || len(p.values)*fewSteps > len(f.records) || tried == mostAgents {
			continue
		}
		tried++
		if share, goesOn := carriedOver(columns, f.agentsAt(p)); goesOn && (!yes || share > percent) {
			agent, percent, yes = p, share, true
		}
	}
	return agent, percent, yes
}

// carriedOver returns the percentage of columns whose numbers continue those of the previous record, and whether they
// show that the task continues.
func carriedOver(columns []column, agents []int32) (percent int, yes bool) {
	near, reward := 0, false
	for i := range columns {
		r := columns[i].autocorrelation(agents)
		if r > goesOnFrom {
			near++
		}
		reward = reward || columns[i].reward && r > rewardGoesOn
	}
	return 100 * near / max(1, len(columns)), reward && near >= 2 && 2*near > len(columns)
}

// standAlone reports whether the records of an agent are separate decisions: neither the reward nor most of the other
// numbers depend on the previous record.
func (f *finder) standAlone(agent *place) bool {
	columns := f.columns()
	if len(f.records) < leastRecords || len(columns) < leastNumbers {
		return false
	}
	agents, alone := f.agentsAt(agent), 0
	for i := range columns {
		r := columns[i].autocorrelation(agents)
		if columns[i].reward && r > rewardIsAlone {
			return false
		}
		if r < standsAlone {
			alone++
		}
	}
	return 2*alone > len(columns)
}

// autocorrelation returns the lag-1 autocorrelation within the records of each agent, corrected for the bias of short
// series (Kendall, Biometrika 1954). It returns 0 for constants.
func (c *column) autocorrelation(agents []int32) float64 {
	series := make([]moments, slices.Max(agents)+1)
	for i, record := range c.records {
		series[agents[record]].add(c.x[i])
	}
	covariance, variance, n := 0., 0., 0.
	for i := range series {
		if s := &series[i]; s.n > 1 {
			products, squares := s.sums()
			covariance, variance, n = covariance+products, variance+squares, n+1
		}
	}
	if variance == 0 {
		return 0
	}
	r := covariance / variance
	return r + (1+3*r)*n/float64(len(c.records))
}

// numberOf returns a number, or 0 or 1 for a boolean.
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

// moments are sums over a series of numbers. They are relative to the first number, so large numbers do not lose
// precision.
type moments struct {
	origin, last, n      float64
	sum, square, product float64
}

func (m *moments) add(x float64) {
	if m.n == 0 {
		m.origin = x
	}
	x -= m.origin
	if m.n > 0 {
		m.product += m.last * x
	}
	m.n, m.last, m.sum, m.square = m.n+1, x, m.sum+x, m.square+x*x
}

// sums returns the sum of the products of neighbors and the sum of squares, both about the mean.
func (m *moments) sums() (products, squares float64) {
	mean := m.sum / m.n
	return m.product - (m.n-1)*mean*mean, max(0, m.square-m.n*mean*mean)
}
