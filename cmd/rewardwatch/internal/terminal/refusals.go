package terminal

import "github.com/rewardwatch/rewardwatch/ingest"

// refusalsShown is the maximum number of refused records that are listed on standard error. The summary counts all.
const refusalsShown = 10

// Refusals lists the first refused records of recorded telemetry.
type Refusals struct {
	Console *Console
	named   int
}

// Refuse prints a refused record if it is one of the first.
func (r *Refusals) Refuse(e *ingest.RecordError, _ []byte) {
	if r.named++; r.named <= refusalsShown {
		r.Console.Tell("rewardwatch: rejected: %v", e)
	}
}
