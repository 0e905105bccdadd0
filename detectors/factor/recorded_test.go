//go:build benchdetection

package factor

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

var recorded = flag.String("recorded", "", "directory with the recordings of testdata/recordings.py")

// recording holds the steps of episodes of an environment, with the same change in all of them, or none. Its exported
// fields are the header that recordings.py writes.
type recording struct {
	Env, Change, Cause, Kind              string
	Seed, Observations, Actions, Episodes int
	steps                                 []Episode
}

// healthyFresh is the number of healthy episodes at the end of a recording that are not used to learn the laws.
const healthyFresh = 300

// windows returns the numbers of changed episodes to judge.
func windows() []int { return []int{20, 50, 100} }

func (r *recording) vocabulary() Vocabulary {
	if r.Kind == "cat" {
		return vocabulary(r.Observations, 0, r.Actions)
	}
	return vocabulary(r.Observations, r.Actions, 0)
}

// reader reads recordings until the first error.
type reader struct {
	*bufio.Reader
	err error
}

func (in *reader) bytes(n int) []byte {
	b := make([]byte, n)
	if in.err == nil {
		_, in.err = io.ReadFull(in, b)
	}
	return b
}

func (in *reader) int() int32 { return int32(binary.LittleEndian.Uint32(in.bytes(4))) }

func (in *reader) floats(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(in.bytes(4)))
	}
	return out
}

// next returns the next recording; nil at the end.
func (in *reader) next() *recording {
	line, err := in.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return nil
	}
	r := &recording{}
	if in.err = err; err == nil {
		in.err = json.Unmarshal(line, r)
	}
	seed := uint64(r.Seed)
	for _, b := range []byte(r.Env + r.Change) {
		seed = ingest.Mix(seed + uint64(b))
	}
	for range r.Episodes {
		e := make(Episode, in.int())
		for i := range e {
			seed += ingest.MixStep
			e[i] = in.step(r, ingest.Mix(seed))
		}
		r.steps = append(r.steps, e)
	}
	if r.Env == "bandit" { // episodes of one step
		joined := slices.Collect(slices.Chunk(r.steps, 20))
		r.steps = nil
		for _, episodes := range joined {
			r.steps = append(r.steps, slices.Concat(episodes...))
		}
	}
	return r
}

// step reads a step: its number, whether there is a next step, whether it terminates the episode, its observation, its
// action, its reward, and the next observation.
func (in *reader) step(r *recording, key uint64) Step {
	s := Step{Key: key, Number: in.int()}
	flags := in.bytes(2)
	s.Terminated = flags[1] == 1
	s.Observation = in.floats(r.Observations)
	if r.Kind == "cat" {
		s.Category = int(in.floats(1)[0])
	} else {
		s.Action = in.floats(r.Actions)
	}
	s.Reward = in.floats(1)[0]
	if next := in.floats(r.Observations); flags[0] == 1 {
		s.Next = next
	}
	return s
}

// outcome counts verdicts.
type outcome struct{ right, unknown, wrong int }

// tallies holds outcomes by change and by number of episodes.
type tallies map[string]map[int]outcome

func (t tallies) add(row string, window int, v *Verdict, cause string) {
	if t[row] == nil {
		t[row] = map[int]outcome{}
	}
	o := t[row][window]
	switch v.Cause.String() {
	case cause:
		o.right++
	case Unknown.String():
		o.unknown++
	default:
		o.wrong++
	}
	t[row][window] = o
}

func (t tallies) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-18s", "right/unknown/wrong")
	for _, n := range windows() {
		fmt.Fprintf(&b, "%14d", n)
	}
	for _, row := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(&b, "\n%-18s", row)
		for _, n := range windows() {
			o := t[row][n]
			fmt.Fprintf(&b, "%14s", fmt.Sprintf("%d/%d/%d", o.right, o.unknown, o.wrong))
		}
	}
	return b.String()
}

// TestBenchCauses prints how often the cause of recorded changes is found. At 100 episodes, at most 4 of 203 may be
// wrong, and no law may move in more than 1 % of the healthy windows.
func TestBenchCauses(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(*recorded, "*.bin"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings in %q: %v; see make bench-causes", *recorded, err)
	}
	found, judged, moved := tallies{}, 0, 0
	for _, path := range files {
		n, m := judgeFile(t, path, found)
		judged, moved = judged+n, moved+m
	}
	fmt.Printf("%s\nhealthy windows in which a law moved: %d of %d\n", found.table(), moved, judged)
	all := found["all"][100]
	if changes := all.right + all.unknown + all.wrong; 203*all.wrong > 4*changes {
		t.Errorf("%d of %d causes are wrong", all.wrong, changes)
	}
	if 100*moved > judged {
		t.Errorf("a law moved in %d of %d healthy windows", moved, judged)
	}
}

// judgeFile learns from the healthy recording at the beginning of a file and judges the others. It returns the number
// of healthy windows, and the number of those in which a law moved.
func judgeFile(t *testing.T, path string, found tallies) (judged, moved int) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in := &reader{Reader: bufio.NewReader(file)}
	base := in.next()
	if base == nil || len(base.steps) < healthyFresh+LeastEpisodes {
		t.Fatalf("%s: too few healthy episodes: %v", path, in.err)
	}
	n := len(base.steps) - healthyFresh
	v := base.vocabulary()
	v.States = v.discrete(base.steps[:n])
	m := Learn(v, base.steps[:n], defaultBytes)
	s := NewScorer(m)
	fresh := scored(s, base.steps[n:])
	for _, size := range windows() {
		for window := range slices.Chunk(fresh, size) {
			v := verdictOn(m, window)
			judged++
			if slices.ContainsFunc(v.Factors[:], func(f Movement) bool { return f.Moved }) {
				moved++
			}
		}
	}
	for r := in.next(); r != nil; r = in.next() {
		units := scored(s, r.steps)
		for _, size := range windows() {
			v := verdictOn(m, units[:size])
			for _, row := range []string{"all", r.Env, "by " + r.Cause} {
				found.add(row, size, &v, r.Cause)
			}
		}
	}
	if in.err != nil {
		t.Fatalf("%s: %v", path, in.err)
	}
	return judged, moved
}

func scored(s *Scorer, episodes []Episode) []Unit {
	out := make([]Unit, len(episodes))
	for i := range episodes {
		out[i] = s.Score(episodes[i])
	}
	return out
}

// verdictOn returns the verdict on episodes, compared with the baseline.
func verdictOn(m *Model, units []Unit) Verdict {
	var s Signs
	scored := make([]Scored, len(units))
	for i := range units {
		scored[i] = units[i].Scored
		s.sum(&units[i].Signs)
	}
	return m.judge(scored, &s)
}
