// Package e2e tests the built binary against real servers: an Apache Kafka broker, Prometheus and Alertmanager, fed by
// scripted policies in Gymnasium environments. Its tests need the build tag e2e; `make test` runs them.
package e2e
