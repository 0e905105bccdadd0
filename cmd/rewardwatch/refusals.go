package main

import "github.com/rewardwatch/rewardwatch/ingest"

// refusalsShown is how many refused records are named on the standard error output; the summary counts all.
const refusalsShown = 10

// refusals names the first refused records of recorded telemetry.
type refusals struct {
	console *console
	named   int
}

func (r *refusals) refuse(e *ingest.RecordError, _ []byte) {
	if r.named++; r.named <= refusalsShown {
		r.console.tell("rewardwatch: refused: %v", e)
	}
}
