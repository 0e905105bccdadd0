package console

import (
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
)

// The page of a policy that learns, and the report of a replay, show the progress of its return; those of other
// policies do not.
func TestProgressIsShown(t *testing.T) {
	for state, want := range map[progress.State]string{
		progress.Unknown:   "",
		progress.Improving: "improving; the return changed by 2 (99% confidence interval: 1 to 3) over the last 1,200 ",
		progress.Collapsed: "collapsed; mean return 4, best 9; the return changed by 2 (99% confidence interval: 1 to 3) over the last 1,200 ",
	} {
		v := madeUpFleet(1, someTime)
		s := madeUpStream("return", finding.OK)
		if want != "" {
			s.Progress = &progress.Progress{State: state, Units: 1200, Change: 2, Low: 1, High: 3, Level: 4, Best: 9}
		}
		v.summaries[0].Groups[0].Streams = []finding.StreamSummary{s}
		page := get(consoleOf(v, nil), "/policies/policy-0000").Body.String()
		var report strings.Builder
		if err := WriteReport(&report, Report{Summaries: v.summaries}); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"page": page, "report": report.String()} {
			if shown := strings.Contains(strings.ToLower(text), "learning: "); shown != (want != "") || !strings.Contains(text, want) {
				t.Errorf("%s: the %s of a return that is %s does not say %q", name, name, state, want)
			}
		}
	}
}
