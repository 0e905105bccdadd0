package apitest

import (
	"context"
	"fmt"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
)

// FixedOrders records its calls and returns what a test has set.
type FixedOrders struct {
	Asked    []string
	Decision alerts.Decision
	Incident alerts.Incident
	Group    finding.GroupSummary
	Samples  map[string][]finding.QuantitySample
	Err      error
}

// Accept records the order.
func (o *FixedOrders) Accept(_ context.Context, id string, d alerts.Decision) (alerts.Incident, error) {
	o.Asked, o.Decision = append(o.Asked, "accept "+id), d
	return o.Incident, o.Err
}

// Mute records the order.
func (o *FixedOrders) Mute(_ context.Context, id string, d alerts.Decision) (alerts.Incident, error) {
	o.Asked, o.Decision = append(o.Asked, "mute "+id), d
	return o.Incident, o.Err
}

// Comment records the order.
func (o *FixedOrders) Comment(_ context.Context, id string, d alerts.Decision) (alerts.Incident, error) {
	o.Asked, o.Decision = append(o.Asked, "comment "+id), d
	return o.Incident, o.Err
}

// Promote records the order.
func (o *FixedOrders) Promote(_ context.Context, id string, d alerts.Decision) (*finding.GroupSummary, error) {
	o.Asked, o.Decision = append(o.Asked, "promote "+id), d
	return &o.Group, o.Err
}

// Reset records the order.
func (o *FixedOrders) Reset(_ context.Context, policy string, labels map[string]string, d alerts.Decision) (*finding.GroupSummary, error) {
	o.Asked, o.Decision = append(o.Asked, fmt.Sprint("reset ", policy, labels)), d
	return &o.Group, o.Err
}

// Forget records the order.
func (o *FixedOrders) Forget(_ context.Context, policy string, d alerts.Decision) (bool, error) {
	o.Asked, o.Decision = append(o.Asked, "forget "+policy), d
	return false, o.Err
}

// Release records the order.
func (o *FixedOrders) Release(_ context.Context, policy, name string, d alerts.Decision) (*guard.Summary, error) {
	o.Asked, o.Decision = append(o.Asked, "release "+policy+" "+name), d
	return &guard.Summary{Policy: policy}, o.Err
}

// Sample returns what a test has set.
func (o *FixedOrders) Sample(_ context.Context, id string) ([]finding.QuantitySample, error) {
	sample, known := o.Samples[id]
	if !known {
		return nil, engine.ErrUnknownBaseline
	}
	return sample, nil
}

// SomeToken is a token that is long enough.
const SomeToken = "correct horse battery staple, thrice"

// SomeSamples returns two baselines. The second has moved up by 1 and has another signal.
func SomeSamples() map[string][]finding.QuantitySample {
	one, two := make([]float64, 100), make([]float64, 100)
	for i := range one {
		one[i], two[i] = float64(i)/10, float64(i)/10+1
	}
	return map[string][]finding.QuantitySample{
		"0123456789abcdef": {{Signal: "return", Quantity: "return", Values: one}},
		"fedcba9876543210": {{Signal: "action", Quantity: "mean", Values: one}, {Signal: "return", Quantity: "return", Values: two}},
	}
}
