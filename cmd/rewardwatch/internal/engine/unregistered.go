package engine

import "github.com/prometheus/client_golang/prometheus"

// Unregistered is a registerer for metrics that are never scraped.
type Unregistered struct{}

// Register implements prometheus.Registerer.
func (Unregistered) Register(prometheus.Collector) error { return nil }

// MustRegister implements prometheus.Registerer.
func (Unregistered) MustRegister(...prometheus.Collector) {}

// Unregister implements prometheus.Registerer.
func (Unregistered) Unregister(prometheus.Collector) bool { return false }
