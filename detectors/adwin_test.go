package detectors

import (
	"bytes"
	"encoding/gob"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"
)

// plainADWIN is ADWIN as its description says: buckets in one list, oldest first, and every cut computed in full.
type plainADWIN struct {
	delta           float64
	buckets         []plainBucket
	total, variance float64
	drifted         bool
}

type plainBucket struct{ n, total, variance float64 }

// join returns the bucket of both: the summed squares of two parts grow by those of their means.
func (a plainBucket) join(b plainBucket) plainBucket {
	d := a.total/a.n - b.total/b.n
	return plainBucket{a.n + b.n, a.total + b.total, a.variance + b.variance + a.n*b.n*d*d/(a.n+b.n)}
}

func (p *plainADWIN) width() float64 {
	n := 0.0
	for _, b := range p.buckets {
		n += b.n
	}
	return n
}

func (p *plainADWIN) add(x float64) bool {
	if p.drifted {
		*p = plainADWIN{delta: p.delta}
	}
	if n := p.width(); n > 0 {
		p.variance += n * (x - p.total/n) * (x - p.total/n) / (n + 1)
	}
	p.total += x
	p.buckets = append(p.buckets, plainBucket{n: 1, total: x})
	p.merge()
	n := p.width()
	if int(n)%32 != 0 {
		return false
	}
	for p.cuts() {
		p.drop()
		p.drifted = true
	}
	return p.drifted
}

// merge joins the two oldest of six buckets of a size, from the smallest size up.
func (p *plainADWIN) merge() {
	for size := 1.0; ; size *= 2 {
		first, count := -1, 0
		for i, b := range p.buckets {
			if b.n == size {
				if first < 0 {
					first = i
				}
				count++
			}
		}
		if count <= 5 {
			return
		}
		p.buckets[first] = p.buckets[first].join(p.buckets[first+1])
		p.buckets = slices.Delete(p.buckets, first+1, first+2)
	}
}

func (p *plainADWIN) drop() {
	oldest := p.buckets[0]
	p.buckets = p.buckets[1:]
	p.total -= oldest.total
	n := p.width()
	d := oldest.total/oldest.n - p.total/n
	p.variance -= oldest.variance + oldest.n*n*d*d/(oldest.n+n)
}

func (p *plainADWIN) cuts() bool {
	n := p.width()
	l := math.Log(2 * math.Log(n) / p.delta)
	n0, total0 := 0.0, 0.0
	for _, b := range p.buckets {
		n0, total0 = n0+b.n, total0+b.total
		n1, total1 := n-n0, p.total-total0
		if n0 < 5 || n1 < 5 {
			continue
		}
		m := 1/(n0-4) + 1/(n1-4)
		if math.Abs(total0/n0-total1/n1) > math.Sqrt(2*m*p.variance/n*l)+2.0/3*m*l {
			return true
		}
	}
	return false
}

// wandering draws a stream whose mean and spread jump occasionally.
func wandering(rng *rand.Rand, n int, offset float64) []float64 {
	x := make([]float64, n)
	mean, sd := 0.0, 1.0
	for i := range x {
		if rng.IntN(400) == 0 {
			mean, sd = rng.NormFloat64(), math.Exp(rng.NormFloat64())
		}
		x[i] = offset + mean + sd*rng.NormFloat64()
	}
	return x
}

func TestADWINAgreesWithItsDescription(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 41))
	alarms := 0
	for _, delta := range []float64{.002, .1, .9} {
		for name, xs := range map[string][]float64{
			"wandering":     wandering(rng, 20000, 0),
			"far from zero": wandering(rng, 20000, 1e7),
			"many ties":     tied(rng, 20000),
			"0/1":           zeroOne(rng, 20000),
			"constant":      make([]float64, 2000),
		} {
			fast, plain := NewADWIN(delta), plainADWIN{delta: delta}
			for i, x := range xs {
				got, want := fast.Add(x), plain.add(x)
				if got != want || float64(fast.Width()) != plain.width() {
					t.Fatalf("%s, delta %g, value %d: drift %v with a width of %d, want %v with %v",
						name, delta, i, got, fast.Width(), want, plain.width())
				}
				if mean := plain.total / plain.width(); math.Abs(fast.Mean()-mean) > 1e-12*(1+math.Abs(mean)) {
					t.Fatalf("%s, delta %g, value %d: mean %v, want %v", name, delta, i, fast.Mean(), mean)
				}
				if got {
					alarms++
				}
			}
		}
	}
	if alarms < 200 {
		t.Errorf("%d alarms say little", alarms)
	}
}

// zeroOne draws zeros and ones whose share changes once.
func zeroOne(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		share := .1
		if i > n/2 {
			share = .2
		}
		if rng.Float64() < share {
			x[i] = 1
		}
	}
	return x
}

func TestADWINRestoresToTheSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 41))
	xs := wandering(rng, 6000, 3)
	a := NewADWIN(.9)
	for i, x := range xs {
		if i%97 == 0 {
			var restored ADWIN
			throughGob(t, a, &restored)
			if !reflect.DeepEqual(restored, *a) {
				t.Fatalf("after %d values: %+v, restored %+v", i, *a, restored)
			}
			a = &restored
		}
		a.Add(x)
	}
}

// throughGob writes a state and reads it into another.
func throughGob(t *testing.T, from, to any) {
	t.Helper()
	var buffer bytes.Buffer
	if err := gob.NewEncoder(&buffer).Encode(from); err != nil {
		t.Fatal(err)
	}
	if err := gob.NewDecoder(&buffer).Decode(to); err != nil {
		t.Fatal(err)
	}
}

func TestADWINIgnoresWhatIsNoNumber(t *testing.T) {
	a := NewADWIN(ADWINDelta)
	if !math.IsNaN(a.Mean()) || a.Width() != 0 {
		t.Errorf("an empty window has a mean of %v over %d values", a.Mean(), a.Width())
	}
	a.Add(2)
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		a.Add(x)
	}
	a.Add(4)
	if a.Width() != 2 || a.Mean() != 3 {
		t.Errorf("a mean of %v over %d values, want 3 over 2", a.Mean(), a.Width())
	}
}

// A window at its limit drops its oldest bucket for the next one and continues.
func TestADWINWindowIsBounded(t *testing.T) {
	a := NewADWIN(ADWINDelta)
	a.Rows = make([]ADWINRow, adwinRows)
	for i := range a.Rows {
		a.Rows[i].Buckets = adwinBuckets
		a.Count += adwinBuckets << i
	}
	a.Top = adwinRows - 1
	full := a.Count
	for range 100 {
		a.Add(0)
	}
	if want := full + 100 - 1<<(adwinRows-1); a.Width() != want {
		t.Errorf("a full window and 100 values: %d, want %d", a.Width(), want)
	}
	for range 100 {
		a.Add(0)
	}
	if want := full + 200 - 1<<(adwinRows-1); a.Width() != want {
		t.Errorf("a full window and 200 values: %d, want %d", a.Width(), want)
	}
}

func TestADWINIsSmallAndAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 41))
	a, xs := NewADWIN(.9), wandering(rng, 5001, 0)
	for i := range 10_000 {
		a.Add(xs[i%2])
	}
	if size := unsafe.Sizeof(*a) + uintptr(cap(a.Rows))*unsafe.Sizeof(ADWINRow{}); size > 2<<10 {
		t.Errorf("it takes %d bytes after 10,000 values, more than 2 KiB", size)
	}
	i := 0
	if n := testing.AllocsPerRun(5000, func() { a.Add(xs[i]); i++ }); n != 0 {
		t.Errorf("%v allocations a value", n)
	}
}
