// Package detectors holds the statistics: sequential tests against a frozen baseline, and nothing else. It has no I/O,
// no clock, no logger and no metrics.
//
// A baseline is a sample of m units of one quantity, such as the return of 500 finished episodes. Prepare a test from
// it, arm it with the false alarm rate that it may spend, and pass it one value per unit. A score of 1 means that the
// test has reached its threshold.
package detectors
