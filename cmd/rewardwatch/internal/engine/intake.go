package engine

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/intake"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/tenant"
)

type (
	// Intake is the first stage of a partition.
	Intake = intake.Intake
	// IntakeMetrics are the metrics of the first stage, shared by all partitions.
	IntakeMetrics = intake.Metrics
)

// NewIntakeMetrics registers the metrics of the first stage.
func NewIntakeMetrics(reg prometheus.Registerer) *IntakeMetrics { return intake.NewMetrics(reg) }

// NewIntake returns the first stage of a partition, or of a file.
func NewIntake(cfg *Settings, m *IntakeMetrics) *Intake {
	return intake.New(intake.Config{Policy: cfg.Policy, Feedback: cfg.Feedback, Joins: cfg.Joins(), Limits: cfg.divided(), Tenants: cfg.Tenants}, m)
}

// divided returns the limits that are divided among tenants.
func (c *Settings) divided() tenant.Limits {
	return tenant.Limits{Streams: c.Limits.Streams, OpenEpisodes: c.Limits.OpenEpisodes, OpenDecisions: c.Limits.OpenDecisions}
}

// names calls yield with the names of the workers' policies.
func (p *Pipeline) names(yield func(policy string) bool) {
	for _, r := range p.All() {
		if !yield(r.Name) {
			return
		}
	}
}
