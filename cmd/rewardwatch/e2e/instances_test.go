//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// instances are the instances of one consumer group, or the only one.
type instances []*service

// samples returns the values of a metric's series with the labels, from all instances that have any.
func (all instances) samples(name string, labels map[string]string) (values []float64, err error) {
	for _, s := range all {
		of, missing := s.samples(name, labels)
		values, err = append(values, of...), errors.Join(err, missing)
	}
	if len(values) > 0 {
		err = nil
	}
	return values, err
}

// largest returns the largest value of a metric's series with the labels.
func (all instances) largest(name string, labels map[string]string) (float64, error) {
	values, err := all.samples(name, labels)
	if err != nil {
		return math.NaN(), err
	}
	return slices.Max(values), nil
}

// only returns the value of the metric's only series with the labels.
func (all instances) only(name string, labels map[string]string) (float64, error) {
	values, err := all.samples(name, labels)
	if err == nil && len(values) != 1 {
		err = fmt.Errorf("%s%v is shown %d times: %v", name, labels, len(values), values)
	}
	if err != nil {
		return math.NaN(), err
	}
	return values[0], nil
}

// caughtUp checks that the instances read the given number of partitions together, and that all of these are read to
// their ends.
func (all instances) caughtUp(partitions int) error {
	assigned := 0.0
	for _, s := range all {
		of, err := s.samples(ingest.MetricPartitions, map[string]string{"kind": "assigned"})
		if err != nil {
			return err
		}
		for _, n := range of {
			assigned += n
		}
	}
	if assigned != float64(partitions) {
		return fmt.Errorf("%g partitions are assigned, and not %d", assigned, partitions)
	}
	lags, err := all.samples(ingest.MetricLagRecords, nil)
	if err == nil && (len(lags) != partitions || slices.Max(lags) != 0) {
		err = fmt.Errorf("of %d partitions these records are left: %v", partitions, lags)
	}
	return err
}

// streams returns what all instances show of their streams, one per line, sorted.
func (all instances) streams() ([]byte, error) {
	var lines [][]byte
	for _, s := range all {
		var answer struct {
			Streams []json.RawMessage `json:"streams"`
		}
		if err := getJSON("http://"+s.address+"/api/v1/streams", &answer); err != nil {
			return nil, err
		}
		for _, line := range answer.Streams {
			lines = append(lines, line)
		}
	}
	slices.SortFunc(lines, bytes.Compare)
	return bytes.Join(lines, []byte("\n")), nil
}

// incidents returns the incidents of all instances.
func (all instances) incidents() ([]incident, error) {
	var list []incident
	for _, s := range all {
		of, err := s.incidents()
		if err != nil {
			return nil, err
		}
		list = append(list, of...)
	}
	return list, nil
}

// late returns the number of units that were judged out of order since the test began.
func (all instances) late() float64 {
	sum := 0.0
	for _, s := range all {
		sum += s.late
		if s.process != nil {
			s.life.look()
			sum += s.life.seen()
		}
	}
	return sum
}
