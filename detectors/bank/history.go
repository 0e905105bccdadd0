package bank

import (
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// History returns the history of a group's signals or, for an evicted group, the name of the part of the checkpoint to
// pass to ReadHistory. Only the goroutine that owns the bank may call it.
func (p *Policy) History(key ingest.Group) (past history.Record, part string) {
	g := p.byKey[key]
	if g == nil {
		return past, ""
	}
	if g.away != nil {
		return past, g.part() + runningPart
	}
	return g.History.Record(), ""
}

// ReadHistory reads the history of a group from its part of the checkpoint.
func ReadHistory(part []byte, key ingest.Group) (past history.Record, err error) {
	defer recovered(&err)
	g, err := decodeGroup(part)
	if err != nil || g.Key != key { // the number now belongs to another group
		return past, err
	}
	return g.History.Record(), nil
}
