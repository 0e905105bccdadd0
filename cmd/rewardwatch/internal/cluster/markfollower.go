package cluster

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
	"github.com/rewardwatch/rewardwatch/ingest/order"
)

// markFollower reads the marks of all telemetry partitions from one partition of the units topic. It serves an instance
// that writes units but judges no policies. It starts at the end of the partition, and reads only while low is called.
type markFollower struct {
	records *ingest.UnitRecords
	log     unitLog
	marks   atomic.Pointer[order.Watermarks] // empty until something is read
	asked   atomic.Bool                      // whether low was called since the last read
	next    int64                            // offset, or unknownOffset to begin at the end
}

const unknownOffset = -1

func newMarkFollower(records *ingest.UnitRecords, log unitLog) *markFollower {
	f := &markFollower{records: records, log: log}
	f.forget()
	return f
}

// low returns the moment before which no unit is missing, according to the marks read so far. It also makes run read
// more marks.
func (f *markFollower) low() order.Moment {
	f.asked.Store(true)
	return f.marks.Load().Low()
}

func (f *markFollower) forget() {
	f.marks.Store(order.NewWatermarks())
	f.next = unknownOffset
}

// run reads until ctx ends.
func (f *markFollower) run(ctx context.Context, partition int, log zerolog.Logger) {
	log = log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Minute})
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(markEvery):
		}
		if !f.asked.Swap(false) {
			f.forget()
			continue
		}
		if err := f.readOn(ctx, partition); err != nil && ctx.Err() == nil {
			log.Warn().Err(err).Msg("failed to read the telemetry progress, retrying")
		}
	}
}

func (f *markFollower) readOn(ctx context.Context, partition int) (err error) {
	if f.next == unknownOffset {
		if f.next, err = f.log.End(ctx, partition); err != nil {
			return err
		}
	}
	end, err := f.log.ReadOn(ctx, partition, f.next, f.next, func(r kafkalog.Record) error {
		if _, mark, err := f.records.Read(r.Value); err == nil && mark != nil { // the reader of the partition reports damaged records
			f.marks.Load().Take(mark)
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.next = end
	return nil
}
