package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

var _ Backend = (*ingesttest.Segments)(nil)

func openStore(b Backend) *Store { return NewStore(b, zerolog.Nop(), prometheus.NewRegistry()) }

func mustSave(t testing.TB, s *Store, name string, changed ingest.Parts, gone ...string) {
	t.Helper()
	if err := s.Save(name, changed, gone); err != nil {
		t.Fatal(err)
	}
}

func samePart(a, b []byte) bool { return bytes.Equal(a, b) }

func wantLoad(t *testing.T, s *Store, name string, want ingest.Parts) {
	t.Helper()
	got, err := s.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(got, want, samePart) {
		t.Fatalf("%q holds %q, want %q", name, got, want)
	}
}

func parts(kv ...string) ingest.Parts {
	p := ingest.Parts{}
	for i := 0; i < len(kv); i += 2 {
		p[kv[i]] = []byte(kv[i+1])
	}
	return p
}

func TestSavesOfWhatChanged(t *testing.T) {
	d := openDirectory(t, t.TempDir())
	s := openStore(d)
	if _, err := s.Load("bank-a"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before the first save: %v", err)
	}
	mustSave(t, s, "bank-a", parts("x", "one", "y", "two", "empty", ""))
	mustSave(t, s, "bank-a", parts("y", "deux", "z", "three"))
	want := parts("x", "one", "y", "deux", "z", "three", "empty", "")
	wantLoad(t, s, "bank-a", want)
	wantLoad(t, openStore(d), "bank-a", want)
	mustSave(t, s, "bank-a", nil, "x", "none")
	delete(want, "x")
	wantLoad(t, openStore(d), "bank-a", want)
	mustSave(t, s, "bank-a", nil) // nothing has changed
	wantLoad(t, openStore(d), "bank-a", want)
	if err := s.Save("", parts("x", "one"), nil); err == nil {
		t.Error("it was saved under no name")
	}
	if names, err := s.Names("bank-"); err != nil || !slices.Equal(names, []string{"bank-a"}) {
		t.Errorf("names %q, %v", names, err)
	}
}

// The store behaves like a map, regardless of the order of saves, removals, reopening and failed writes. Its bounds on
// written and stored bytes also hold.
func TestStoreIsAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		b := ingesttest.NewSegments()
		s := openStore(b)
		want, given := ingest.Parts{}, 0
		for range 60 {
			changed, gone := ingest.Parts{}, []string(nil)
			for range rng.IntN(4) {
				changed[fmt.Sprint("part/", rng.IntN(12))] = bytes.Repeat([]byte{byte(rng.Uint32())}, rng.IntN(3000))
			}
			if rng.IntN(10) == 0 {
				if part := fmt.Sprint("part/", rng.IntN(12)); changed[part] == nil {
					gone = append(gone, part)
				}
			}
			if rng.IntN(8) == 0 {
				b.Fail(errors.New("the disk is full"))
				if err := s.Save("bank-a", changed, gone); err == nil {
					t.Fatal("saved on a full disk")
				}
				b.Fail(nil)
			}
			mustSave(t, s, "bank-a", changed, gone...)
			for part, data := range changed {
				want[part] = data
				given += len(data)
			}
			for _, part := range gone {
				delete(want, part)
			}
			given += 300 + len(want)*(43+10) // head and index
			live := 0
			for _, data := range want {
				live += len(data)
			}
			if rng.IntN(5) == 0 {
				s = openStore(b)
				wantLoad(t, s, "bank-a", want)
			}
			// Two generations of at most three times the live bytes, each with a newest segment, plus indexes.
			if most := 6*(live+3*3000) + 2*(300+12*(43+10)); b.Held("bank-a") > most {
				t.Fatalf("%d bytes are held for %d live ones, want at most %d", b.Held("bank-a"), live, most)
			}
		}
		if 2*b.Written() > 3*given {
			t.Errorf("%d bytes written for %d given, want at most one and a half times as many", b.Written(), given)
		}
	}
}

// flips passes a segment to try with each of its bits flipped, and truncated to each length.
func flips(segment []byte, try func(damaged []byte, what string)) {
	for i := range segment {
		for bit := range 8 {
			bad := slices.Clone(segment)
			bad[i] ^= 1 << bit
			try(bad, fmt.Sprintf("bit %d of byte %d flipped", bit, i))
		}
	}
	for n := range segment {
		try(segment[:n], fmt.Sprintf("cut to %d bytes", n))
	}
	try(append(slices.Clone(segment), 0), "a byte too long")
}

// If the newest segment is damaged in any way, the previous generation is used. If an older segment that both share is
// damaged, there is an error, or no effect if nothing live is damaged.
func TestEveryDamageFallsBackOrIsRefused(t *testing.T) {
	b := ingesttest.NewSegments()
	s := openStore(b)
	one := strings.Repeat("one ", 100)
	mustSave(t, s, "bank-a", parts("x", one, "y", "two")) // 1, which all share
	before := parts("x", one, "y", "deux")
	mustSave(t, s, "bank-a", parts("y", "deux"))
	newest := parts("x", one, "y", "due", "z", "tre")
	mustSave(t, s, "bank-a", parts("y", "due", "z", "tre"))
	wantLoad(t, s, "bank-a", newest)
	damage := func(generation uint64, check func(s *Store, what string)) {
		whole, err := b.Get("bank-a", generation)
		if err != nil {
			t.Fatal(err)
		}
		flips(whole, func(damaged []byte, what string) {
			c := b.Copy()
			if err := c.Put("bank-a", generation, damaged); err != nil {
				t.Fatal(err)
			}
			check(openStore(c), what)
		})
	}
	damage(3, func(s *Store, what string) {
		wantLoad(t, s, "bank-a", before)
		if n := testutil.ToFloat64(s.metrics.fallbacks.WithLabelValues("bank")); n != 1 {
			t.Fatalf("%s: %g fallbacks counted", what, n)
		}
		// The next save replaces it, and the store works normally again.
		mustSave(t, s, "bank-a", parts("y", "zwei"))
		wantLoad(t, s, "bank-a", parts("x", one, "y", "zwei"))
	})
	damage(2, func(s *Store, _ string) { wantLoad(t, s, "bank-a", newest) })
	refused := 0
	damage(1, func(s *Store, what string) {
		got, err := s.Load("bank-a")
		switch {
		case err == nil && !maps.EqualFunc(got, newest, samePart):
			t.Fatalf("%s: %q", what, got)
		case err != nil:
			refused++
			if !isDamage(err) || !strings.Contains(err.Error(), "bank-a/1") {
				t.Fatalf("%s: %v", what, err)
			}
		}
	})
	if refused == 0 {
		t.Error("damage to what both generations share was never refused")
	}
}

func TestDamageOfBothGenerationsNamesBoth(t *testing.T) {
	d := openDirectory(t, t.TempDir())
	reg := prometheus.NewRegistry()
	s := NewStore(d, zerolog.Nop(), reg)
	mustSave(t, s, "bank-a", parts("x", "one"))
	for range 5 {
		mustSave(t, s, "bank-a", parts("y", "two"))
	}
	for generation := uint64(5); generation <= 6; generation++ {
		mustPut(t, d, "bank-a", generation, []byte("no checkpoint"))
	}
	_, err := openStore(d).Load("bank-a")
	if err == nil {
		t.Fatal("an older generation was used, which nobody has kept units for")
	}
	for _, want := range []string{d.Where("bank-a", 5), d.Where("bank-a", 6), "restore a copy, or move all files with this name aside to start with empty state"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %s: %v", want, err)
		}
	}
	if err := errors.Join(d.Remove("bank-a", 5), d.Put("bank-a", 6, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load("bank-a"); !isDamage(err) || !strings.Contains(err.Error(), d.Where("bank-a", 5)+" cannot be used: it is missing") {
		t.Errorf("with the one before missing: %v", err)
	}
	wantMetrics(t, reg, `
# HELP rewardwatch_checkpoint_fallbacks_total Damaged checkpoints replaced by the previous one, by kind.
# TYPE rewardwatch_checkpoint_fallbacks_total counter
rewardwatch_checkpoint_fallbacks_total{kind="bank"} 0
rewardwatch_checkpoint_fallbacks_total{kind="partition"} 0
# HELP rewardwatch_checkpoint_failures_total Checkpoints that could not be written or read, by kind.
# TYPE rewardwatch_checkpoint_failures_total counter
rewardwatch_checkpoint_failures_total{kind="bank"} 1
rewardwatch_checkpoint_failures_total{kind="other"} 0
rewardwatch_checkpoint_failures_total{kind="partition"} 0
`)
}

func wantMetrics(t *testing.T, reg *prometheus.Registry, want string) {
	t.Helper()
	err := testutil.GatherAndCompare(reg, strings.NewReader(want), ingest.MetricCheckpointFailure, ingest.MetricCheckpointFallbacks)
	if err != nil {
		t.Error(err)
	}
}

func TestSwappedFilesAreRefused(t *testing.T) {
	d := openDirectory(t, t.TempDir())
	s := openStore(d)
	mustSave(t, s, "partition-1", parts("state", "of 1"))
	mustSave(t, s, "partition-2", parts("state", "of 2"))
	other, err := d.Get("partition-1", 1)
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, d, "partition-2", 1, other)
	if _, err := s.Load("partition-2"); !isDamage(err) || !strings.Contains(err.Error(), `it belongs to "partition-1", generation 1`) {
		t.Errorf("got %v", err)
	}
}

// Another version is refused and never causes a fallback. Otherwise, an old build would continue from an old state.
func TestAnotherFormatVersionIsRefusedByItsNumber(t *testing.T) {
	b := ingesttest.NewSegments()
	s := openStore(b)
	for range 3 {
		mustSave(t, s, "bank-a", parts("x", "one"))
	}
	segment, err := b.Get("bank-a", 3)
	if err != nil {
		t.Fatal(err)
	}
	body := segment[:len(segment)-checksumSize]
	binary.LittleEndian.PutUint32(body[len(magic):], 9)
	if err := b.Put("bank-a", 3, binary.LittleEndian.AppendUint32(body, checksum(body))); err != nil {
		t.Fatal(err)
	}
	var version *VersionError
	if _, err := s.Load("bank-a"); !errors.As(err, &version) || !strings.Contains(err.Error(), "bank-a/3: it has a different format version: 9, "+
		"but this build reads 2 and 3; run the build that wrote it") {
		t.Errorf("got %v", err)
	}
}

// A file of version 1 is found, and distinguished from damage.
func TestVersion1IsRefusedByItsNumber(t *testing.T) {
	d := openDirectory(t, t.TempDir())
	old, err := os.ReadFile("testdata/version1.checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Where("bank-a", 0), old, 0o600); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(d.Where("bank-a", 0), "/bank-a.checkpoint") {
		t.Fatalf("version 1 lies at %s", d.Where("bank-a", 0))
	}
	s := openStore(d)
	if names, err := s.Names("bank-"); err != nil || !slices.Equal(names, []string{"bank-a"}) {
		t.Fatalf("names %q, %v", names, err)
	}
	var version *VersionError
	if _, err := s.Load("bank-a"); !errors.As(err, &version) || !strings.Contains(err.Error(), "format version: 1, but this build reads 2 and 3") {
		t.Errorf("got %v", err)
	}
	old[20] ^= 1
	if err := os.WriteFile(d.Where("bank-a", 0), old, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load("bank-a"); !isDamage(err) {
		t.Errorf("damaged: %v", err)
	}
}

// An empty save gives both generations separate copies of the last save.
func TestASaveOfNothingMakesTheLastOneSafe(t *testing.T) {
	b := ingesttest.NewSegments()
	s := openStore(b)
	mustSave(t, s, "bank-a", parts("x", "one"))
	mustSave(t, s, "bank-a", parts("y", "two"))
	mustSave(t, s, "bank-a", nil)
	want := parts("x", "one", "y", "two")
	for _, generation := range []uint64{2, 3} {
		c := b.Copy()
		if err := c.Put("bank-a", generation, nil); err != nil {
			t.Fatal(err)
		}
		wantLoad(t, openStore(c), "bank-a", want)
	}
}

// If a part that must be written again is found to be damaged, it is requested again.
func TestPartsThatAreFoundDamagedAreAskedFor(t *testing.T) {
	b := ingesttest.NewSegments()
	s := openStore(b)
	big := strings.Repeat("x", 1000)
	mustSave(t, s, "bank-a", parts("x", "one", "y", big))
	if err := b.Put("bank-a", 1, []byte("damaged")); err != nil {
		t.Fatal(err)
	}
	if err := s.Save("bank-a", parts("y", big), nil); !errors.Is(err, ingest.ErrPartsLost) || !isDamage(err) {
		t.Fatalf("got %v", err)
	}
	mustSave(t, s, "bank-a", parts("x", "one", "y", big))
	wantLoad(t, openStore(b), "bank-a", parts("x", "one", "y", big))
}

// A temporary error, such as one of a network, is not damage that causes a fallback.
func TestABackendThatFailsIsNoDamage(t *testing.T) {
	d := openDirectory(t, t.TempDir())
	s := openStore(d)
	mustSave(t, s, "bank-a", parts("x", "one"))
	mustSave(t, s, "bank-a", parts("x", "two"))
	if err := errors.Join(os.Remove(d.Where("bank-a", 2)), os.Mkdir(d.Where("bank-a", 2), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load("bank-a"); err == nil || isDamage(err) {
		t.Errorf("got %v", err)
	}
}

func TestSavesAtTheSameTime(t *testing.T) {
	s := openStore(openDirectory(t, t.TempDir()))
	var wg sync.WaitGroup
	for i := range 8 {
		name := fmt.Sprint("bank-", i/2)
		wg.Go(func() {
			for range 5 {
				if err := s.Save(name, parts("x", name), nil); err != nil {
					t.Error(err)
				}
				if got, err := s.Load(name); err != nil || string(got["x"]) != name {
					t.Errorf("%q, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzDecode(f *testing.F) {
	f.Add(encode("bank-a", 3, parts("x", "one"), index{"y": {generation: 2, offset: 40, length: 3}}))
	f.Add(encode("", 0, nil, index{}))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, body []byte) {
		// The checksum is corrected, so that the data before it is parsed.
		for _, segment := range [][]byte{body, binary.LittleEndian.AppendUint32(slices.Clone(body), checksum(body))} {
			_, generation, live, err := decode(segment)
			if err != nil {
				continue
			}
			for part, at := range live {
				data, whole := at.cut(segment)
				if whole && at.generation == generation && checksum(data) != at.sum {
					t.Errorf("part %q does not have its checksum", part)
				}
			}
		}
	})
}

// stubborn is a backend that temporarily returns no segments.
type stubborn struct {
	*ingesttest.Segments
	failing error
}

func (b *stubborn) Get(name string, generation uint64) ([]byte, error) {
	if b.failing != nil {
		return nil, b.failing
	}
	return b.Segments.Get(name, generation)
}

// If parts could temporarily not be read and were saved again, the previous save remains for a fallback.
func TestPartsThatCouldNotBeReadForAMoment(t *testing.T) {
	b := &stubborn{Segments: ingesttest.NewSegments()}
	s := openStore(b)
	mustSave(t, s, "bank-a", parts("large", strings.Repeat("x", 1000), "small", "1"))
	mustSave(t, s, "bank-a", parts("other", "1"))
	b.failing = errors.New("too many open files")
	if err := s.Save("bank-a", parts("large", "y"), nil); !errors.Is(err, ingest.ErrPartsLost) {
		t.Fatalf("a save that has to read gives %v", err)
	}
	b.failing = nil
	all := parts("large", "y", "small", "1", "other", "1")
	mustSave(t, s, "bank-a", all)
	wantLoad(t, openStore(b), "bank-a", all)
	if err := b.Put("bank-a", 3, []byte("damaged")); err != nil {
		t.Fatal(err)
	}
	wantLoad(t, openStore(b), "bank-a", parts("large", strings.Repeat("x", 1000), "small", "1", "other", "1"))
}

// A file whose name is too long for a file name is also found.
func TestVersion1OfALongNameIsRefusedByItsNumber(t *testing.T) {
	d := openDirectory(t, t.TempDir())
	old, err := os.ReadFile("testdata/version1.checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Where("bank-"+strings.Repeat("a", 300), 0), old, 0o600); err != nil {
		t.Fatal(err)
	}
	var version *VersionError
	if _, err := openStore(d).Names("bank-"); !errors.As(err, &version) {
		t.Errorf("got %v", err)
	}
}

// resealed appends the checksum of body.
func resealed(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(slices.Clone(body), checksum(body))
}

// encode returns a segment in one piece.
func encode(name string, generation uint64, parts ingest.Parts, live index) []byte {
	pieces, _, err := encodePieces(name, generation, parts, live)
	if err != nil {
		panic(err)
	}
	return bytes.Join(pieces, nil)
}

// A group saves about two thirds as much with each unit as with a new baseline. The baseline then remains in its
// segment, and is not written again with each save.
func TestBaselinesAreNotCarried(t *testing.T) {
	b := ingesttest.NewSegments()
	s := openStore(b)
	running := func(save int) []byte { return bytes.Repeat([]byte{byte(save)}, 71_000) }
	mustSave(t, s, "bank-a", ingest.Parts{"frozen": bytes.Repeat([]byte{1}, 40_000), "running": running(0)})
	first := b.Written()
	for i := range 10 {
		mustSave(t, s, "bank-a", ingest.Parts{"running": running(i + 1)})
	}
	if each := (b.Written() - first) / 10; each < 71_000 || each > 72_000 {
		t.Errorf("%d bytes are written with each save, want some 71,000", each)
	}
}

// Lend passes the same parts that Load returns.
func TestLending(t *testing.T) {
	s := openStore(openDirectory(t, t.TempDir()))
	sure := errors.New("seen")
	lent := func(name string) (got ingest.Parts) {
		t.Helper()
		err := s.Lend(name, func(parts ingest.Parts) error {
			got = ingest.Parts{}
			for part, data := range parts {
				got[part] = bytes.Clone(data)
			}
			return sure
		})
		if !errors.Is(err, sure) {
			t.Fatal(err)
		}
		return got
	}
	if err := s.Lend("bank-a", func(ingest.Parts) error { return sure }); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before the first save: %v", err)
	}
	mustSave(t, s, "bank-a", parts("x", strings.Repeat("one", 1000), "y", "two"))
	mustSave(t, s, "bank-a", parts("y", "deux"))
	mustSave(t, s, "bank-b", parts("x", strings.Repeat("1", 100)))
	for range 3 {
		for name, want := range map[string]ingest.Parts{
			"bank-a": parts("x", strings.Repeat("one", 1000), "y", "deux"), "bank-b": parts("x", strings.Repeat("1", 100)),
		} {
			if got := lent(name); !maps.EqualFunc(got, want, samePart) {
				t.Fatalf("%q holds %q, want %q", name, got, want)
			}
			wantLoad(t, s, name, want)
		}
	}
}

// Lent memory is reused. The test keeps all of it, so that no new memory can be at the same address. The pool may drop
// some memory, and does so under the race detector.
func TestLendingUsesMemoryAgain(t *testing.T) {
	s := openStore(openDirectory(t, t.TempDir()))
	mustSave(t, s, "bank-a", parts("x", strings.Repeat("one", 1000)))
	lent, again := map[*byte]bool{}, 0
	for range 100 {
		if err := s.Lend("bank-a", func(parts ingest.Parts) error {
			at := &parts["x"][0]
			if lent[at] {
				again++
			}
			lent[at] = true
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if again < 20 {
		t.Errorf("%d of 100 checkpoints were read into memory that was lent before", again)
	}
}
