package cli

import (
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// Without a clock, the axis counts units; without a baseline, there is no band; and an onset before the history is not
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
		lines := strings.Split(s.historyText(terminal.Paint(false), 0), "\n")
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

// A change of version is marked at its time, and named below; one before the drawing is not shown.
func TestCourseMarksVersions(t *testing.T) {
	h := &wire.History{Signal: "return", Changes: []wire.VersionChange{
		{Unit: 400, Before: wire.Versions{Env: "40"}, After: wire.Versions{Env: "41"}},
		{Unit: 1100, Before: wire.Versions{Env: "41"}, After: wire.Versions{Env: "42"}},
	}}
	for i := range int64(10) {
		h.Spans = append(h.Spans, wire.HistorySpan{FirstUnit: 1000 + 20*i, Units: 20, Values: 20, Mean: wire.Number(i)})
	}
	s := &storyJSON{Alarm: wire.Alarm{Signal: "return"}, History: h, alarm: alerts.Alarm{Onset: finding.UnitRef{Ordinal: 1150}}}
	got := s.historyText(terminal.Paint(false), 0)
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if !strings.HasSuffix(lines[0], "│ onset, ┆ new version") || strings.Count(got, "┆") != 2+historyRows-1 || strings.Contains(got, "environment 41") ||
		strings.TrimSpace(lines[len(lines)-1]) != "┆ environment 42 since episode or block 1100" {
		t.Errorf("got\n%s", got)
	}
}
