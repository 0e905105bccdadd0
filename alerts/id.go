package alerts

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
)

// alarmID names an alarm: the first 16 hexadecimal digits of the SHA-256 of policy, group labels, signal, baseline and
// the key of the unit At, each with its length before it. Partitions and offsets stay out, so that the same events give
// the same id from Kafka and from a file.
func alarmID(f bank.Finding) string {
	labels := f.Group.Labels()
	b := appendText(nil, f.Group.Policy)
	b = binary.BigEndian.AppendUint64(b, uint64(len(labels)))
	for _, l := range labels {
		b = appendText(appendText(b, l.Name), l.Value)
	}
	b = appendText(appendText(b, f.Signal), f.Baseline.ID)
	b = binary.BigEndian.AppendUint64(b, uint64(f.At.Ordinal))
	b = appendText(appendText(b, f.At.Agent), f.At.Episode)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// appendText writes a text behind its length, or "ab","c" and "a","bc" would hash alike.
func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
}
