package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
)

func baselineID(b *wire.Baseline) string {
	if b.ID == nil {
		return ""
	}
	return *b.ID
}

// baselineState describes how reliable a baseline is.
func baselineState(b *wire.Baseline) string {
	switch {
	case b.EndedAt != nil:
		return "ended"
	case b.ID == nil:
		return "warming up"
	case b.Provisional:
		return "provisional"
	case b.Promoted != nil:
		return "promoted"
	}
	return "accepted"
}

// warmupText describes the progress of collecting the next baseline.
func warmupText(b *wire.Baseline) string {
	unit := b.Promise.UnitName().Many()
	var parts []string
	if w := b.Warmup; w != nil {
		parts = append(parts, fmt.Sprintf("%d of %d %s", w.Units, w.Of, unit))
	}
	if n := b.Next; n != nil {
		parts = append(parts, fmt.Sprintf("%d of %d %s of policy_version %s", n.Units, n.Of, unit, n.PolicyVersion))
	}
	return strings.Join(parts, "; ")
}

func timeText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return words.Stamp(*t)
}
