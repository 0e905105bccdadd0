package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// markFollower reads the marks of a partition of the units topic, which has those of all partitions of the telemetry, for an
// instance that writes units and judges no policies. It reads from the end on, while it is asked.
type markFollower struct {
	records *ingest.UnitRecords
	log     unitLog
	marks   atomic.Pointer[watermarks] // empty before anything was read
	asked   atomic.Bool                // since it last read
	next    int64                      // offset, unknownOffset where it is to begin at the end
}

const unknownOffset = -1

func newMarkFollower(records *ingest.UnitRecords, log unitLog) *markFollower {
	f := &markFollower{records: records, log: log}
	f.forget()
	return f
}

// low is the moment before which no unit is missing, by the marks that it has read. It has more of them read.
func (f *markFollower) low() moment {
	f.asked.Store(true)
	return f.marks.Load().low()
}

func (f *markFollower) forget() {
	f.marks.Store(newWatermarks())
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
			log.Warn().Err(err).Msg("Reading how far the telemetry has been read failed, trying again")
		}
	}
}

func (f *markFollower) readOn(ctx context.Context, partition int) (err error) {
	if f.next == unknownOffset {
		if f.next, err = f.log.End(ctx, partition); err != nil {
			return err
		}
	}
	end, err := f.log.ReadOn(ctx, partition, f.next, f.next, func(r ingest.LogRecord) error {
		if _, mark, err := f.records.Read(r.Value); err == nil && mark != nil { // what is damaged its reader tells of
			f.marks.Load().take(mark)
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.next = end
	return nil
}
