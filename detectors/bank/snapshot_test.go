package bank

import (
	"encoding/gob"
	"io"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Snapshot writes all parts together.
func (p *Policy) Snapshot(w io.Writer) error {
	p.Lost()
	parts, _, err := p.Changes()
	if err != nil {
		return err
	}
	return gob.NewEncoder(w).Encode(parts)
}

// Restore reads the output of Snapshot into a new bank.
func (p *Policy) Restore(r io.Reader, now time.Time) error {
	var parts ingest.Parts
	if err := gob.NewDecoder(r).Decode(&parts); err != nil {
		return err
	}
	err := p.Resume(parts, now)
	p.Publish()
	return err
}
