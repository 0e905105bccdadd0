package trail

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func TestTrailFindsItsUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var tr Trail
	var units []*ingest.Unit
	walk := detectors.CUSUM{Height: 2, Walk: 1, StartedAt: 5}
	test := stream.NewRankTest(&detectors.RankTest{Walks: detectors.Walks{Branches: []detectors.CUSUM{walk}}})
	walks := &stream.Stream{Quantities: []*stream.Quantity{{Tests: []stream.TestOfKind{{Test: test, Kind: &stream.TestKinds[0]}}}}}
	for i := range int64(2000) {
		u := &ingest.Unit{
			First: ingest.Position{Partition: ingest.Partition(rng.IntN(3)), Offset: i}, Last: ingest.Position{Offset: i + 2},
		}
		u.Pos = ingest.Position{Partition: u.First.Partition, Offset: i + 3}
		units = append(units, u)
		tr.Add(finding.UnitRef{Ordinal: i, Pos: u.Pos, First: u.First}, u)
		tr.Prune([]*stream.Stream{walks})
		if got := tr.Last().Ordinal; got != i {
			t.Fatalf("last unit %d, want %d", got, i)
		}
		if i%97 > 0 {
			continue
		}
		for back := range min(i+1, stream.TrailUnits) {
			if got := tr.Ref(i - back).Ordinal; got != i-back {
				t.Fatalf("unit %d of %d is %d", i-back, i, got)
			}
		}
	}
	if start, next := tr.Ref(5).Ordinal, tr.Ref(6).Ordinal; start != 5 || next < 6 || next > 2000-stream.TrailUnits {
		t.Errorf("the start of a walk at unit 5 is %d, the first known unit after it %d", start, next)
	}
	if len(tr.older) != 1 {
		t.Errorf("%d older references are kept", len(tr.older))
	}
	for _, span := range [][2]int64{{1999, 1999}, {1700, 1999}, {1500, 1999}, {1700, 1750}, {1600, 1600}} {
		onset := span[0]
		want := map[ingest.Partition]ingest.Range{}
		for i := onset; i <= span[1]; i++ {
			u := units[i]
			last := u.Last.Offset
			if i == onset {
				last = u.Pos.Offset
			}
			r, seen := want[u.Pos.Partition]
			if !seen {
				r = ingest.Range{Partition: u.Pos.Partition, First: u.First.Offset}
			}
			r.Last = max(r.Last, last)
			want[u.Pos.Partition] = r
		}
		got := tr.Offsets(tr.Ref(onset), span[1])
		for i, r := range got {
			if r != want[r.Partition] || i > 0 && got[i-1].Partition >= r.Partition {
				t.Errorf("offsets %v of units %v, want %v", got, span, want)
			}
		}
		if len(got) != len(want) {
			t.Errorf("offsets %v of units %v, want %v", got, span, want)
		}
	}
}

// drawn returns a unit of two agents with arbitrary numbers.
func drawn(rng *rand.Rand, ordinal int64) (finding.UnitRef, *ingest.Unit) {
	position := func() ingest.Position {
		return ingest.Position{Partition: ingest.Partition(rng.Int32()), Offset: int64(rng.Uint64()), Record: rng.Int32()}
	}
	u := &ingest.Unit{Agent: fmt.Sprint("agent-", rng.IntN(2)), First: position(), Pos: position(), EndTS: int64(rng.Uint64())}
	if u.Last.Offset = int64(rng.Uint64()); rng.IntN(3) == 0 {
		u.Last.Offset = math.MaxInt64
	}
	u.Episode = fmt.Sprint(u.Agent, "/", rng.IntN(1000))
	return finding.UnitRef{Ordinal: ordinal, Agent: u.Agent, Episode: u.Episode, Pos: u.Pos, First: u.First, TS: u.EndTS}, u
}

// A trail that was written and read finds the same units, including those added to both later, and drops the same
// ones.
func TestTrailIsWrittenWhole(t *testing.T) {
	for _, cut := range []int64{0, 1, 63, 64, 65, 500, 511, 512, 513, 575, 576, 577, 1000, 1500} {
		rng := rand.New(rand.NewPCG(7, uint64(cut)))
		walk := detectors.CUSUM{Height: 2, Walk: 1, StartedAt: cut / 3}
		test := stream.NewRankTest(&detectors.RankTest{Walks: detectors.Walks{Branches: []detectors.CUSUM{walk}}})
		walks := []*stream.Stream{{Quantities: []*stream.Quantity{{Tests: []stream.TestOfKind{{Test: test, Kind: &stream.TestKinds[0]}}}}}}
		var tr, again Trail
		var units []finding.UnitRef
		for o := range cut + 300 {
			if o == cut {
				again = rewritten(t, &tr)
			}
			at, u := drawn(rng, o)
			units = append(units, at)
			tr.Add(at, u)
			tr.Prune(walks)
			if o < cut {
				continue
			}
			again.Add(at, u)
			again.Prune(walks)
			if o%13 > 0 && o%packUnits > 1 {
				continue
			}
			for _, asked := range []int64{0, cut / 3, cut/3 + 1, o - 511, o - 64, o} {
				if want, got := tr.Ref(asked), again.Ref(asked); got != want || asked > o-512 && asked >= 0 && asked <= o && got != units[asked] {
					t.Fatalf("read after %d units, unit %d of %d is %+v, want %+v", cut, asked, o, got, want)
				}
			}
			if want, got := tr.Offsets(units[o/2], o), again.Offsets(units[o/2], o); !reflect.DeepEqual(got, want) {
				t.Fatalf("read after %d units, the offsets are %v, want %v", cut, got, want)
			}
		}
		if want, got := rewritten(t, &tr), rewritten(t, &again); !reflect.DeepEqual(got, want) {
			t.Errorf("read after %d units and written again it is another", cut)
		}
	}
}

// rewritten returns a trail as it is read from its written form. Prefixes of that are refused.
func rewritten(t *testing.T, tr *Trail) (again Trail) {
	t.Helper()
	b, err := tr.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := again.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(b); n += 1 + n/3 {
		if new(Trail).UnmarshalBinary(b[:n]) == nil {
			t.Fatalf("cut to %d of %d bytes it is accepted", n, len(b))
		}
	}
	return again
}

// The usual units of one agent take few bytes.
func TestTrailIsSmall(t *testing.T) {
	var tr Trail
	for o := range int64(2000) {
		at := ingest.Position{Partition: 3, Offset: 1000 + 50*o}
		last := ingest.Position{Partition: 3, Offset: 1049 + 50*o}
		r := finding.UnitRef{
			Ordinal: o, Agent: "agent-17", Episode: fmt.Sprint("agent-17/", o), Pos: last, First: at, TS: (1_800_000_000 + 20*o) * 1e9,
		}
		tr.Add(r, &ingest.Unit{Last: last})
		tr.Prune(nil)
	}
	size := 0
	for _, pack := range tr.packs {
		size += cap(pack)
	}
	if units := len(tr.packs) * packUnits; size > 30*units {
		t.Errorf("%d bytes for %d units", size, units)
	}
}

// Units leave the trail without their names becoming strings again, unless a walk started there.
func TestLeavingTakesNoMemory(t *testing.T) {
	var tr Trail
	refs := make([]finding.UnitRef, 4*stream.TrailUnits)
	for o := range refs {
		refs[o] = finding.UnitRef{Ordinal: int64(o), Agent: fmt.Sprint("agent-", o%7), Episode: fmt.Sprint("agent-", o%7, "/", o)}
	}
	next := 0
	add := func(n int) {
		for range n {
			tr.Add(refs[next], &ingest.Unit{})
			tr.Prune(nil)
			next++
		}
	}
	add(2 * stream.TrailUnits)
	const packs = 8
	each := testing.AllocsPerRun(1, func() { add(packs * packUnits) })
	if most := 3.0 * packs; each > most { // a pack, and occasionally a longer list of packs
		t.Errorf("%v allocations for %d packs of units, want at most %v", each, packs, most)
	}
}

// Data that are not a trail are refused or read as one, but never cause a panic.
func FuzzTrail(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	var tr Trail
	for o := range int64(3) {
		tr.Add(drawn(rng, o))
	}
	b, err := tr.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var tr Trail
		if tr.UnmarshalBinary(b) == nil {
			tr.Ref(0)
			_ = rewritten(t, &tr)
		}
	})
}

// The actions of the last units are known, also after they were written and read, in the order in which floats are
// summed.
func TestActionsAreThoseOfTheLastUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	names := []string{"", "buy", "buy more", "sell", "hold"}
	var a Actions
	ring := make([]actionsOf, 0, stream.CurrentUnits)
	n := 0
	for o := range int64(1500) {
		var counts []ingest.Count
		for _, name := range names[rng.IntN(len(names)):] {
			if rng.IntN(3) > 0 {
				counts = append(counts, ingest.Count{Name: name, N: rng.Int64N(1000), Reward: rng.NormFloat64()})
			}
		}
		a.Add(o, counts)
		if len(counts) > 0 {
			if u := (actionsOf{o, counts}); len(ring) < stream.CurrentUnits {
				ring = append(ring, u)
			} else {
				ring[n%stream.CurrentUnits] = u
			}
			n++
		}
		if o%77 == 0 {
			w := a.Wire()
			a = w.Live()
		}
		if o%13 > 0 {
			continue
		}
		onset := o - rng.Int64N(300)
		var want []stream.ActionCounts
		total := map[string]int64{}
		for _, u := range ring {
			for _, c := range u.counts {
				total[c.Name] += c.N
			}
			if u.ordinal >= onset {
				want = append(want, u.counts)
			}
		}
		if got := a.Since(onset); !reflect.DeepEqual(got, want) {
			t.Fatalf("at unit %d, actions of %d units since %d, want %d", o, len(got), onset, len(want))
		}
		if got := a.Totals(); !maps.Equal(got, total) {
			t.Fatalf("at unit %d, actions %v, want %v", o, got, total)
		}
	}
	if w := a.Wire(); w.N != int64(n) || len(w.Packs) > stream.CurrentUnits/packActions+1 {
		t.Errorf("written with %d units in %d packs, want %d", w.N, len(w.Packs), n)
	}
}

// A damaged pack yields fewer actions or other ones, but neither a panic nor memory that its bytes cannot fill.
func TestDamagedActionsAreRead(t *testing.T) {
	var whole Actions
	for o := range int64(4) {
		whole.Add(o, []ingest.Count{{Name: "buy", N: 3, Reward: 0.5}, {Name: "sell", N: 1 << 40, Reward: -1}})
	}
	pack := whole.packs[0]
	read := func(damaged []byte) {
		w := ActionsWire{Packs: [][]byte{damaged}, N: whole.n}
		a := w.Live()
		for _, counts := range a.Since(0) {
			if len(counts) > len(damaged) {
				t.Errorf("%d actions in %d bytes", len(counts), len(damaged))
			}
		}
	}
	for i := range pack {
		read(slices.Clip(pack[:i]))
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			damaged := slices.Clone(pack)
			damaged[i] = b
			read(damaged)
		}
	}
	read(binary.AppendVarint(binary.AppendVarint(nil, 0), math.MaxInt64))
}
