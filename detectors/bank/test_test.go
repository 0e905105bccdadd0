package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/rarity"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// The tests of a quantity, nil where it has none of the kind.

func noveltyOf(q *stream.Quantity) *detectors.Novelty {
	t, _ := stream.TestOf[stream.NoveltyTest](q)
	return t.Novelty
}

func rarityOf(q *stream.Quantity) *rarity.Test {
	if t, has := stream.TestOf[*stream.RarityTest](q); has {
		return t.Test
	}
	return nil
}

func shapeOf(q *stream.Quantity) *stream.ShapeTest {
	t, _ := stream.TestOf[*stream.ShapeTest](q)
	return t
}

func givenOf(q *stream.Quantity) *stream.GivenTest {
	t, _ := stream.TestOf[*stream.GivenTest](q)
	return t
}

// drop removes the test of a type.
func drop[T stream.Test](q *stream.Quantity) {
	q.Tests = slices.DeleteFunc(q.Tests, func(t stream.TestOfKind) bool {
		_, is := t.Test.(T)
		return is
	})
}
