package main

import (
	"fmt"
	"io"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// refusalsShown is how many refused records are named on the standard error output; the summary counts all.
const refusalsShown = 10

// refusals names the first refused records of recorded telemetry.
type refusals struct {
	out   io.Writer
	named int
}

func (r *refusals) refuse(e *ingest.RecordError, _ []byte) {
	if r.named++; r.named <= refusalsShown {
		_, _ = fmt.Fprintf(r.out, "rewardwatch: refused: %v\n", e)
	}
}
