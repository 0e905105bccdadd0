package inspect

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest/feedback"
)

// FeedbackJSON describes how decisions are joined with delayed feedback.
type FeedbackJSON struct {
	Key       string           `json:"key"`
	Window    model.Duration   `json:"window"`
	Horizons  []model.Duration `json:"horizons"`
	Proposed  bool             `json:"proposed"`  // proposed, but not configured
	Decisions int64            `json:"decisions"` // with the key
	Answered  int64            `json:"answered"`  // decisions with feedback
	Records   int64            `json:"records"`   // of feedback, with or without the key
	Matched   int64            `json:"matched"`   // of Records, those that share the key with a decision
	Late      int64            `json:"late"`      // of Matched, those after the window
	Without   int64            `json:"without_decision"`
	Unkeyed   int64            `json:"without_key"`
	Elsewhere int64            `json:"other_partition"` // of Matched, those in another partition than their decision
	AtLeast   bool             `json:"at_least"`        // there were too many keys to examine all of them
	Delay     *DelayJSON       `json:"delay"`           // null without any matched feedback
}

// DelayJSON is the delay of feedback, in seconds.
type DelayJSON struct {
	Q50 float64 `json:"q50"`
	Q90 float64 `json:"q90"`
	Q99 float64 `json:"q99"`
}

// report returns the measurements of the key, or nil without a key.
func (j *joining) report() *FeedbackJSON {
	k := j.best()
	if k == nil {
		return nil
	}
	out := &FeedbackJSON{
		Key: k.Key, Window: j.given.Window, Horizons: j.given.Horizons, Decisions: k.decisions, Answered: k.answered, Records: j.records,
		Matched: k.matched, Late: k.late, Without: k.records - k.matched, Unkeyed: j.records - k.records, Elsewhere: k.elsewhere, AtLeast: k.full,
	}
	if k.full {
		out.Unkeyed = 0 // later records were not examined
	}
	if len(k.delays.kept) > 0 {
		q := detectors.Quantiles(slices.Clone(k.delays.kept), .5, .9, .99)
		out.Delay = &DelayJSON{q[0], q[1], q[2]}
	}
	return out
}

// propose returns the configuration that fits the measurements.
func (j *joining) propose() feedback.Config {
	r := j.report()
	if j.given.Enabled() || r == nil || r.Delay == nil {
		return feedback.Config{}
	}
	c := feedback.Config{Key: r.Key, Window: roundUp(r.Delay.Q99 * 1.5), Default: map[string]float64{}}
	for _, q := range []float64{r.Delay.Q50, r.Delay.Q90} {
		if h := roundUp(q); h*earliestFactor <= c.Window && !slices.Contains(c.Horizons, h) {
			c.Horizons = append(c.Horizons, h)
		}
	}
	if float64(r.Answered) < answeredShare*float64(r.Decisions) {
		for _, v := range j.names {
			if !v.rating() {
				c.Default[v.name] = 0
			}
		}
	}
	return c
}

// roundUp returns the next round duration above the given number of seconds, at least ten seconds.
func roundUp(seconds float64) model.Duration {
	const minute, hour, day = 60, 3600, 24 * 3600
	for _, round := range []float64{
		10, 30, minute, 2 * minute, 5 * minute, 10 * minute, 20 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day,
		2 * day, 4 * day, 7 * day, 14 * day, 30 * day, 60 * day,
	} {
		if seconds < round {
			return model.Duration(round * float64(time.Second))
		}
	}
	return model.Duration(90 * 24 * time.Hour)
}

// share formats a part of a whole.
func share(part, of int64) string {
	return terminal.Percent(wire.Number(float64(part) / float64(max(1, of))))
}

func seconds(s float64) string {
	return words.Duration(time.Duration(s * float64(time.Second)))
}

// text returns the lines of the report for people.
func (f *FeedbackJSON) text() (lines []string) {
	if f == nil {
		return nil
	}
	verb := "joined"
	if f.Proposed {
		verb = "joined as proposed"
	}
	line := fmt.Sprintf("%s by %s within %s: %s of %d decisions have feedback", verb, terminal.Printable(f.Key), f.Window, share(f.Answered, f.Decisions), f.Decisions)
	lines = append(lines, line)
	line = fmt.Sprintf("%d records: %s matched", f.Records, share(f.Matched, f.Records))
	for _, part := range []struct {
		n    int64
		what string
	}{{f.Late, "late"}, {f.Without, "without a decision"}, {f.Unkeyed, "without the key"}, {f.Elsewhere, "in a different partition from their decision, where the service cannot join them"}} {
		if part.n > 0 {
			line += fmt.Sprintf(", %s %s", share(part.n, f.Records), part.what)
		}
	}
	if f.AtLeast {
		line += fmt.Sprintf("; only the first %d keys were checked", joinedValues)
	}
	lines = append(lines, line)
	if f.Delay == nil {
		return append(lines, "delay: unknown because decisions or feedback have no timestamps")
	}
	return append(lines, fmt.Sprintf("delay: median %s, 90%% within %s, 99%% within %s", seconds(f.Delay.Q50), seconds(f.Delay.Q90), seconds(f.Delay.Q99)))
}

// why returns the reason for the proposal.
func (f *FeedbackJSON) why() string {
	out := fmt.Sprintf("%s of %d feedback records have the same value as a decision", share(f.Matched, f.Records), f.Records)
	if f.Delay != nil {
		out += fmt.Sprintf("; half arrive within %s, 90%% within %s, 99%% within %s", seconds(f.Delay.Q50), seconds(f.Delay.Q90), seconds(f.Delay.Q99))
	}
	return out
}

// manyEvents is the number of events from which on it is a warning that none of them is judged.
const manyEvents = 1000

// mostlyElsewhere is the share of feedback in another partition than its decision from which on it is a warning.
const mostlyElsewhere = .05

// warn adds warnings about everything that prevents much of a policy's traffic from being judged: episodes without an
// end, including those that have one only if feedback is joined as proposed, and feedback that the service cannot join.
func (p *PolicyInspection) warn(unjoined []*wire.Unfinished) {
	warn := func(format string, args ...any) { p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...)) }
	for _, n := range unjoined {
		warn("without feedback in the configuration, group %s: %s", terminal.LabelsText(n.Group), n.Note())
	}
	for _, g := range p.Groups {
		if g.NoEnd != nil && g.NoEnd.Serious() {
			warn("group %s: %s. Mark the end of each episode, or configure delayed feedback", terminal.LabelsText(g.Group), g.NoEnd.Note())
		}
		if g.Units == 0 && g.Events >= manyEvents {
			warn("group %s: not judged because no episode has ended", terminal.LabelsText(g.Group))
		}
	}
	if f := p.Feedback; f != nil && float64(f.Elsewhere) > mostlyElsewhere*float64(f.Records) {
		warn("%s of the feedback is in a different partition from its decision and cannot be joined: use %s as the message key of both", share(f.Elsewhere, f.Records), f.Key)
	}
}
