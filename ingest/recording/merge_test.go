package recording

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// policiesOf is a processor that stores the order of the policies.
type policiesOf struct {
	ingest.Processor
	got []string
	err error
}

func (p *policiesOf) Process(_ context.Context, batch []ingest.Event) error {
	for _, e := range batch {
		p.got = append(p.got, strings.Clone(e.Policy))
	}
	return p.err
}

// given returns a source of events with the given partitions and times, in batches of two.
func given(name string, failure error, places ...[2]int64) Source {
	return func(ctx context.Context, p ingest.Processor) (Counts, error) {
		for from := 0; from < len(places); from += 2 {
			var batch []ingest.Event
			for i := from; i < min(from+2, len(places)); i++ {
				batch = append(batch, ingest.Event{
					Policy: fmt.Sprint(name, i), TS: places[i][1], Pos: ingest.Position{Partition: ingest.PartitionOf(int(name[0]), int32(places[i][0]))},
				})
			}
			if err := p.Process(ctx, batch); err != nil {
				return Counts{}, fmt.Errorf("processing: %w", err)
			}
		}
		return Counts{Read: int64(len(places)), Accepted: int64(len(places)), Refused: map[ingest.Reason]int64{"r": 1}}, failure
	}
}

func TestMergeGoesByTime(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		sources []Source
		fail    error
		want    string
		err     error
		read    int64
	}{
		"nothing":  {},
		"one":      {sources: []Source{given("a", nil, [2]int64{0, 5}, [2]int64{0, 1})}, want: "a0 a1", read: 2},
		"two":      {sources: []Source{given("a", nil, [2]int64{0, 1}, [2]int64{0, 4}, [2]int64{0, 9}), given("b", nil, [2]int64{0, 2}, [2]int64{0, 3}, [2]int64{0, 8})}, want: "a0 b0 b1 a1 b2 a2", read: 6},
		"ties":     {sources: []Source{given("a", nil, [2]int64{0, 1}, [2]int64{0, 1}), given("b", nil, [2]int64{0, 1})}, want: "a0 a1 b0", read: 3},
		"no times": {sources: []Source{given("a", nil, [2]int64{0, 5}, [2]int64{0, 0}, [2]int64{0, 7}), given("b", nil, [2]int64{0, 6})}, want: "a0 a1 b0 a2", read: 4},
		"of the far future": {
			sources: []Source{given("a", nil, [2]int64{0, 1}, [2]int64{0, 1 << 62}, [2]int64{0, 3}), given("b", nil, [2]int64{0, 2}, [2]int64{0, 4})}, want: "a0 a1 b0 a2 b1", read: 5,
		},
		"partitions": {
			sources: []Source{given("a", nil, [2]int64{0, 7}, [2]int64{1, 1}), given("b", nil, [2]int64{0, 9}, [2]int64{1, 2}, [2]int64{2, 0}), given("c", nil, [2]int64{2, 0})},
			want:    "a0 b0 a1 b1 b2 c0", read: 6,
		},
		"one is broken off": {sources: []Source{given("a", broken, [2]int64{0, 1}), given("b", nil, [2]int64{0, 2})}, want: "a0 b0", err: broken, read: 2},
		"none is wanted":    {sources: []Source{given("a", nil, [2]int64{0, 1}), given("b", nil, [2]int64{0, 2})}, fail: broken, want: "a0", err: broken, read: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := &policiesOf{err: c.fail}
			counts, err := Merge(t.Context(), c.sources, p)
			if got := strings.Join(p.got, " "); got != c.want || !errors.Is(err, c.err) || counts.Read != c.read {
				t.Errorf("%s, %+v, %v; want %s", got, counts, err, c.want)
			}
		})
	}
}

// Files of two topics are read in parallel, each in its format, and their positions contain the topic.
func TestFilesOfTopicsAreReadSideBySide(t *testing.T) {
	var shown, clicks strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&shown, `{"policy":"shop","ts":%d,"action":"a"}`+"\n", 1_000_000+2*i)
		fmt.Fprintf(&clicks, `{"policy":"shop","ts":%d,"reward":1}`+"\n", 1_000_001+2*i)
	}
	a, b := writeFile(t, "shown.ndjson", []byte(shown.String())), writeFile(t, "clicks.ndjson", []byte(clicks.String()))
	topic := func(index int, path string) FileTopic {
		return FileTopic{Index: index, Format: telemetry.V1{}, Has: func(p string) bool { return p == path }}
	}
	var got []ingest.Position
	var progress int64
	p := &policiesOf{}
	counts, err := ReadFiles(t.Context(), FilesConfig{
		Topics: []FileTopic{topic(0, a), topic(3, b), topic(4, "other")},
		Accepted: func(e *ingest.Event, record []byte) {
			if record == nil {
				t.Error("no record")
			}
		},
		Progress: func(read, total int64) {
			if progress = read; total != int64(shown.Len()+clicks.Len()) {
				t.Errorf("%d of %d", read, total)
			}
		},
	}, []string{b, a}, positions{p, &got})
	if err != nil || counts.Accepted != 2000 || progress != int64(shown.Len()+clicks.Len()) {
		t.Fatalf("%+v, %v, %d bytes", counts, err, progress)
	}
	for i, pos := range got {
		if want := (ingest.Position{Partition: ingest.PartitionOf(i%2*3, 0), Offset: int64(i / 2)}); pos != want {
			t.Fatalf("event %d is at %v of topic %d, want %v", i, pos, pos.Partition.Topic(), want)
		}
	}
}

// positions keeps the positions of events.
type positions struct {
	ingest.Processor
	got *[]ingest.Position
}

func (p positions) Process(ctx context.Context, batch []ingest.Event) error {
	for _, e := range batch {
		*p.got = append(*p.got, e.Pos)
	}
	return p.Processor.Process(ctx, batch)
}
