// Package detectors holds the statistics: sequential tests against a frozen baseline, and nothing else. It does no
// I/O and knows no clock, no logger and no metrics.
//
// A baseline is a sample of m units of one quantity, such as the return of 500 finished episodes. Prepare a test from
// it, arm it with the false-alarm rate it may spend, and feed it one value a unit: a score of 1 is its threshold.
package detectors
