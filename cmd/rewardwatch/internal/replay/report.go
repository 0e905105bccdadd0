package replay

import (
	"fmt"
	"io"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// writeReport writes the results as a self-contained page. The same input always produces the same bytes.
func (r *replay) writeReport(o replayOptions, files []string, counts recording.Counts, summaries []*finding.Summary, incidents []alerts.Incident) error {
	if o.report == "" {
		return nil
	}
	report := pages.Report{
		Read: readFacts(o, files, counts, r.units, r.unitName()), Incidents: incidents, Summaries: summaries, Courses: r.courses, Past: r.past,
		Story: terminal.StoryOf, Causes: incidentFacts,
	}
	var page strings.Builder
	if err := pages.WriteReport(&page, report); err != nil {
		return err
	}
	if err := terminal.WriteWhole(o.report, func(w io.Writer) error { return writePrintable(w, page.String()) }); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// past returns the histories of the signals of a group.
func (r *replay) past(g ingest.Group) history.Record {
	record, _ := r.workers[g.Policy].Policy.History(g) // a replay evicts no group
	return record
}

// writePrintable replaces invisible characters in lines of text: a name from telemetry could reverse the direction of
// the text.
func writePrintable(w io.Writer, text string) error {
	for line := range strings.SplitSeq(text, "\n") {
		if _, err := io.WriteString(w, terminal.Printable(line)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// readFacts describes the input and the configuration.
func readFacts(o replayOptions, files []string, counts recording.Counts, units int64, unit finding.UnitName) []words.Fact {
	name := "files"
	var facts []words.Fact
	for _, file := range files {
		if file == "-" {
			file = "standard input"
		}
		facts = append(facts, words.Fact{name, file})
		name = ""
	}
	config := "the defaults"
	if o.config != "" {
		config = o.config
	}
	refused := map[ingest.Reason]int64{}
	for reason, n := range counts.Refused {
		if n > 0 {
			refused[reason] = n
		}
	}
	return append(facts,
		words.Fact{"config", config},
		words.Fact{"records", fmt.Sprintf("%s: %s accepted, %s rejected%s%s", terminal.Thousands(counts.Read), terminal.Thousands(counts.Accepted),
			terminal.Thousands(counts.Read-counts.Accepted), terminal.ReasonsText(refused), terminal.NotTakenText(counts.LeftOut))},
		words.Fact{unit.Sized(), terminal.Thousands(units)})
}

// incidentFacts describes the facts of an incident that are not part of its alarms.
func incidentFacts(i alerts.Incident) []words.Fact {
	facts := []words.Fact{{"incident", i.ID}, {"severity", string(i.Severity)}, {"opened", i.Opened.Words(i.UnitName())}}
	if i.Closed {
		facts = append(facts, words.Fact{"closed", i.ClosedAt.Words(i.UnitName())})
	}
	facts = append(facts, words.Fact{"cause", terminal.CauseText(i.Cause, i.Causes)})
	if len(i.Evidence) > 0 {
		facts = append(facts, words.Fact{"", strings.Join(i.Evidence, "; ")})
	}
	return facts
}
