package alerts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// partPrefix begins the names of a tracker's parts of a checkpoint, one per group. Existing checkpoints depend on it.
const partPrefix = "book/"

// Changed reports whether anything has changed since the tracker was created, resumed or last Saved.
func (b *Tracker) Changed() bool {
	return slices.ContainsFunc(b.order, func(g *groupTracker) bool { return g.changed })
}

// Changes returns the parts of the tracker's checkpoint that have changed since it was created, resumed or last Saved.
func (b *Tracker) Changes() (ingest.Parts, error) {
	parts := ingest.Parts{}
	for i, g := range b.order {
		if !g.changed {
			continue
		}
		part, err := groupFormat.Encode(g.wire())
		if err != nil {
			return nil, fmt.Errorf("encode alarms: %w", err)
		}
		parts[partPrefix+strconv.Itoa(i)] = part
	}
	return parts, nil
}

// Saved marks what Changes last returned as durable.
func (b *Tracker) Saved() {
	for _, g := range b.order {
		g.changed = false
	}
}

// Lost marks what was saved as unreliable: Changes returns all parts until the next Saved.
func (b *Tracker) Lost() {
	for _, g := range b.order {
		g.changed = true
	}
}

// Resume reads the parts of a checkpoint into a new tracker. It skips parts that do not belong to a tracker. After an
// error the tracker is unusable.
func (b *Tracker) Resume(parts ingest.Parts) error {
	count := 0
	for part := range parts {
		if strings.HasPrefix(part, partPrefix) {
			count++
		}
	}
	for i := range count {
		part := partPrefix + strconv.Itoa(i)
		g, err := resumeGroup(parts[part])
		if err != nil {
			return fmt.Errorf("read alarms: part %s: %w", part, err)
		}
		b.add(g)
	}
	return nil
}

func resumeGroup(part []byte) (*groupTracker, error) {
	wire, err := groupFormat.Decode(part)
	if err != nil {
		return nil, err
	}
	return wire.live(), nil
}
