package stream

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/rarity"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// No field of a test is lost or confused on the way to its wire form and back.
func TestEveryTestIsSaved(t *testing.T) {
	values := make([]float64, 100)
	for i := range values {
		values[i] = float64(i)
	}
	shape := &ShapeTest{}
	rank, frequency := &detectors.RankTest{}, &detectors.FrequencyTest{}
	novelty, rare, given := &detectors.Novelty{}, &rarity.Test{}, &GivenTest{}
	for _, to := range []any{shape, rank, frequency, novelty, rare, given} {
		ingesttest.Fill(to)
	}
	shape.Window, shape.Held = 50, values[:20]
	if !shape.follow(detectors.NewRanks(values), shape.Held) {
		t.Fatal("no window")
	}
	q := &Quantity{}
	tests := []Test{NewRankTest(rank), NewFrequencyTest(frequency), NoveltyTest{novelty}, &RarityTest{Test: rare}, shape, given}
	for i, of := range tests {
		q.Tests = append(q.Tests, TestOfKind{of, &TestKinds[i]})
	}
	w := saveAgain(t, q.wire())
	again := w.live()
	if len(again.Tests) != len(TestKinds) {
		t.Fatalf("%d tests of %d kinds", len(again.Tests), len(TestKinds))
	}
	got := ingesttest.Text(testsOf(&again))
	if want := ingesttest.Text(everyTest{rank, frequency, novelty, rare, shape, given}); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// saveAgain returns the wire form as it is read from a checkpoint.
func saveAgain[W any](t *testing.T, wire W) W {
	t.Helper()
	format := saved.Format[W]{Version: 1}
	part, err := format.Encode(&wire)
	if err != nil {
		t.Fatal(err)
	}
	again, err := format.Decode(part)
	if err != nil {
		t.Fatal(err)
	}
	return *again
}

// No field of an alert is lost on the way to its wire form and back.
func TestEveryAlertIsSaved(t *testing.T) {
	var a Alert
	ingesttest.Fill(&a)
	w := saveAgain(t, a.wire())
	again := w.live()
	if got, want := ingesttest.Text(again), ingesttest.Text(a); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

type everyTest struct {
	Rank      *detectors.RankTest
	Frequency *detectors.FrequencyTest
	Novelty   *detectors.Novelty
	Rarity    *rarity.Test
	Shape     *ShapeTest
	Given     *GivenTest
}

func testsOf(q *Quantity) everyTest {
	novelty, _ := TestOf[NoveltyTest](q)
	rare, _ := TestOf[*RarityTest](q)
	shape, _ := TestOf[*ShapeTest](q)
	given, _ := TestOf[*GivenTest](q)
	return everyTest{q.Rank(), q.Frequency(), novelty.Novelty, rare.Test, shape, given}
}
