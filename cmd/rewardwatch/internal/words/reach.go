package words

import (
	"fmt"
	"math"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// Reach describes the smallest changes of a stream's main quantity that are found, such as "a shift of 0.66 SD (1.2)
// within 100 episodes, 0.38 SD (0.7) within 500"; "" if it is not known.
func Reach(s *finding.StreamSummary, unit finding.UnitName) string {
	if len(s.Reach) == 0 {
		return ""
	}
	what, size := "a shift of ", func(r finding.Reach) string {
		return fmt.Sprintf("%.2g SD (%.2g)", r.Size, r.Shift)
	}
	if s.Reach[0].OfRate {
		what, size = "a drop of the rate by ", func(r finding.Reach) string { return fmt.Sprintf("%.0f %%", 100*r.Size) }
	}
	var parts []string
	before := ""
	for _, r := range s.Reach {
		shown := size(r)
		if math.IsNaN(r.Size) || shown == before && r.Known == 0 { // also found within fewer units
			continue
		}
		before = shown
		part := fmt.Sprintf("%s within %s", shown, Grouped(int64(r.Units), ","))
		if len(parts) == 0 {
			part += " " + unit.Many()
		}
		if r.Known > 0 {
			part += fmt.Sprintf(" if the rate is known from %s", Grouped(int64(r.Known), ","))
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return fmt.Sprintf("none within %s", unit.Count(int64(s.Reach[len(s.Reach)-1].Units)))
	}
	return what + strings.Join(parts, ", ")
}
