package engine

import (
	"bytes"
	"strconv"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/repartition"
)

func markOf(at time.Time) *ingest.Message {
	return &ingest.Message{Headers: []ingest.Header{{Key: repartition.MarkHeader, Value: strconv.AppendInt(nil, at.UnixNano(), 10)}}}
}

// The end of a partition to which telemetry is forwarded says nothing about what has not been forwarded yet: marks do.
func TestEndOfWhatIsSentOnIsThatOfTheMarks(t *testing.T) {
	f, out := joiningFeed()
	idle := func(at, want time.Time) {
		t.Helper()
		if err := f.Idle(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		if !out.end.Equal(want) {
			t.Errorf("read to %s, want %s", out.end, want)
		}
	}
	now := time.Unix(1_800_000_000, 0)
	idle(now, now)
	f.pipeline.Source.SentOn = true
	idle(now, time.Time{})
	f.Seen(markOf(now.Add(-time.Hour)))
	idle(now, now.Add(-time.Hour))
	f.Seen(markOf(now.Add(time.Second)))
	idle(now, now)
}

// What has been forwarded twice is recognized after a restart as well; the progress of all telemetry is not, as marks
// follow.
func TestWhatIsSentOnAgainIsSeenAfterARestart(t *testing.T) {
	f, _ := joiningFeed()
	f.pipeline.Source.SentOn = true
	event := &ingest.Message{Headers: []ingest.Header{{Key: repartition.SourceHeader, Value: []byte("clicks/1/5/17/0")}}}
	f.Seen(markOf(time.Unix(1_800_000_000, 0)))
	if f.Seen(event) {
		t.Error("an event is seen that is new")
	}
	var b bytes.Buffer
	if err := f.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	again, out := joiningFeed()
	again.pipeline.Source.SentOn = true
	if err := again.Restore(&b); err != nil {
		t.Fatal(err)
	}
	if !again.Seen(event) {
		t.Error("an event that was read before the restart is not seen")
	}
	if err := again.Idle(t.Context(), time.Now()); err != nil || !out.end.IsZero() {
		t.Errorf("read to %s without a mark, %v", out.end, err)
	}
}
