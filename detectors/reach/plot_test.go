package reach_test

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

var update = flag.Bool("update", false, "write docs/reach.svg")

// curvesOfReach are the baselines of docs/reach.svg, with the colors of their curves.
var curvesOfReach = []struct {
	units int
	color string
}{{100, "#b45309"}, {500, "#1d4ed8"}, {2000, "#15803d"}}

// The picture of docs/detection-measured.md has the sizes of its table.
func TestPictureOfReach(t *testing.T) {
	const path = "../../docs/reach.svg"
	want := reachPlot()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s (%v) is not what go test ./detectors/reach -update writes", path, err)
	}
}

// reachPlot draws the smallest shift that is found by the number of episodes, both on logarithmic scales.
func reachPlot() []byte {
	const left, right, top, bottom = 60., 470., 40., 300.
	x := func(units int) float64 { return left + (right-left)*math.Log(float64(units)/20)/math.Log(100) }
	y := func(size float64) float64 { return bottom - (bottom-top)*math.Log(size/.2)/math.Log(10) }
	var b bytes.Buffer
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" width="640" height="350" font-family="sans-serif" font-size="12">` + "\n")
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	fmt.Fprintf(&b, `<text x="%g" y="20">smallest shift detected in 9 of 10 cases, in standard deviations</text>`+"\n", left)
	for _, size := range []float64{.2, .3, .5, 1, 2} {
		fmt.Fprintf(&b, `<path d="M%g %.1fH%g" stroke="#ccc"/><text x="%g" y="%.1f" text-anchor="end">%g</text>`+"\n", left, y(size), right, left-6, y(size)+4, size)
	}
	for _, units := range []int{20, 50, 100, 200, 500, 1000, 2000} {
		fmt.Fprintf(&b, `<text x="%.1f" y="%g" text-anchor="middle">%s</text>`+"\n", x(units), bottom+18, grouped(float64(units)))
	}
	fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle">episodes since the change</text>`+"\n", (left+right)/2, bottom+38)
	for _, c := range curvesOfReach {
		draw := func(n float64, dashes string) (last finding.Reach) {
			b.WriteString(`<path d="M`)
			for _, r := range reachOf(normal(c.units, allowances[c.units], 1/n/sharing)) {
				if !math.IsNaN(r.Size) {
					fmt.Fprintf(&b, "%.1f %.1f ", x(r.Units), y(r.Size))
					last = r
				}
			}
			fmt.Fprintf(&b, `" fill="none" stroke="%s" stroke-width="1.5"%s/>`+"\n", c.color, dashes)
			return last
		}
		end := draw(20_000, "")
		draw(1_000_000, ` stroke-dasharray="5 4"`)
		fmt.Fprintf(&b, `<text x="%g" y="%.1f" fill="%s">baseline of %s</text>`+"\n", right+8, y(end.Size)+4, c.color, grouped(float64(c.units)))
	}
	fmt.Fprintf(&b, `<text x="%g" y="%g">solid: one false alarm in 20,000, dashed: in 1,000,000</text>`+"\n", left+90, top+14)
	b.WriteString("</svg>\n")
	return b.Bytes()
}
