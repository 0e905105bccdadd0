package recording

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/deadletter"
)

// fileProcessor is a Processor that stores what the tests need of every event.
type fileProcessor struct {
	policies []string
	returns  []float64
	lengths  []int64
	offsets  []int64
	times    []int64
	batches  int
	err      error
}

func (c *fileProcessor) Process(_ context.Context, batch []ingest.Event) error {
	c.batches++
	if len(batch) == 0 || len(batch) > readBatch {
		return fmt.Errorf("a batch of %d events", len(batch))
	}
	for _, e := range batch {
		c.policies = append(c.policies, e.Policy)
		c.returns = append(c.returns, e.Return)
		c.lengths = append(c.lengths, e.Length)
		c.offsets = append(c.offsets, e.Pos.Offset)
		c.times = append(c.times, e.TS)
		if e.Pos.Record != 0 || e.Pos.Partition != 0 {
			return fmt.Errorf("position %v in a file", e.Pos)
		}
	}
	return c.err
}

func (c *fileProcessor) Idle(context.Context, time.Time) error { return nil }
func (c *fileProcessor) Snapshot(io.Writer) error              { return nil }
func (c *fileProcessor) Restore(io.Reader) error               { return nil }

func writeFile(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstandard(t *testing.T, content []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(content, nil)
}

func ndjsonLine(policy string) string { return `{"policy":"` + policy + `","reward":1}` + "\n" }

const monitorCSV = `#{"t_start": 1614621211.0683107, "env_id": "Acrobot-v1"}` + "\r\nr,l,t\r\n-71.0,72,2.611522\r\n-85.5,86,2.671291\r\n"

func TestReadFiles(t *testing.T) {
	two := []byte(ndjsonLine("a") + "\n" + strings.TrimSuffix(ndjsonLine("b"), "\n"))
	skippable := append([]byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0}, "abc"...)
	for _, c := range []struct {
		name    string
		config  FilesConfig
		inputs  [][]byte
		want    []string // policy offset
		refused map[ingest.Reason]int64
	}{
		{name: "nothing", inputs: nil},
		{name: "empty", inputs: [][]byte{nil, []byte("\n\n")}},
		{name: "plain", inputs: [][]byte{two}, want: []string{"a 0", "b 1"}},
		{name: "gzip", inputs: [][]byte{gzipped(t, two)}, want: []string{"a 0", "b 1"}},
		{
			name:   "gzip of two members",
			inputs: [][]byte{append(gzipped(t, []byte(ndjsonLine("a"))), gzipped(t, []byte(ndjsonLine("b")))...)}, want: []string{"a 0", "b 1"},
		},
		{name: "zstd", inputs: [][]byte{zstandard(t, two)}, want: []string{"a 0", "b 1"}},
		{name: "zstd behind a skippable frame", inputs: [][]byte{append(skippable, zstandard(t, two)...)}, want: []string{"a 0", "b 1"}},
		{
			name:   "several, refused ones counted",
			inputs: [][]byte{two, zstandard(t, []byte("junk\n"+ndjsonLine("c"))), []byte(monitorCSV), two},
			want:   []string{"a 0", "b 1", "c 3", "Acrobot-v1 4", "Acrobot-v1 5", "a 6", "b 7"}, refused: map[ingest.Reason]int64{ingest.ReasonInvalidJSON: 1},
		},
		{
			name: "byte order mark", inputs: [][]byte{append([]byte("\xef\xbb\xbf"), two...), append([]byte("\xef\xbb\xbf"), monitorCSV...)},
			want: []string{"a 0", "b 1", "Acrobot-v1 2", "Acrobot-v1 3"},
		},
		{
			name: "CRLF", inputs: [][]byte{bytes.ReplaceAll(two, []byte("\n"), []byte("\r\n"))}, want: []string{"a 0", "b 1"},
		},
		{
			name: "policy for monitor.csv", config: FilesConfig{Policy: "mine"}, inputs: [][]byte{[]byte(monitorCSV), two},
			want: []string{"mine 0", "mine 1", "a 2", "b 3"},
		},
		{
			name: "short limit", config: FilesConfig{MaxRecord: 30}, inputs: [][]byte{[]byte(ndjsonLine("a") + ndjsonLine(strings.Repeat("x", 40)) + ndjsonLine("b"))},
			want: []string{"a 0", "b 2"}, refused: map[ingest.Reason]int64{ingest.ReasonTooLarge: 1},
		},
		{
			name: "a comment in NDJSON", inputs: [][]byte{append(two, "\n#{}\n"...)}, want: []string{"a 0", "b 1"},
			refused: map[ingest.Reason]int64{ingest.ReasonInvalidJSON: 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var paths []string
			for i, content := range c.inputs {
				paths = append(paths, writeFile(t, fmt.Sprintf("input%d.bin", i), content))
			}
			var p fileProcessor
			counts, err := ReadFiles(t.Context(), c.config, paths, &p)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range p.policies {
				got = append(got, fmt.Sprintf("%s %d", p.policies[i], p.offsets[i]))
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("events %q, want %q", got, c.want)
			}
			checkCounts(t, counts, int64(len(c.want)), c.refused)
		})
	}
}

func checkCounts(t *testing.T, got Counts, accepted int64, refused map[ingest.Reason]int64) {
	t.Helper()
	read := accepted
	for _, n := range refused {
		read += n
	}
	if got.Read != read || got.Accepted != accepted || !maps.Equal(got.Refused, refused) {
		t.Errorf("counts %+v, want %d read, %d accepted, refused %v", got, read, accepted, refused)
	}
}

func TestReadMonitor(t *testing.T) {
	header := `#{"env_id": "E"}` + "\nr,l,t\n"
	for _, c := range []struct {
		name, policy, content string
		returns               []float64
		lengths               []int64
		refused               map[ingest.Reason]int64
	}{
		{name: "as written", content: monitorCSV, returns: []float64{-71, -85.5}, lengths: []int64{72, 86}},
		{
			name: "not finite", content: header + "nan,1,0\ninf,2,0\n-inf,3,0\n1e999,4,0\n1e-05,5.0,0\n",
			returns: []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Inf(1), 1e-5}, lengths: []int64{1, 2, 3, 4, 5},
		},
		{
			name: "other columns", content: `#{"env_id": "E", "x": {"env_id": [1]}}` + "\n" + `note,"l", r ,t` + "\n" + `"a, ""b""",20, -3.5 ,x` + "\n",
			returns: []float64{-3.5}, lengths: []int64{20},
		},
		{
			name: "hostile rows", content: header + "1,2\n1,2,3,4\n,2,3\nx,2,3\n1,-2,3\n1,2.5,3\n1,,3\n1,x,3\n1 2,3,4\n1,3 4,4\n\"1,2,3\n\xff,1,1\n\x00,1,1\n7,8,9\n",
			returns: []float64{7}, lengths: []int64{8},
			refused: map[ingest.Reason]int64{ingest.ReasonWrongColumns: 3, ingest.ReasonWrongType: 9, ingest.ReasonOutOfRange: 1},
		},
		{
			name: "put together", content: monitorCSV + "\n" + header + "1,2,3\n",
			returns: []float64{-71, -85.5, 1}, lengths: []int64{72, 86, 2},
		},
		{name: "no env_id", content: "#{\"t_start\": 1}\nr,l,t\n1,2,3\n4,5,6\n", refused: map[ingest.Reason]int64{ingest.ReasonMissingPolicy: 2}},
		{name: "null env_id", content: "#{\"env_id\": null}\nr,l,t\n1,2,3\n", refused: map[ingest.Reason]int64{ingest.ReasonMissingPolicy: 1}},
		{name: "env_id of Stable-Baselines3 for none", content: "#{\"env_id\": \"None\"}\nr,l,t\n1,2,3\n", refused: map[ingest.Reason]int64{ingest.ReasonMissingPolicy: 1}},
		{name: "broken header", content: "#{\"env_id\": \"E\"\nr,l,t\n1,2,3\n", refused: map[ingest.Reason]int64{ingest.ReasonBadHeader: 2}},
		{
			name: "broken header, policy given", policy: "p", content: "# no JSON\nr,l,t\n1,2,3\n", returns: []float64{1}, lengths: []int64{2},
			refused: map[ingest.Reason]int64{ingest.ReasonBadHeader: 1},
		},
		{name: "no names", content: "#{\"env_id\": \"E\"}\n1,2,3\n4,5,6\n", refused: map[ingest.Reason]int64{ingest.ReasonBadHeader: 2}},
		{name: "only a header", content: `#{"env_id": "E"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p fileProcessor
			cfg := FilesConfig{Policy: c.policy, Stdin: strings.NewReader(c.content), Refuse: func(e *ingest.RecordError, _ []byte) { t.Log(e) }}
			counts, err := ReadFiles(t.Context(), cfg, []string{"-"}, &p)
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(p.returns, p.lengths) != fmt.Sprint(c.returns, c.lengths) {
				t.Errorf("returns %v and lengths %v, want %v and %v", p.returns, p.lengths, c.returns, c.lengths)
			}
			checkCounts(t, counts, int64(len(c.returns)), c.refused)
		})
	}
}

// A row of a monitor.csv ended t seconds after the header's t_start. Without either value it has no time, but is
// accepted.
func TestReadMonitorTimes(t *testing.T) {
	const start = "1614621211.0683107"
	header := func(members string) string { return `#{` + members + `"env_id": "E"}` + "\nr,l,t\n" }
	for _, c := range []struct {
		name, content string
		want          []int64 // Unix nanoseconds
	}{
		{"as written", monitorCSV, []int64{1614621213_679832700, 1614621213_739601700}},
		{"no t_start", header("") + "1,2,3\n", []int64{0}},
		{"null", header(`"t_start": null, `) + "1,2,3\n", []int64{0}},
		{"a t_start of 0", header(`"t_start": 0.0, `) + "1,2,3\n", []int64{0}},
		{"text", header(`"t_start": "1614621211", `) + "1,2,3\n", []int64{0}},
		{"before 1970", header(`"t_start": -5, `) + "1,2,3\n", []int64{0}},
		{"no Unix seconds", header(`"t_start": 1614621211000, `) + "1,2,3\n", []int64{0}},
		{"infinite", header(`"t_start": 1e999, `) + "1,2,3\n", []int64{0}},
		{"no column t", `#{"t_start": ` + start + `, "env_id": "E"}` + "\nr,l\n1,2\n", []int64{0}},
		{"t in front", `#{"t_start": 10, "env_id": "E"}` + "\nt,r,l\n1.5,1,2\n", []int64{11_500_000_000}},
		{"rows without a time", header(`"t_start": 10, `) + "1,2,\n1,2,x\n1,2,nan\n1,2,inf\n1,2,-1\n1,2,1e300\n1,2,9223372037\n1,2,3 4\n1,2,5\n", []int64{0, 0, 0, 0, 0, 0, 0, 0, 15_000_000_000}},
		{"put together", header(`"t_start": 10, `) + "1,2,3\n" + header("") + "1,2,3\n" + header(`"t_start": 5, `) + "1,2,3\n", []int64{13_000_000_000, 0, 8_000_000_000}},
		{"broken header, policy given", "#{\"t_start\": 5, nothing\nr,l,t\n1,2,3\n", []int64{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p fileProcessor
			if _, err := ReadFiles(t.Context(), FilesConfig{Policy: "p"}, []string{writeFile(t, "monitor.csv", []byte(c.content))}, &p); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(p.times, c.want) {
				t.Errorf("times %d, want %d", p.times, c.want)
			}
		})
	}
}

// wholeEvent is a record with every member of telemetry v1.
const wholeEvent = `{"ts":"2026-11-20T10:00:00.123Z","policy":"checkout-ranker","policy_version":"2026-11-01.3","env":"prod-eu","env_version":"41",` +
	`"reward_version":"r7","agent_id":"a-17","episode_id":"a-17/881","step":12,"observation":{"basket":3.2},"action":"offer_b",` +
	`"action_prob":0.31,"reward":-0.25,"reward_components":{"click":0.1,"latency":-0.35},"next_observation":{"basket":3.4},` +
	`"terminated":false,"truncated":false,"outcomes":{"conversion":1},"labels":{"region":"eu"}}`

// hostileLine is a line that must be refused with the given reason.
type hostileLine struct {
	line   string
	reason ingest.Reason
}

func hostileLines() []hostileLine {
	return []hostileLine{
		{wholeEvent[:len(wholeEvent)/2], ingest.ReasonInvalidJSON},
		{wholeEvent[:len(wholeEvent)-1], ingest.ReasonInvalidJSON},
		{strings.Repeat("[", 100_000), ingest.ReasonTooDeep},
		{`{"policy":"p","reward":1,"x":` + strings.Repeat(`{"a":`, 100_000) + strings.Repeat("}", 100_001), ingest.ReasonTooDeep},
		{`{"policy":"p","reward":1,"step":` + strings.Repeat("9", 100_000) + `}`, ingest.ReasonOutOfRange},
		{`{"policy":"p","reward":1,"ts":` + strings.Repeat("9", 100_000) + `}`, ingest.ReasonBadTimestamp},
		{`{"policy":"p","reward":1,"step":1e` + strings.Repeat("9", 1000) + `}`, ingest.ReasonOutOfRange},
		{`{"policy":"p","reward":{"value":1}}`, ingest.ReasonWrongType},
		{`{"policy":["p"],"reward":1}`, ingest.ReasonWrongType},
		{`[1,2,3]`, ingest.ReasonWrongType},
		{"{\"policy\":\"\xc3\x28\",\"reward\":1}", ingest.ReasonInvalidUTF8},
		{"{\"policy\":\"p\",\"reward\":1,\"x\":\"\xf8\x88\x80\x80\x80\"}", ingest.ReasonInvalidUTF8},
		{strings.Repeat("\x00", 5000), ingest.ReasonInvalidJSON},
		{"{\"policy\":\"p\x00\",\"reward\":1}", ingest.ReasonInvalidJSON},
		{`{"policy":"p\u0000","reward":1}`, ingest.ReasonNUL},
		{"\xef\xbb\xbf" + strings.TrimSpace(ndjsonLine("p")), ingest.ReasonInvalidJSON}, // a mark that is not at the beginning of the file
		{"\xff\xfe{\x00}\x00", ingest.ReasonInvalidJSON},
		{`{"policy":"p","reward":1,"observation":[` + strings.Repeat("0,", 100_000) + `0]}`, ingest.ReasonTooManyValues},
		{`{"policy":"` + strings.Repeat("p", 500_000) + `","reward":1}`, ingest.ReasonStringTooLong},
		{`{"policy":"p","reward":1,"x":"` + strings.Repeat("x", ingest.DefaultMaxRecord) + `"}`, ingest.ReasonTooLarge},
		{`{"reward":1}`, ingest.ReasonMissingPolicy},
		{`{"policy":"p"}`, ingest.ReasonEmptyRecord},
		{`{"policy":"p","episode":{"l":3}}`, ingest.ReasonMissingReturn},
		{`r,l,t`, ingest.ReasonInvalidJSON},
		{`<html>502 Bad Gateway</html>`, ingest.ReasonInvalidJSON},
	}
}

// TestReadHostileLines reads hostile lines of up to 100 MB among good ones from standard input. Every line is counted
// by its reason, the rest is processed, and the memory is bounded.
func TestReadHostileLines(t *testing.T) {
	const hugeSize = 100 << 20
	hostile := hostileLines()
	want := map[ingest.Reason]int64{ingest.ReasonTooLarge: 1}
	var parts []io.Reader
	for _, h := range hostile {
		want[h.reason]++
		parts = append(parts, strings.NewReader(ndjsonLine("good")+h.line+"\r\n\r\n"))
	}
	parts = append(parts, io.LimitReader(repeated('x'), hugeSize), strings.NewReader("\n"+ndjsonLine("good")))

	var dead []deadletter.Letter
	cfg := FilesConfig{
		Stdin: io.MultiReader(parts...),
		Refuse: func(e *ingest.RecordError, raw []byte) {
			l := deadletter.New("", e, raw, time.Time{})
			l.Raw = bytes.Clone(l.Raw)
			dead = append(dead, l)
		},
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var p fileProcessor
	counts, err := ReadFiles(t.Context(), cfg, []string{"-"}, &p)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
		t.Errorf("%d MiB allocated", got>>20)
	}
	checkCounts(t, counts, int64(len(hostile))+1, want)
	for i, h := range hostile {
		l := dead[i]
		if l.Reason != h.reason || l.Pos.Offset != int64(2*i+1) || !strings.HasPrefix(h.line, strings.TrimSuffix(string(l.Raw), "\r")) {
			t.Errorf("line %.40q: dead letter %v %s %.40q", h.line, l.Pos, l.Reason, l.Raw)
		}
		if l.Truncated != (len(h.line)+1 > ingest.MaxDeadLetterRaw) || l.Size < int64(len(h.line)) {
			t.Errorf("line %.40q of %d bytes: truncated %v, size %d", h.line, len(h.line), l.Truncated, l.Size)
		}
	}
	if huge := dead[len(hostile)]; huge.Size != hugeSize || !huge.Truncated || len(huge.Raw) != ingest.MaxDeadLetterRaw {
		t.Errorf("the huge line: size %d, truncated %v, %d bytes kept", huge.Size, huge.Truncated, len(huge.Raw))
	}
}

// repeated returns the same byte endlessly.
type repeated byte

func (r repeated) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r)
	}
	return len(b), nil
}

// The strings of batches must not accumulate.
func TestReadFilesReusesMemory(t *testing.T) {
	line := `{"policy":"p","reward":1,"agent_id":"` + strings.Repeat("a", ingest.MaxString) + `"}` + "\n"
	content := strings.Repeat(line, 20_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var p discard
	if _, err := ReadFiles(t.Context(), FilesConfig{Stdin: strings.NewReader(content)}, []string{"-"}, &p); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
		t.Errorf("%d MiB allocated for %d MiB of telemetry", got>>20, len(content)>>20)
	}
}

// Records before the break of a stream are processed. An incomplete record is refused, and the error contains its
// position.
func TestReadTruncated(t *testing.T) {
	var content bytes.Buffer
	for i := range 5000 {
		fmt.Fprintf(&content, `{"policy":"p%d","reward":%d,"x":"%x"}`+"\n", i%7, i, uint32(i)*2654435761)
	}
	for name, compressed := range map[string][]byte{
		"gzip": gzipped(t, content.Bytes()), "zstd": zstandard(t, content.Bytes()),
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, "cut", compressed[:len(compressed)*2/3])
			behind := writeFile(t, "behind", []byte(ndjsonLine("behind")))
			var p fileProcessor
			counts, err := ReadFiles(t.Context(), FilesConfig{}, []string{path, behind}, &p)
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("error %v, want %v", err, io.ErrUnexpectedEOF)
			}
			if want := fmt.Sprintf("read %s: interrupted after %d records", path, counts.Read); !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error %q, want it to begin with %q", err, want)
			}
			if counts.Accepted < 1000 || int64(len(p.offsets)) != counts.Accepted || counts.Refused[ingest.ReasonTruncated] > 1 {
				t.Errorf("counts %+v with %d events processed", counts, len(p.offsets))
			}
			checkCounts(t, counts, counts.Accepted, counts.Refused)
		})
	}
}

func TestReadBrokenInput(t *testing.T) {
	broken := errors.New("the disk is broken")
	whole := ndjsonLine("whole")
	var p fileProcessor
	cfg := FilesConfig{Stdin: io.MultiReader(strings.NewReader(ndjsonLine("a")+strings.TrimSuffix(whole, "\n")), failing{broken})}
	counts, err := ReadFiles(t.Context(), cfg, []string{"-"}, &p)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "standard input") {
		t.Errorf("error %v", err)
	}
	checkCounts(t, counts, 1, map[ingest.Reason]int64{ingest.ReasonTruncated: 1})

	for name, content := range map[string][]byte{
		"gzip header": gzipped(t, []byte(whole))[:5], "gzip garbage": append(gzipped(t, []byte(whole)), "garbage"...),
		"zstd header": zstandard(t, []byte(whole))[:5], "zstd garbage": append(zstandard(t, []byte(whole)), "garbage"...),
	} {
		if _, err := ReadFiles(t.Context(), FilesConfig{}, []string{writeFile(t, "f", content)}, &p); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestReadFilesThatCannotBeOpened(t *testing.T) {
	good := writeFile(t, "good", []byte(ndjsonLine("a")))
	var p fileProcessor
	_, err := ReadFiles(t.Context(), FilesConfig{}, []string{good, filepath.Join(t.TempDir(), "missing")}, &p)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: error %v", err)
	}
	if _, err = ReadFiles(t.Context(), FilesConfig{}, []string{good, t.TempDir()}, &p); err == nil {
		t.Error("a directory was read")
	}
	if len(p.offsets) > 0 {
		t.Error("something was read before the error was found")
	}
}

func TestReadFilesBatches(t *testing.T) {
	var p fileProcessor
	path := writeFile(t, "many", []byte(strings.Repeat(ndjsonLine("a"), 2*readBatch+1)))
	var read, total int64
	cfg := FilesConfig{Progress: func(r, n int64) {
		if r < read {
			t.Errorf("progress went back from %d to %d", read, r)
		}
		read, total = r, n
	}}
	counts, err := ReadFiles(t.Context(), cfg, []string{path, path}, &p)
	if err != nil {
		t.Fatal(err)
	}
	checkCounts(t, counts, 4*readBatch+2, map[ingest.Reason]int64{})
	if p.batches != 5 {
		t.Errorf("%d batches, want 5", p.batches)
	}
	if want := int64(2 * (2*readBatch + 1) * len(ndjsonLine("a"))); read != want || total != want {
		t.Errorf("progress %d of %d, want %d", read, total, want)
	}

	p = fileProcessor{err: errors.New("state is broken")}
	if _, err := ReadFiles(t.Context(), FilesConfig{}, []string{path}, &p); !errors.Is(err, p.err) {
		t.Errorf("error %v, want that of Process", err)
	}
	if p.batches != 1 {
		t.Errorf("%d batches after a failed one", p.batches)
	}
}

func TestReadFilesStopsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var p fileProcessor
	endless := readerFunc(func(b []byte) (int, error) {
		if len(p.offsets) > 1000 {
			cancel()
			return copy(b, `{"policy":"half a li`), nil
		}
		return copy(b, ndjsonLine("a")), nil
	})
	counts, err := ReadFiles(ctx, FilesConfig{Stdin: endless}, []string{"-"}, &p)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if len(counts.Refused) > 0 {
		t.Errorf("refused %v: a line that was not read to its end is no fault of the telemetry", counts.Refused)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestLineReader(t *testing.T) {
	const limit = 200_000
	for _, size := range []int{0, 1, fileBuffer - 1, fileBuffer, fileBuffer + 1, limit, limit + 1, 3 * limit} {
		for _, end := range []string{"\n", ""} {
			content := strings.Repeat("x", size) + end
			l := lineReader{src: bufio.NewReaderSize(strings.NewReader("first\n"+content), fileBuffer), limit: limit}
			if line, n, err := l.next(); string(line) != "first" || n != 5 || err != nil {
				t.Fatalf("first line %q of %d bytes, error %v", line, n, err)
			}
			if size > 0 || end != "" {
				line, n, err := l.next()
				if len(line) != min(size, limit+1) || n != int64(size) || err != nil {
					t.Errorf("line of %d: %d bytes of %d, error %v", size, len(line), n, err)
				}
			}
			if _, n, err := l.next(); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("behind the last line: %d bytes, error %v", n, err)
			}
		}
	}
}

func BenchmarkReadFiles(b *testing.B) {
	const lines = 10_000
	content := strings.Repeat(wholeEvent+"\n", lines)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		var p discard
		cfg := FilesConfig{Stdin: strings.NewReader(content)}
		if _, err := ReadFiles(b.Context(), cfg, []string{"-"}, &p); err != nil || p.events != lines {
			b.Fatal(p.events, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lines, "ns/event")
}

// discard is a Processor that only counts.
type discard struct {
	fileProcessor
	events int
}

func (d *discard) Process(_ context.Context, batch []ingest.Event) error {
	d.events += len(batch)
	return nil
}
