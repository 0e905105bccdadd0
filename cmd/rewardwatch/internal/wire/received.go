package wire

import (
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/receive"
)

// Received is the answer to a batch of telemetry.
type Received struct {
	Accepted int             `json:"accepted"`
	Refused  int             `json:"refused"`
	Refusals []RefusedRecord `json:"refusals"` // the first 100
}

// RefusedRecord is a record of a batch that is not telemetry.
type RefusedRecord struct {
	Index   int           `json:"index"` // in the batch, from 0
	Reason  ingest.Reason `json:"reason"`
	Column  int           `json:"column"` // byte of the record, from 1; 0 if the error has no single position
	Message string        `json:"message"`
}

// ReceivedOf returns the JSON of a result.
func ReceivedOf(r receive.Result) Received {
	out := Received{Accepted: r.Accepted, Refused: r.Refused, Refusals: make([]RefusedRecord, len(r.Refusals))}
	for i, f := range r.Refusals {
		out.Refusals[i] = RefusedRecord{Index: f.Index, Reason: f.Error.Reason, Column: f.Error.Column, Message: f.Error.Msg}
	}
	return out
}
