package receive

import (
	"context"
	"errors"
	"fmt"

	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
	"github.com/rewardwatch/rewardwatch/ingest/locallog"
)

// LocalTopic is the topic name of a local log in metrics, dead letters and checkpoints.
const LocalTopic = "http"

// Local is a Topic with one partition, which is a log on this machine. Records that are appended together are written
// either completely or not at all.
type Local struct{ Log *locallog.Log }

// Partitions implements Topic.
func (Local) Partitions(context.Context) (int, error) { return 1, nil }

// Append implements Topic. The error is ErrBusy while the log cannot accept more records.
func (l Local) Append(ctx context.Context, _ int, records ...kafkalog.Record) error {
	out := make([]locallog.Record, len(records))
	for i, r := range records {
		out[i] = locallog.Record{Key: r.Key, Headers: r.Headers, Value: r.Value}
	}
	_, err := l.Log.Append(ctx, out...)
	if errors.Is(err, locallog.ErrFull) || errors.Is(err, locallog.ErrQueue) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}
