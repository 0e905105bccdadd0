package recording_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/locallog"
	"github.com/rewardwatch/rewardwatch/ingest/receive"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// positions is a processor that stores the positions and the rewards of events.
type positions struct {
	ingest.Processor
	seen []string
}

func (p *positions) Process(_ context.Context, batch []ingest.Event) error {
	for i := range batch {
		p.seen = append(p.seen, fmt.Sprint(batch[i].Pos, "=", batch[i].Reward))
	}
	return nil
}

// newLog creates a log of messages with two events each. Message 2 repeats message 1, and message 4 has one invalid
// event. The process that owns the log is still running.
func newLog(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	l, err := locallog.Open(locallog.Options{
		Name: "telemetry", Directory: directory, MaxSize: 1 << 20, SegmentSize: 100, Log: zerolog.Nop(), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	for i, id := range []string{"a", "b", "b", "c", "d"} {
		at := i
		if i == 2 {
			at = 1
		}
		first := fmt.Sprintf(`{"policy":"p","reward":%d}`, 10*at)
		if i == 4 {
			first = "{}"
		}
		text := fmt.Sprintf("%s\n"+`{"policy":"p","reward":%d}`+"\n", first, 10*at+1)
		record := locallog.Record{Value: []byte(text), Headers: []ingest.Header{{Key: receive.RequestHeader, Value: []byte(id + "/0")}}}
		if _, err := l.Append(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func place(directory string) recording.Place {
	k := ingest.DefaultKafkaConfig()
	k.Topic = receive.LocalTopic
	return recording.Place{Kafka: k, Log: directory}
}

func TestReadLogAsTopic(t *testing.T) {
	cfg := recording.TopicConfig{Place: place(newLog(t)), Format: telemetry.V1{}}
	for _, c := range []struct {
		newest int64
		want   []string
	}{
		{0, []string{"0/0=0", "0/0/1=1", "0/1=10", "0/1/1=11", "0/2=10", "0/2/1=11", "0/3=30", "0/3/1=31", "0/4/1=41"}},
		{2, []string{"0/3=30", "0/3/1=31", "0/4/1=41"}},
	} {
		p := &positions{}
		var done, total int64
		cfg.Newest, cfg.Progress = c.newest, func(n, of int64) { done, total = n, of }
		counts, err := recording.ReadTopic(t.Context(), cfg, p)
		if err != nil || !slices.Equal(p.seen, c.want) || counts.Refused[ingest.ReasonMissingPolicy] != 1 {
			t.Errorf("newest %d: %q, %+v, %v", c.newest, p.seen, counts, err)
		}
		if total != done || total == 0 {
			t.Errorf("newest %d: %d of %d messages", c.newest, done, total)
		}
	}
}

func TestReadRangesOfALog(t *testing.T) {
	directory := newLog(t)
	cfg := recording.TopicConfig{Place: place(directory), Format: telemetry.V1{}}
	p := &positions{}
	if _, err := recording.ReadRanges(t.Context(), cfg, []ingest.Range{{First: 3, Last: 3}, {First: 0, Last: 1}}, p); err != nil {
		t.Fatal(err)
	}
	if want := []string{"0/3=30", "0/3/1=31", "0/0=0", "0/0/1=1", "0/1=10", "0/1/1=11"}; !slices.Equal(p.seen, want) {
		t.Errorf("read %q, want %q", p.seen, want)
	}
	for of, gone := range map[ingest.Range]bool{
		{First: 0, Last: 4}: false, {First: 4, Last: 5}: true, {Partition: 1}: true,
	} {
		err := recording.CheckRanges(t.Context(), cfg.Place, []ingest.Range{of})
		if (err != nil) != gone || of.Partition == 0 && gone != errors.Is(err, recording.ErrRangeGone) {
			t.Errorf("%v: %v", of, err)
		}
	}
	for until, want := range map[time.Time]int64{{}: 4, time.Now().Add(time.Hour): 4, time.Now().Add(-time.Hour): 1} {
		got, err := recording.ExtendRanges(t.Context(), cfg.Place, []ingest.Range{{First: 0, Last: 1}}, until)
		if err != nil || got[0].Last != want {
			t.Errorf("until %v: %v, %v; want %d", until, got, err, want)
		}
	}
	if err := os.Remove(filepath.Join(directory, fmt.Sprintf("%020d.log", 0))); err != nil { // as retention does
		t.Fatal(err)
	}
	if _, err := recording.ReadRanges(t.Context(), cfg, []ingest.Range{{First: 0, Last: 1}}, p); !errors.Is(err, recording.ErrRangeGone) {
		t.Errorf("of what is removed: %v", err)
	}
}

// If the directory of a log is read like a file, it has the records that the service judges: repeated messages count
// once.
func TestReadLogAsFile(t *testing.T) {
	p := &positions{}
	counts, err := recording.ReadFiles(t.Context(), recording.FilesConfig{}, []string{newLog(t)}, p)
	want := []string{"0/0=0", "0/1=1", "0/2=10", "0/3=11", "0/4=30", "0/5=31", "0/7=41"}
	if err != nil || !slices.Equal(p.seen, want) || counts.Read != 8 {
		t.Errorf("%q, %+v, %v", p.seen, counts, err)
	}
	if _, err := recording.ReadFiles(t.Context(), recording.FilesConfig{}, []string{t.TempDir()}, p); err == nil || !strings.Contains(err.Error(), "is a directory that contains neither a local log nor a file named monitor.csv or *.monitor.csv") {
		t.Errorf("another directory: %v", err)
	}
}
