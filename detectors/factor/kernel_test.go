package factor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The sums of products in assembly equal the plain ones to the last bit, for all lengths.
func TestKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		return x
	}
	for n := range maxFeatures + 1 {
		x := random(n)
		strips := random((&regression{p: n}).triangle().size())
		if got, want := squaredLength(strips, x), plainSquaredLength(strips, x); got != want {
			t.Errorf("%d numbers: squared length %v, want %v", n, got, want)
		}
		for q := range 20 {
			y, want := random(q+1), make([]float32, q)
			behind := y[q]
			strips := random(shape{rows: q, columns: n + 1}.size())
			linear(y[:q], strips, x)
			plainLinear(want, strips, x)
			if !slices.Equal(y[:q], want) || y[q] != behind {
				t.Errorf("%d numbers: predictions are %v, want %v and %v behind", n, y, want, behind)
			}
		}
	}
}

// Standardized features in assembly equal the plain ones to the last bit, for all layouts, with and without the next
// observation.
func TestStandardize(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		d := rng.IntN(33)
		changes := d + rng.IntN(20)
		random := func() []float32 {
			x := make([]float32, changes+d+wide)
			for i := range x {
				x[i] = float32(rng.NormFloat64())
			}
			return x[:changes+d]
		}
		x, centre, inverse := random(), random(), random()
		want := append(make([]float32, 0, cap(x)), x...)
		n, each := changes, 0
		if rng.IntN(2) == 0 {
			n, each = changes+d, d
		}
		standardize(x[:n], centre, inverse, changes, each)
		plainStandardize(want[:n], centre, inverse, changes, each)
		if !slices.Equal(x[:n], want[:n]) {
			t.Fatalf("%d of %d features, %d changes: %v, want %v", n, changes+d, each, x[:n], want[:n])
		}
	}
}

// Predictions and support in assembly equal the plain ones to the last bit.
func TestExpect(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	inside := 0
	for range 3000 {
		r := &regression{p: rng.IntN(30), q: 1 + rng.IntN(12)}
		random := func(n int) []float32 {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(rng.NormFloat64())
			}
			return x
		}
		l := &leaf{inverse: random(r.triangle().size()), beta: random(r.betas().size())}
		j := &judge{regression: r, x: random(r.p), predicted: make([]float32, r.q)}
		if l.radius = plainSquaredLength(l.inverse, j.x); rng.IntN(2) == 0 {
			l.radius = math.Nextafter32(l.radius, -1)
		}
		if r.p > 0 && rng.IntN(20) == 0 {
			j.x[rng.IntN(r.p)] = unscored
		}
		want := make([]float32, r.q)
		plain := judge{regression: r, x: j.x, predicted: want}
		got, supported := expect(j, l), plainExpect(&plain, l)
		if got != supported || !slices.Equal(j.predicted, want) {
			t.Fatalf("%d features: %t, %v, want %t, %v", r.p, got, j.predicted, supported, want)
		}
		if got {
			inside++
		}
	}
	if inside < 1000 || inside > 2000 {
		t.Errorf("%d of 3000 are supported", inside)
	}
}

// Scores in assembly equal the plain ones to the last bit, for laws of any size with and without ties. Like those of a
// step, they begin at the first part with a leaf, and leave the lanes before it as they are.
func TestScores(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	unaligned := 0
	for range 2000 {
		parts := 1 + rng.IntN(4)
		first := []int{0}
		for range parts {
			first = append(first, first[len(first)-1]+1+rng.IntN(10))
		}
		n := first[parts]
		got, want := newLanes(n), newLanes(n)
		for k := range n {
			got.y[k], got.expected[k] = float32(math.Exp(9*rng.NormFloat64()))*float32(rng.IntN(3)-1), float32(rng.IntN(9)-4)
			got.unit[k], got.blur[k] = float32(1+rng.IntN(3)), float32(rng.IntN(2))*rng.Float32()
			if got.seeds[k] = rng.Uint64(); rng.IntN(9) == 0 {
				got.seeds[k] = -uint64(rng.IntN(2)) // the smallest and the largest score
			}
		}
		copy(want.y, got.y)
		copy(want.expected, got.expected)
		copy(want.unit, got.unit)
		copy(want.blur, got.blur)
		copy(want.seeds, got.seeds)
		var judges, plain []judge
		for i := range parts {
			cut := got.cut(first[i], first[i+1])
			size := 1 + rng.IntN(sketchSize)
			if rng.IntN(2) == 0 {
				size = sketchSize
			}
			l := &leaf{size: int32(size)}
			for k := range cut.y {
				law, apart := make([]float64, size), 1+float64(rng.IntN(2))*rng.Float64()
				for at := range law {
					law[at] = float64(cut.y[k]/cut.unit[k]-cut.expected[k]) + apart*float64(rng.IntN(20)-10)
				}
				l.law = append(l.law, planted(keys(evenly(law, size)), size)...)
			}
			if rng.IntN(5) == 0 {
				l = nil
			}
			a, b := judge{lanes: cut}, judge{lanes: want.cut(first[i], first[i+1])}
			a.take(l)
			b.take(l)
			judges, plain = append(judges, a), append(plain, b)
		}
		begin := max(0, slices.IndexFunc(judges, func(j judge) bool { return j.leaf != nil }))
		if first[begin]%wide != 0 {
			unaligned++
		}
		score(judges[begin:], &got, first[begin], n)
		plainScore(plain[begin:], &want, first[begin], n)
		for i, j := range judges {
			w := plain[i]
			if j.leaf != nil && (!slices.Equal(j.ranks, w.ranks) || !slices.Equal(j.ties, w.ties)) || !slices.Equal(j.keys, w.keys) || !same(j.z, w.z) {
				t.Fatalf("part %d of %d with laws of %d: keys %v, ranks %v, ties %v, scores %v, want %v, %v, %v, %v",
					i, parts, j.size, j.keys, j.ranks, j.ties, j.z, w.keys, w.ranks, w.ties, w.z)
			}
		}
	}
	if unaligned < 100 {
		t.Errorf("%d of 2000 begin between two multiples of %d", unaligned, wide)
	}
}

// Sums in assembly equal the plain ones to the last bit, with and without scores of a step and of the step before.
func TestAddedLanes(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for n := range 40 {
		l, got, want := newLanes(n), newSums(n), newSums(n)
		got.reset()
		want.reset()
		for range 10 {
			for k := range n {
				l.z[k], l.y[k], l.unit[k], l.expected[k] = float32(rng.NormFloat64()), float32(rng.NormFloat64()), 1+rng.Float32(), float32(rng.NormFloat64())
				if rng.IntN(3) == 0 {
					l.z[k], l.y[k] = unscored, unscored
				}
			}
			addLanes(&got, &l, n)
			plainAdd(&want, &l, n)
		}
		for i, x := range [][2][]float32{
			{got.mean, want.mean},
			{got.square, want.square},
			{got.expected, want.expected},
			{got.actual, want.actual},
			{got.both, want.both},
			{got.squares, want.squares},
			{got.cross, want.cross},
			{got.before, want.before},
		} {
			if !same(x[0][:n], x[1][:n]) {
				t.Fatalf("%d lanes: sums %d are %v, want %v", n, i, x[0][:n], x[1][:n])
			}
		}
	}
}

// A matrix in strips can be converted back, and its product with a vector is correct.
func TestStrips(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		p, q := rng.IntN(20), 1+rng.IntN(20)
		x, numbers := make([]float32, p), make([]float32, q*(p+1))
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		for i := range numbers {
			numbers[i] = float32(rng.NormFloat64())
		}
		betas := shape{rows: q, columns: p + 1}
		y := make([]float32, q)
		linear(y, betas.strips(numbers), x)
		for k, got := range y {
			want := float64(numbers[k*(p+1)])
			for j, v := range x {
				want += float64(numbers[k*(p+1)+1+j]) * float64(v)
			}
			if math.Abs(float64(got)-want) > 1e-4 {
				t.Fatalf("%d numbers: prediction %d of %d is %v, want %v", p, k, q, got, want)
			}
		}
		if back := betas.numbers(betas.strips(numbers)); !slices.Equal(back, numbers) {
			t.Fatalf("a matrix of %d rows comes out of strips as %v, want %v", q, back, numbers)
		}
	}
}

// A triangular matrix in strips can be converted back, and the distance is the squared length of its product with x - mean.
func TestRegionInStrips(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for p := range maxFeatures + 1 {
		x, mean, numbers := make([]float32, p), make([]float32, p), make([]float32, p*(p+1)/2)
		for i := range x {
			x[i], mean[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
		}
		for i := range numbers {
			numbers[i] = float32(rng.NormFloat64())
		}
		shape := (&regression{p: p}).triangle()
		strips := shape.strips(around(mean, numbers))
		want, at := 0., 0
		for i := range p {
			sum := 0.
			for j := range i + 1 {
				sum += float64(numbers[at]) * (float64(x[j]) - float64(mean[j]))
				at++
			}
			want += sum * sum
		}
		if got := float64(squaredLength(strips, x)); math.Abs(got-want) > 1e-4*(1+want) {
			t.Errorf("%d features: distance %v, want %v", p, got, want)
		}
		if back := triangleOf(shape.numbers(strips)); !slices.Equal(back, numbers) {
			t.Errorf("a triangle of %d rows comes out of strips as %v, want %v", p, back, numbers)
		}
	}
}

// rank counts the values below, with ties, beyond the ends, and in laws of any size.
func TestRank(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		sample := make([]float64, leastSketch+rng.IntN(80))
		for i := range sample {
			sample[i] = float64(rng.IntN(40) - 20)
		}
		numbers := evenly(sample, sketchSize)
		x := float32(rng.IntN(48) - 24)
		want := 0
		for _, v := range numbers {
			if v < x {
				want++
			}
		}
		if got := rank(planted(keys(numbers), len(numbers)), keyOf(x)); got != want {
			t.Fatalf("rank of %v in %v is %d, want %d", x, numbers, got, want)
		}
	}
}

// Laws of any size come out of their trees as they went in, and the rest of a tree ends with the largest key.
func TestPlantedLaws(t *testing.T) {
	for size := 1; size <= sketchSize; size++ {
		sorted := make([]int32, 3*size)
		for i := range sorted {
			sorted[i] = int32(i)
		}
		laws := planted(sorted, size)
		if back := uprooted(laws, size); !slices.Equal(back, sorted) {
			t.Fatalf("laws of %d keys come out as %v", size, back)
		}
		if len(laws) != 3*sketchSize || size < sketchSize && laws[placeOf(size)] != math.MaxInt32 {
			t.Errorf("trees of laws of %d keys are %v", size, laws)
		}
	}
	if planted(nil, sketchSize) != nil || uprooted(nil, 0) != nil {
		t.Error("no laws become some")
	}
}
