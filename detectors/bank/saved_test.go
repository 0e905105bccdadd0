package bank

import (
	"compress/gzip"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/gate"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// savedCase is a bank at the unit at which its snapshot was written, and the units that follow.
type savedCase struct {
	cfg  watch.Config
	next func() *ingest.Unit // returns the units, beginning with the first
	cut  int                 // number of units before the snapshot
	more int                 // number of units after it, during which a change begins
}

// shopping edits an agent's units to also have an outcome of 0 and 1 with a given mean, a very rare outcome, one that
// is constant at first, and, from unit 150 on, a new observation.
func shopping(a *agent) func(*ingest.Unit) {
	return func(u *ingest.Unit) {
		outcome := func(signal string, rate float64) {
			m := ingest.NamedMoments{Signal: signal}
			for range u.Length {
				m.Add(float64(int(a.rng.Float64() + rate)))
			}
			u.Numeric = append(u.Numeric, m)
		}
		outcome("outcome.click", .002)
		outcome("outcome.refund", 0)
		outcome("outcome.sale", .3)
		if a.made > 150 {
			m := ingest.NamedMoments{Signal: "observation.load"}
			for range u.Length {
				m.Add(a.rng.NormFloat64())
			}
			m.Q10, m.Q90 = m.Min, m.Max
			u.Numeric = append(u.Numeric, m)
		}
	}
}

// savedCases returns banks that together have everything that a snapshot can contain.
func savedCases() map[string]func() savedCase {
	shop := func(units int, edit func(a *agent, u *ingest.Unit), cut, more int) savedCase {
		cfg := episodes(2000)
		cfg.Baseline.Units = units
		cfg.Guaranteed = []watch.GivenMean{{Signal: "outcome.sale", Mean: .3, Side: "below"}}
		a := newAgent(700)
		shopped := shopping(a)
		a.edit = func(u *ingest.Unit) {
			shopped(u)
			edit(a, u)
		}
		return savedCase{cfg, a.unit, cut, more}
	}
	drift := func(a *agent, _ *ingest.Unit) {
		if a.made >= 260 {
			a.mean = -2.6
		}
	}
	return map[string]func() savedCase{
		"judged":  func() savedCase { return shop(120, drift, 250, 150) },
		"alarmed": func() savedCase { return shop(120, drift, 290, 150) },
		"provisional": func() savedCase {
			return shop(200, func(a *agent, _ *ingest.Unit) {
				if a.made >= 150 {
					a.mean = -2.5
				}
			}, 170, 250)
		},
		"fault": func() savedCase {
			return shop(120, func(a *agent, u *ingest.Unit) {
				if a.made >= 170 && a.made < 260 {
					u.Reward.NonFinite++
				}
			}, 200, 150)
		},
		"gates": func() savedCase {
			return shop(120, func(a *agent, u *ingest.Unit) {
				if a.made > 130 && a.made%2 == 0 {
					u.Shadow, u.Versions.Policy = true, "p2"
				}
			}, 200, 150)
		},
		"successor": func() savedCase {
			c := shop(120, func(a *agent, u *ingest.Unit) {
				if a.made > 150 {
					u.Versions.Policy = "p2"
				}
			}, 200, 150)
			c.cfg.OnNewVersion = watch.OnNewVersionRebaseline
			return c
		},
		"season": func() savedCase {
			cfg := episodes(2000)
			return savedCase{cfg, weekly(500, 6, weekend, 230, 0).unit, 520, 100}
		},
		"actions": func() savedCase {
			cfg := episodes(2000)
			cfg.Baseline.Units = 200
			return savedCase{cfg, newTypical(17).unit, 240, 100}
		},
		"learnt": func() savedCase {
			cfg := episodes(2000)
			cfg.Baseline.Units = 150
			return savedCase{cfg, newCourses(300).unit, 180, 200}
		},
		"blocks": func() savedCase {
			cfg := episodes(2000)
			cfg.Baseline.Units = 100
			return savedCase{cfg, newBlockAgents(11, 5, .5).block, 300, 300}
		},
	}
}

func (c *savedCase) feed(p *Policy, n int) (found []finding.Finding) {
	for range n {
		found = append(found, p.Observe(c.next(), time.Time{})...)
	}
	return found
}

// Numbers of older formats whose snapshots are kept. Those of format 9 contain what format 10 packs.
const (
	savedIn7 = "7"
	savedIn9 = "9"
)

func savedFile(format, name string) string {
	return filepath.Join("testdata", "snapshots", format, name+".cbor.gz")
}

func readSaved(t testing.TB, format, name string) (parts ingest.Parts) {
	t.Helper()
	readPacked(t, savedFile(format, name), &parts)
	return parts
}

// readPacked decodes a gzipped CBOR file.
func readPacked(t testing.TB, path string, into any) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err == nil {
		err = cbor.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A snapshot written by an older build continues like the bank that wrote it.
func TestSnapshotsOfTheFormatBefore(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	cases := savedCases()
	of := map[string][]string{savedIn7: slices.Collect(maps.Keys(cases)), savedIn9: {"actions", "judged", "season", "successor", "gates"}}
	for format, names := range of {
		for _, name := range names {
			goesOnFrom(t, format, name, cases[name])
		}
	}
}

func goesOnFrom(t *testing.T, format, name string, make func() savedCase) {
	t.Helper()
	t.Run(format+"/"+name, func(t *testing.T) {
		c := make()
		p := newBank(c.cfg)
		c.feed(p, c.cut)
		resumed := newBank(c.cfg)
		if err := resumed.Resume(readSaved(t, format, name), time.Time{}); err != nil {
			t.Fatal(err)
		}
		twin := make()
		for range c.cut {
			twin.next()
		}
		c.feed(p, c.more)
		want, got := foundBefore(t, name), twin.feed(resumed, c.more)
		for i := range min(len(got), len(want)) {
			want[i].Promise = saidBefore(got[i].Promise, want[i].Promise)
			for k := range min(len(got[i].Shifts), len(want[i].Shifts)) { // the older format had neither
				want[i].Shifts[k].Better, want[i].Shifts[k].Turn = got[i].Shifts[k].Better, got[i].Shifts[k].Turn
			}
		}
		if !alike(t, got, want) {
			t.Errorf("found %+v, want %+v", got, want)
		}
		again := resumed.Group(p.groups[0].Key)
		again.Promise.Caveats = slices.Clone(again.Promise.Caveats)
		for i, said := range again.Promise.Caveats { // sentences stay as they were written
			said = strings.Replace(said, "units are blocks of 20 steps of one agent,", "blocks of 20 steps of one agent are judged,", 1)
			again.Promise.Caveats[i] = wordsBefore.ReplaceAllString(said, "detecting a change takes at least about $1 blocks ($2 steps)")
		}
		before := judgedBefore(t, format, name, p.Group(p.groups[0].Key))
		before.Promise = saidBefore(again.Promise, before.Promise)
		if !alike(t, withoutNew(again), withoutNew(before)) {
			t.Error("the summaries differ")
		}
	})
}

// wordsBefore matches the older build's sentence about the number of blocks that a change takes.
var wordsBefore = regexp.MustCompile(`a change takes about (\d+) of them, (\d+) steps, at least`)

// newWords replaces the words of older builds.
var newWords = strings.NewReplacer(
	"a change is detected after at least about", "detecting a change takes at least about",
	"of the baseline have the signal", "in the baseline contain the signal", "has a baseline of its own", "now has its own baseline",
	" and is now ", " and is ", "; change: ", ", by ",
)

// saidBefore returns a promise in the words of the older build, if its twin uses them. That build did not report that a
// baseline covers less than a day, only that it does not cover the week, and did not reduce the promise for that.
func saidBefore(twin, p finding.Promise) finding.Promise {
	const week = "the baseline does not cover the weekly cycle twice"
	i := slices.IndexFunc(p.Caveats, func(said string) bool { return said == baseline.CaveatDay || said == baseline.CaveatWeek })
	if i < 0 || !slices.Contains(twin.Caveats, week) {
		return p
	}
	p.Caveats = slices.Clone(p.Caveats)
	if p.Caveats[i] == baseline.CaveatDay && p.Confidence == finding.ConfidenceReduced {
		p.Confidence = finding.ConfidenceKept
	}
	p.Caveats[i] = week
	return p
}

// withoutNew removes what older builds did not report: the reach, and how well rare rates are known.
func withoutNew(s finding.GroupSummary) finding.GroupSummary {
	s.Streams = slices.Clone(s.Streams)
	for i := range s.Streams {
		s.Streams[i].Reach = nil
		var notes []string
		for _, note := range s.Streams[i].Notes {
			if !finding.IsRareNote(note) {
				notes = append(notes, note)
			}
		}
		s.Streams[i].Notes = notes
	}
	return s
}

// judgedBefore returns the summary that the older build computed, if it calibrated a baseline differently. A bank
// restored from a snapshot keeps its tests, but what is calibrated after the snapshot, in fault and successor, is
// calibrated by this build. For all other snapshots, judgedBefore returns the summary of a new bank.
func judgedBefore(t *testing.T, format, name string, now finding.GroupSummary) (before finding.GroupSummary) {
	t.Helper()
	path := savedFile(format, name+".after")
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return now
	}
	readPacked(t, path, &before)
	return before
}

// foundBefore returns the findings after the snapshots of the older build, which calibrated with another dependence
// factor.
func foundBefore(t *testing.T, name string) (found []finding.Finding) {
	t.Helper()
	readPacked(t, savedFile("found", name), &found)
	return found
}

// bits returns a complete encoding of a value, including what pointers refer to.
func bits(t *testing.T, value any) []byte {
	t.Helper()
	mode, err := cbor.EncOptions{Sort: cbor.SortCanonical, NaNConvert: cbor.NaNConvertNone, Time: cbor.TimeUnixMicro}.EncMode()
	if err != nil {
		t.Fatal(err)
	}
	b, err := mode.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// alike reports whether two values are the same, except for words that were changed and for the rounding of
// calibrations: numbers may differ by a factor of 1e-8, since a restored bank keeps the thresholds of the build that
// calibrated it.
func alike(t *testing.T, got, want any) bool {
	t.Helper()
	items := func(value any) (all any) {
		if err := cbor.Unmarshal(bits(t, value), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	return alikeItems(items(got), items(want))
}

func alikeItems(got, want any) bool {
	switch want := want.(type) {
	case float64:
		x, is := got.(float64)
		return is && (math.Abs(x-want) <= 1e-8*math.Abs(want) || math.IsNaN(x) && math.IsNaN(want))
	case string:
		x, is := got.(string)
		return is && newWords.Replace(x) == newWords.Replace(want)
	case []any:
		items, is := got.([]any)
		return is && slices.EqualFunc(items, want, alikeItems)
	case map[any]any:
		items, is := got.(map[any]any)
		return is && maps.EqualFunc(items, want, alikeItems)
	}
	return reflect.DeepEqual(got, want)
}

// edited returns a part with changed fields: maps by field number.
func edited(t *testing.T, part []byte, change func(map[any]any)) []byte {
	t.Helper()
	var items map[any]any
	if err := cbor.Unmarshal(part[1:], &items); err != nil {
		t.Fatal(err)
	}
	change(items)
	b, err := cbor.EncOptions{NaNConvert: cbor.NaNConvertNone, InfConvert: cbor.InfConvertNone}.EncMode()
	if err != nil {
		t.Fatal(err)
	}
	body, err := b.Marshal(items)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{part[0]}, body...)
}

// eachQuantity visits the quantities of a group's part.
func eachQuantity(group map[any]any, visit func(map[any]any)) {
	for _, s := range group[uint64(3)].([]any) {
		for _, q := range s.(map[any]any)[uint64(3)].([]any) {
			visit(q.(map[any]any))
		}
	}
}

// What a later build has added to a snapshot is ignored, including an unknown kind of test, and everything else
// continues unchanged.
func TestUnknownTestOfASnapshot(t *testing.T) {
	c := savedCases()["judged"]()
	p := newBank(c.cfg)
	c.feed(p, c.cut)
	parts, _, err := p.Changes()
	if err != nil {
		t.Fatal(err)
	}
	parts["group/1/running"] = edited(t, parts["group/1/running"], func(group map[any]any) {
		group[99] = "a field to come"
		eachQuantity(group, func(q map[any]any) { q[99] = map[any]any{1: 2.5, 2: []int{1, 2}} })
	})
	resumed := newBank(c.cfg)
	if err := resumed.Resume(parts, time.Time{}); err != nil {
		t.Fatal(err)
	}
	twin := savedCases()["judged"]()
	for range c.cut {
		twin.next()
	}
	want, got := c.feed(p, c.more), twin.feed(resumed, c.more)
	if len(want) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("found %+v, want %+v", got, want)
	}
}

// A snapshot from before a kind of test existed keeps its baselines: the other tests continue, and the next baseline
// includes it.
func TestSimMissingTestOfASnapshot(t *testing.T) {
	c := savedCases()["judged"]()
	p := newBank(c.cfg)
	c.feed(p, c.cut)
	parts, _, err := p.Changes()
	if err != nil {
		t.Fatal(err)
	}
	const rank, clicks = uint64(5), "outcome.click"
	parts["group/1/running"] = edited(t, parts["group/1/running"], func(group map[any]any) {
		eachQuantity(group, func(q map[any]any) { delete(q, rank) })
	})
	resumed := newBank(c.cfg)
	if err := resumed.Resume(parts, time.Time{}); err != nil {
		t.Fatal(err)
	}
	before, after := shownGroup(p), shownGroup(resumed)
	if after.Baseline.ID != before.Baseline.ID {
		t.Errorf("baseline %q, want %q", after.Baseline.ID, before.Baseline.ID)
	}
	for i, s := range after.Streams {
		switch kept := before.Streams[i]; s.Signal {
		case clicks:
			if !slices.Equal(s.Armed, kept.Armed) || len(s.Armed) == 0 {
				t.Errorf("%s is judged by %q, want %q", s.Signal, s.Armed, kept.Armed)
			}
		case "return":
			if slices.Contains(s.Armed, finding.DetectorLocation) || !slices.Contains(kept.Armed, finding.DetectorLocation) {
				t.Errorf("%s is judged by %q, of which the snapshot lacks some", s.Signal, s.Armed)
			}
		}
	}
	c.feed(resumed, c.more)
	key := resumed.groups[0].Key
	if _, err := resumed.Restart(key, "why", time.Time{}); err != nil {
		t.Fatal(err)
	}
	c.feed(resumed, c.cfg.Baseline.Units)
	if armed := stateOf(t, resumed, "return").Armed; !slices.Contains(armed, finding.DetectorLocation) {
		t.Errorf("the next baseline is judged by %q", armed)
	}
}

// No field of a snapshot is lost or confused on the way to its wire form and back.
func TestEveryFieldIsSaved(t *testing.T) {
	group, all, policy := &group{}, &gate.Gates{}, &frozen{}
	for _, to := range []any{group, all, policy} {
		ingesttest.Fill(to)
	}
	same(t, runningFormat, group.wire(), func(w *groupWire) any { return w.live() }, *group)
	same(t, gatesFormat, all.Wire(), func(w *gate.Wire) any { return w.Live() }, *all)
	same(t, frozenFormat, policy.wire(), func(w *frozenWire) any { return w.live() }, *policy)
}

func same[Wire any](t *testing.T, format saved.Format[Wire], wire Wire, live func(*Wire) any, want any) {
	t.Helper()
	part, err := format.Encode(&wire)
	if err != nil {
		t.Fatal(err)
	}
	again, err := format.Decode(part)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ingesttest.Text(live(again)), ingesttest.Text(want); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
