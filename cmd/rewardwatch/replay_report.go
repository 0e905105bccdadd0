package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/console"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// writeReport writes what the replay has found as a page that needs nothing else. The same input gives the same bytes.
func (r *replay) writeReport(o replayOptions, files []string, counts ingest.Counts, summaries []*bank.Summary, incidents []alerts.Incident) error {
	if o.report == "" {
		return nil
	}
	report := pages.Report{
		Read: readFacts(o, files, counts, r.units), Incidents: incidents, Summaries: summaries, Courses: r.courses,
		Story: storyOf, Causes: incidentFacts,
	}
	var page strings.Builder
	if err := pages.WriteReport(&page, report); err != nil {
		return err
	}
	if err := writeWhole(o.report, func(w io.Writer) error { return writePrintable(w, page.String()) }); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// writePrintable replaces what is no visible character in lines of text: names that come from telemetry could turn the writing round.
func writePrintable(w io.Writer, text string) error {
	for line := range strings.SplitSeq(text, "\n") {
		if _, err := io.WriteString(w, printable(line)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// readFacts tells what was read, and by which configuration.
func readFacts(o replayOptions, files []string, counts ingest.Counts, units int64) []words.Fact {
	name := "files"
	var facts []words.Fact
	for _, file := range files {
		if file == "-" {
			file = "the standard input"
		}
		facts = append(facts, words.Fact{name, file})
		name = ""
	}
	config := "the defaults"
	if o.config != "" {
		config = o.config
	}
	rejected := map[ingest.Reason]int64{}
	for reason, n := range counts.Refused {
		if n > 0 {
			rejected[reason] = n
		}
	}
	return append(facts,
		words.Fact{"config", config},
		words.Fact{"records", fmt.Sprintf("%s: %s accepted, %s rejected%s", thousands(counts.Read), thousands(counts.Accepted),
			thousands(counts.Read-counts.Accepted), reasonsText(rejected))},
		words.Fact{"units", thousands(units)})
}

// incidentFacts tells of an incident what its alarms do not.
func incidentFacts(i alerts.Incident) []words.Fact {
	facts := []words.Fact{{"incident", i.ID}, {"severity", string(i.Severity)}, {"opened", i.Opened.String()}}
	if i.Closed {
		facts = append(facts, words.Fact{"closed", i.ClosedAt.String()})
	}
	facts = append(facts, words.Fact{"cause", causeText(i.Cause, i.Causes)})
	if len(i.Evidence) > 0 {
		facts = append(facts, words.Fact{"", strings.Join(i.Evidence, "; ")})
	}
	return facts
}
