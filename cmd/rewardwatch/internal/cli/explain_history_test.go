package cli

import (
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// Without a clock, the axis counts units; without a baseline, there is no band; and an onset before the past is not
// marked.
func TestCourseWithoutClockAndBaseline(t *testing.T) {
	h := &wire.History{Signal: "return"}
	for i := range int64(10) {
		mean := 1.
		if i >= 5 {
			mean = 3
		}
		h.Spans = append(h.Spans, wire.HistorySpan{FirstUnit: 1000 + 20*i, Units: 20, Values: 20, Mean: wire.Number(mean)})
	}
	for onset, marks := range map[int64]int{1100: historyRows - 1, 40: 0} {
		s := &storyJSON{Alarm: wire.Alarm{Signal: "return"}, History: h, alarm: alerts.Alarm{Onset: finding.UnitRef{Ordinal: onset}}}
		lines := strings.Split(s.historyText(terminal.Paint(false)), "\n")
		first, last := []rune(lines[1]), []rune(lines[historyRows])
		if !strings.HasSuffix(lines[0], "20 episodes or blocks, │ onset") || first[13+historyColumns-1] != '•' || last[13] != '•' || strings.Contains(lines[1], "░") {
			t.Errorf("onset %d: got\n%s", onset, strings.Join(lines, "\n"))
		}
		body := strings.Join(lines[1:], "")
		if strings.Count(body, "•") != historyColumns || strings.Count(body, "│") != marks || !strings.Contains(body, "episode or block 1000 ") || !strings.HasSuffix(body, " episode or block 1200") {
			t.Errorf("onset %d: got\n%s", onset, strings.Join(lines, "\n"))
		}
	}
}
