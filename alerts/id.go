package alerts

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// alarmID returns the id of an alarm: the first 16 hexadecimal digits of the SHA-256 of policy, group labels, signal,
// baseline and the key of the unit At, each preceded by its length. Partitions and offsets are left out, so that the
// same events yield the same id from Kafka and from a file.
func alarmID(f finding.Finding) string { return idOf(f.Group, f.Signal, f.Baseline.ID, f.At) }

// FaultID returns the id of a stream's fault. It is derived like the id of an alarm, but from the rule instead of the
// baseline, and from the unit at which the fault began.
func FaultID(g ingest.Group, f StreamFault) string { return idOf(g, f.Signal, f.Rule, f.Since) }

func idOf(g ingest.Group, signal, by string, at finding.UnitRef) string {
	labels := g.Labels()
	b := appendText(nil, g.Policy)
	b = binary.BigEndian.AppendUint64(b, uint64(len(labels)))
	for _, l := range labels {
		b = appendText(appendText(b, l.Name), l.Value)
	}
	b = appendText(appendText(b, signal), by)
	b = binary.BigEndian.AppendUint64(b, uint64(at.Ordinal))
	b = appendText(appendText(b, at.Agent), at.Episode)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// appendText appends a text after its length; without it, "ab","c" and "a","bc" would have the same hash.
func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
}
