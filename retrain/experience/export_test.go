package experience

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// kept is a Writer that keeps one line per step.
type kept struct {
	lines  []string
	closed bool
}

func (k *kept) Write(s *Step) error {
	complete := "whole"
	if !s.Complete {
		complete = "part"
	}
	line := fmt.Sprintf("%s %d.%d %s %s/%s step %d at %s", s.Data, s.Episode, s.Index, complete, s.AgentID, s.EpisodeID, s.Step, s.Pos)
	if s.Reward != nil {
		line += fmt.Sprintf(" reward %g", *s.Reward)
	}
	if s.Terminated {
		line += " terminated"
	}
	if s.Truncated {
		line += " truncated"
	}
	for _, o := range s.Outcomes {
		line += fmt.Sprintf(" %s=%g", o.Name, o.X)
	}
	k.lines = append(k.lines, line)
	return nil
}

func (k *kept) Close() error {
	k.closed = true
	return nil
}

func (k *kept) want(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(k.lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(k.lines, "\n"), strings.Join(want, "\n"))
	}
}

// topic creates a topic of three partitions, and returns its source.
func topic(t *testing.T) (*ingesttest.Broker, Source) {
	t.Helper()
	b, err := ingesttest.Start(3, "agent-telemetry")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	cfg := ingest.DefaultKafkaConfig()
	cfg.Brokers, cfg.Topic = b.Addrs(), b.Topic
	return b, Source{Place: recording.Place{Kafka: cfg}, Topics: []ingest.Topic{{Name: cfg.Topic, Format: telemetry.V1{}}}, Policy: "ranker", Group: map[string]string{"env": "prod", "label_region": "eu"}}
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// of returns a record of the group, with members as JSON.
func of(agent, episode string, members string) string {
	return fmt.Sprintf(`{"policy":"ranker","env":"prod","labels":{"region":"eu"},"agent_id":%q,"episode_id":%q,%s}`, agent, episode, members)
}

func step(agent, episode string, number int, more ...string) string {
	return of(agent, episode, strings.Join(append([]string{fmt.Sprintf(`"step":%d,"reward":%d,"action":1`, number, number)}, more...), ","))
}

func produce(t *testing.T, b *ingesttest.Broker, partition int32, values ...string) {
	t.Helper()
	var messages [][]byte
	for _, v := range values {
		messages = append(messages, []byte(v))
	}
	if err := b.Produce(within(t), partition, messages...); err != nil {
		t.Fatal(err)
	}
}

const end = `"terminated":true`

func TestExportReadsTheRangesAndTheGroupAlone(t *testing.T) {
	b, src := topic(t)
	produce(t, b, 0,
		step("a", "1", 3), // 0: before the range
		step("a", "1", 4), // 1: its beginning is not in the range
		step("b", "1", 0), // 2
		strings.Replace(step("b", "1", 7), "ranker", "other", 1), // 3: another policy
		strings.Replace(step("b", "1", 7), "prod", "test", 1),    // 4: another group
		strings.Replace(step("b", "1", 7), `"eu"`, `"us"`, 1),    // 5: another group
		step("b", "1", 2)+"\n"+step("a", "1", 5, end),            // 6: two records
		step("b", "1", 1),                           // 7: late
		step("b", "1", 2),                           // 8: delivered again
		"no telemetry",                              // 9
		step("b", "1", 3, `"truncated":true`),       // 10
		step("b", "1", 3, `"truncated":true`),       // 11: delivered again, after its end
		step("a", "2", 5),                           // an episode begins here, because the agent had ended the previous one
		of("a", "2", `"outcomes":{"conversion":1}`), // of the previous step
		of("a", "2", `"episode":{"r":5,"l":1}`),     // 14: an end without a flag
		step("c", "1", 0),                           // 15: does not end in the range
		of("d", "1", `"episode":{"r":5,"l":1}`),     // 16: without a step
		step("b", "2", 0),                           // 17: does not end in the range
		step("c", "1", 1),                           // 18: the last of the range
		step("c", "1", 2, end),                      // after the range
	)
	produce(t, b, 2, step("z", "", 0), step("z", "", 1), step("z", "", 0), step("z", "", 1, end), step("z", "", 2, end))
	out := &kept{}
	counts, err := Export(within(t), src, []Part{
		{"baseline", []ingest.Range{{Partition: 2, First: 0, Last: 3}}},
		{"drifted", []ingest.Range{{Partition: 0, First: 1, Last: 18}, {Partition: 2, First: 3, Last: 4}}},
	}, out)
	if err != nil || !out.closed {
		t.Fatalf("closed %v: %v", out.closed, err)
	}
	out.want(t,
		"baseline 0.0 whole z/ step 0 at 2/0 reward 0",
		"baseline 0.1 whole z/ step 1 at 2/1 reward 1",
		"baseline 1.0 whole z/ step 0 at 2/2 reward 0",
		"baseline 1.1 whole z/ step 1 at 2/3 reward 1 terminated",
		"drifted 2.0 part a/1 step 4 at 0/1 reward 4",
		"drifted 2.1 part a/1 step 5 at 0/6/1 reward 5 terminated",
		"drifted 3.0 whole b/1 step 0 at 0/2 reward 0",
		"drifted 3.1 whole b/1 step 1 at 0/7 reward 1",
		"drifted 3.2 whole b/1 step 2 at 0/6 reward 2",
		"drifted 3.3 whole b/1 step 3 at 0/10 reward 3 truncated",
		"drifted 4.0 whole a/2 step 5 at 0/12 reward 5 conversion=1",
		"drifted 5.0 part c/1 step 0 at 0/15 reward 0",
		"drifted 5.1 part c/1 step 1 at 0/18 reward 1",
		"drifted 6.0 part b/2 step 0 at 0/17 reward 0",
		"drifted 7.0 whole z/ step 1 at 2/3 reward 1 terminated",
		"drifted 8.0 whole z/ step 2 at 2/4 reward 2 terminated",
	)
	if want := (Counts{Steps: 16, Episodes: 9, Incomplete: 3, Stepless: 1}); counts != want {
		t.Errorf("got %+v, want %+v", counts, want)
	}
}

// Steps that are late by as much as the assembler allows are all in the rows, in step order, together with one that
// is repeated and one that is later than that.
func TestExportPutsLateStepsInTheirPlaces(t *testing.T) {
	const steps = 3 * assemble.Lateness
	b, src := topic(t)
	rng := rand.New(rand.NewPCG(1, 2))
	numbers := make([]int, 0, steps)
	for i := 1; i < steps; i++ {
		numbers = append(numbers, i)
	}
	for at := 0; at < len(numbers); at += assemble.Lateness / 2 {
		part := numbers[at:min(at+assemble.Lateness/2, len(numbers))]
		rng.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	}
	numbers = slices.DeleteFunc(numbers, func(n int) bool { return n == 1 })
	var messages []string
	for _, n := range append(append([]int{0}, numbers...), numbers[10], 1) {
		messages = append(messages, step("a", "1", n))
	}
	messages = append(messages, step("a", "1", steps, end))
	produce(t, b, 0, messages...)
	out := &kept{}
	counts, err := Export(within(t), src, []Part{{"drifted", []ingest.Range{{Partition: 0, First: 0, Last: int64(len(messages)) - 1}}}}, out)
	if err != nil || counts.Steps != steps {
		t.Fatalf("%+v, want %d steps: %v", counts, steps, err)
	}
	number, index := -1, 0
	for _, line := range out.lines {
		var n int
		if _, err := fmt.Sscanf(line, fmt.Sprintf("drifted 0.%d whole a/1 step %%d at", index), &n); err != nil || n <= number || n == 1 {
			t.Fatalf("%q after step %d: %v", line, number, err)
		}
		number, index = n, index+1
	}
	if number != steps || !strings.Contains(out.lines[index-1], "terminated") {
		t.Errorf("the last is %q", out.lines[index-1])
	}
}

func TestExportOfAPolicyWithoutLabels(t *testing.T) {
	b, src := topic(t)
	src.Group = map[string]string{}
	produce(t, b, 1, step("a", "1", 0), strings.Replace(step("a", "1", 1, end), "prod", "test", 1), `{"policy":"other","reward":1}`)
	out := &kept{}
	var shown []int64
	src.Progress = func(messages, total int64) { shown = append(shown, messages, total) }
	if _, err := Export(within(t), src, []Part{{"drifted", []ingest.Range{{Partition: 1, First: 0, Last: 0}, {Partition: 1, First: 1, Last: 2}}}}, out); err != nil {
		t.Fatal(err)
	}
	out.want(t, "drifted 0.0 part a/1 step 0 at 1/0 reward 0", "drifted 1.0 whole a/1 step 1 at 1/1 reward 1 terminated")
	if n := len(shown); n < 4 || !slices.Equal(shown[n-2:], []int64{3, 3}) || shown[1] != 3 {
		t.Errorf("progress %v", shown)
	}
}

func TestExportSaysAllThatIsGone(t *testing.T) {
	b, src := topic(t)
	produce(t, b, 0, slices.Repeat([]string{step("a", "1", 0, end)}, 30)...)
	produce(t, b, 1, slices.Repeat([]string{step("a", "1", 0, end)}, 30)...)
	if err := b.DeleteRecords(0, 20); err != nil {
		t.Fatal(err)
	}
	out := &kept{}
	_, err := Export(within(t), src, []Part{
		{"baseline", []ingest.Range{{Partition: 0, First: 19, Last: 25}, {Partition: 1, First: 0, Last: 29}}},
		{"drifted", []ingest.Range{{Partition: 0, First: 20, Last: 29}, {Partition: 1, First: 5, Last: 30}}},
	}, out)
	want := "offsets 19 to 25 of partition 0 of topic agent-telemetry: the topic does not contain these offsets, only 20 to 29\n" +
		"offsets 5 to 30 of partition 1 of topic agent-telemetry: the topic does not contain these offsets, only 0 to 29"
	if !errors.Is(err, recording.ErrRangeGone) || err.Error() != want || out.lines != nil || out.closed {
		t.Errorf("wrote %v, closed %v, says %v", out.lines, out.closed, err)
	}
}

func TestExportOfNothing(t *testing.T) {
	b, src := topic(t)
	produce(t, b, 0, `{"policy":"other","reward":1}`, of("a", "1", `"episode":{"r":5,"l":1}`))
	out := &kept{}
	if _, err := Export(within(t), src, []Part{{"drifted", []ingest.Range{{First: 0, Last: 1}}}}, out); !errors.Is(err, errNoStep) || out.closed {
		t.Errorf("closed %v: %v", out.closed, err)
	}
}

// failing is a Writer that accepts the given number of steps.
type failing struct {
	kept
	after int
}

var errFull = errors.New("the disk is full")

func (f *failing) Write(s *Step) error {
	if len(f.lines) == f.after {
		return errFull
	}
	return f.kept.Write(s)
}

func TestExportEndsWithTheWriter(t *testing.T) {
	b, src := topic(t)
	produce(t, b, 0, slices.Repeat([]string{of("a", "", `"reward":1,"terminated":true`)}, 10)...)
	out := &failing{after: 3}
	if _, err := Export(within(t), src, []Part{{"drifted", []ingest.Range{{First: 0, Last: 9}}}}, out); !errors.Is(err, errFull) || len(out.lines) != 3 || out.closed {
		t.Errorf("%d steps, closed %v: %v", len(out.lines), out.closed, err)
	}
}

// reader passes records to an excerpt like a topic does.
type reader struct {
	*excerpt
	decoder ingest.Decoder
	events  []ingest.Event
	offset  int64
}

// asRecorded returns a decoder for exports.
func asRecorded() ingest.Decoder {
	return telemetry.V1{}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord, AsRecorded: true})
}

func newReader(out Writer, limit int) *reader {
	x := newExporter(Source{Policy: "ranker", MaxOpen: 50}, out, newSpool(limit))
	x.data = "drifted"
	return &reader{excerpt: x.excerpt(), decoder: asRecorded()}
}

func (r *reader) read(t *testing.T, record string) {
	t.Helper()
	m := ingest.Message{Value: []byte(record), Pos: ingest.Position{Offset: r.offset}}
	r.events = r.decoder.Decode(r.events[:0], &m, func(e *ingest.RecordError, _ []byte) { t.Fatal(e) })
	if err := r.take(&r.events[0]); err != nil {
		t.Fatal(err)
	}
	r.decoder.Reset()
	r.offset++
}

func (r *reader) end(t *testing.T) {
	t.Helper()
	if err := errors.Join(r.writeOpen(), r.out.Close(), r.spool.close()); err != nil {
		t.Fatal(err)
	}
	if len(r.open) > 0 || len(r.spool.open) > 0 {
		t.Errorf("%d episodes are still open", len(r.open))
	}
}

// The amount of data held in memory does not change the output, and no file is left.
func TestOpenEpisodesThatDoNotFitIntoMemory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	run := func(limit int) []byte {
		var b bytes.Buffer
		r := newReader(NewNDJSON(&b), limit)
		rng := rand.New(rand.NewPCG(1, 2))
		for range 2000 { // more agents than MaxOpen, so that some episodes are dropped
			agent, more := fmt.Sprint(rng.IntN(60)), []string{}
			if rng.IntN(20) == 0 {
				more = append(more, end)
			}
			r.read(t, of(agent, "", strings.Join(append([]string{fmt.Sprintf(`"reward":%g,"observation":[%g,%d]`, rng.Float64(), rng.NormFloat64(), r.offset)}, more...), ",")))
		}
		if filed := r.spool.file != nil; filed != (limit < maxHeld) {
			t.Errorf("a limit of %d needs a file: %v", limit, filed)
		}
		r.end(t)
		if r.counts.Steps != 2000 || r.counts.Incomplete < 10 {
			t.Errorf("%+v", r.counts)
		}
		return b.Bytes()
	}
	want := run(maxHeld)
	for _, limit := range []int{0, 1000, 10_000} {
		if got := run(limit); !bytes.Equal(got, want) {
			t.Errorf("a limit of %d bytes changes what is written", limit)
		}
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// An episode that does not end takes no more memory than the limit of the records, and its Parquet no more than a
// row group.
func TestSimExportTakesBoundedMemory(t *testing.T) {
	const steps, limit, bound = 200_000, 1 << 20, 24 << 20
	t.Setenv("TMPDIR", t.TempDir())
	f, err := os.Create(filepath.Join(t.TempDir(), "out.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	before := heap()
	watched := &watching{Writer: NewParquet(f)}
	r := newReader(watched, limit)
	for i := range steps {
		r.read(t, of("a", "1", fmt.Sprintf(`"step":%d,"reward":1,"action":3,"observation":[0.11,0.22,0.33,%d,0.55],"next_observation":[1,2,3,4,5]`, i, i)))
	}
	grown, filed := heap()-before, r.spool.size
	r.end(t)
	t.Logf("held %d KiB of %d MiB; at most %d MiB while they were written", grown>>10, filed>>20, (watched.most-before)>>20)
	if r.counts.Steps != steps || filed < bound {
		t.Fatalf("%d steps, %d bytes in the file", r.counts.Steps, filed)
	}
	if grown > 8*limit || watched.most-before > bound {
		t.Errorf("the heap grew by %d bytes, and by %d bytes while they were written", grown, watched.most-before)
	}
}

// watching samples the heap from time to time.
type watching struct {
	Writer
	steps int
	most  int64
}

func (w *watching) Write(s *Step) error {
	if w.steps++; w.steps%15_000 == 0 {
		w.most = max(w.most, heap())
	}
	return w.Writer.Write(s)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
