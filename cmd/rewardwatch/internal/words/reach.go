package words

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// Reach describes the smallest detectable changes of a stream's main quantity, and of its amounts, such as "a shift of
// 0.66 SD (1.2) within 100 episodes, 0.38 SD (0.7) within 500". It returns "" if they are unknown.
func Reach(s *finding.StreamSummary, unit finding.UnitName) string {
	main, amounts := halves(s.Reach)
	var parts []string
	if len(main) > 0 {
		parts = append(parts, reachOf(main, unit))
	}
	if len(amounts) > 0 {
		parts = append(parts, "amounts: "+reachOf(amounts, unit))
	}
	return strings.Join(parts, "; ")
}

// halves divides a reach into the reach of the main quantity and the reach of amounts.
func halves(reach []finding.Reach) (main, amounts []finding.Reach) {
	for _, r := range reach {
		if r.OfAmounts {
			amounts = append(amounts, r)
		} else {
			main = append(main, r)
		}
	}
	return main, amounts
}

func reachOf(reach []finding.Reach, unit finding.UnitName) string {
	what, after := "a shift of ", ""
	size := func(r finding.Reach) string {
		return fmt.Sprintf("%.2g SD (%.2g)", r.Size, r.Shift)
	}
	switch {
	case reach[0].OfRate:
		what, size = "a drop in the rate of ", func(r finding.Reach) string { return fmt.Sprintf("%.0f%%", 100*r.Size) }
	case reach[0].Others:
		after = " in all nonzero values"
	}
	var parts []string
	before := ""
	for _, r := range reach {
		shown := size(r)
		if math.IsNaN(r.Size) || shown == before && r.Known == 0 { // also detected within fewer units
			continue
		}
		before = shown
		part := fmt.Sprintf("%s within %s", shown, Grouped(int64(r.Units)))
		if len(parts) == 0 {
			part = fmt.Sprintf("%s%s within %s %s", shown, after, Grouped(int64(r.Units)), unit.Many())
		}
		if r.Known > 0 {
			part += fmt.Sprintf(" if the rate was measured over %s", Grouped(int64(r.Known)))
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return fmt.Sprintf("none within %s", unit.Count(int64(reach[len(reach)-1].Units)))
	}
	return what + strings.Join(parts, ", ")
}

// ReachSize describes the size of a change.
func ReachSize(r finding.Reach) string {
	if r.OfRate {
		return fmt.Sprintf("%.0f%%", 100*r.Size)
	}
	return fmt.Sprintf("%.2g SD", r.Size)
}

// ReachCurve returns the changes of a stream's main quantity that are detected with the baseline alone, in ascending
// order of units. Those of amounts form another curve, which is not drawn.
func ReachCurve(reach []finding.Reach) (out []finding.Reach) {
	main, _ := halves(reach)
	for _, r := range main {
		if !math.IsNaN(r.Size) && r.Known == 0 {
			out = append(out, r)
		}
	}
	return out
}

// ReachLine draws the reach of a stream as a row of characters with its ends, such as
// "█▅▃▂▁▁ 1.6 SD within 20 episodes, to 0.32 SD within 1,000". It returns "" if fewer than two sizes are known.
func ReachLine(reach []finding.Reach, unit finding.UnitName) string {
	shown := ReachCurve(reach)
	if len(shown) < 2 {
		return ""
	}
	sizes := []float64{0} // the bottom of the scale
	for _, r := range shown {
		sizes = append(sizes, r.Size)
	}
	_, first := utf8.DecodeRuneInString(Sparkline(sizes))
	last := len(shown) - 1
	return fmt.Sprintf("%s %s within %s, to %s within %s", Sparkline(sizes)[first:], ReachSize(shown[0]), unit.Count(int64(shown[0].Units)),
		ReachSize(shown[last]), Grouped(int64(shown[last].Units)))
}
