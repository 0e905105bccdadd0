package terminal

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// AlarmText prints an alarm for people: what drifted, by how much, since when, why, and on which records.
func AlarmText(w io.Writer, a alerts.Alarm) error {
	facts := slices.Concat(what(a), why(a, shownEvidence), where(a))
	_, err := io.WriteString(w, FactsText(PaintFor(w), Columns(w), a, facts))
	return err
}

// what returns the finding of an alarm, and its time.
func what(a alerts.Alarm) (facts []words.Fact) {
	unit := a.UnitName()
	if a.Resolved {
		facts = append(facts, words.Fact{"resolved", words.Place(a.ResolvedAt, unit, a.ResolvedAt.Pos)})
	}
	foremost := a.Foremost()
	change := words.Fact{"change", a.EffectWords(foremost)}
	if g := a.Guard; g != nil {
		facts, change = append(facts, words.Fact{"guard", g.Name + ": " + g.State}), words.Fact{"why", g.Why}
	}
	facts = append(facts, change)
	if foremost.Quantity != a.Effect.Quantity {
		facts = append(facts, words.Fact{"", a.EffectWords(a.Effect)})
	}
	facts = append(facts, words.Fact{"since", words.Place(a.Onset, unit, a.Onset.First)})
	if i := a.OnsetInterval(); i != nil {
		facts = append(facts, words.Fact{"", "with 90% confidence " + i.Words(unit)})
	}
	return append(facts, words.Fact{"detected", words.Place(a.At, unit, a.At.Pos)}, words.Fact{"score", scoreText(a)})
}

// why returns the cause, with at most most lines of evidence for it.
func why(a alerts.Alarm, most int) []words.Fact {
	facts := []words.Fact{{"cause", CauseText(a.Cause, a.Causes)}}
	for _, e := range a.Evidence[:min(len(a.Evidence), most)] {
		facts = append(facts, words.Fact{"", e})
	}
	if a.Return != nil {
		facts = append(facts, words.Fact{"return", returnText(a.Return)})
	}
	return append(facts, earned(a)...)
}

// earned returns the estimated return of the accepted policy, and the conclusion, unless the evidence already contains
// them.
func earned(a alerts.Alarm) []words.Fact {
	o := a.OffPolicy
	if o == nil {
		return nil
	}
	facts := []words.Fact{{"earned", o.Words(a.UnitName())}}
	for _, more := range []string{o.ChangeWords(), o.ShownWords()} {
		if more != "" && !slices.Contains(a.Evidence, more) {
			facts = append(facts, words.Fact{"", more})
		}
	}
	return facts
}

// where returns the records of an alarm, the baseline it is compared with, and its ids.
func where(a alerts.Alarm) []words.Fact {
	if a.Guard != nil { // it has neither records nor a baseline
		return []words.Fact{{"alarm", a.ID}, {"incident", a.Incident}}
	}
	facts := []words.Fact{{"offsets", words.Offsets(a.Offsets)}, {"baseline", words.Baseline(a.Baseline, a.UnitName())}}
	if a.Promise.N > 0 {
		facts = append(facts, words.Fact{"budget", words.Promise(a.Promise)})
	}
	return append(facts, words.Fact{"alarm", a.ID}, words.Fact{"incident", a.Incident})
}

// FactsText formats facts below the heading of an alarm, in lines of at most most columns. If most is 0, there is no
// limit.
func FactsText(p Paint, most int, a alerts.Alarm, facts []words.Fact) string {
	head, mark := "DRIFT", Red
	switch {
	case a.Resolved:
		head, mark = "RESOLVED", Green
	case a.Improvement:
		head, mark = "BETTER", Green
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s of %s\n", p.In(mark, fmt.Sprintf("%-10s", head)), Printable(a.Signal), Printable(a.Group.String()))
	for _, f := range facts {
		name := f.Name()
		for _, line := range factLines(most, Printable(f.Value())) {
			fmt.Fprintf(&b, "  %-9s %s\n", name, line)
			name = ""
		}
	}
	return b.String()
}

// factLines returns a value in the lines that are beside the name of a fact.
func factLines(most int, value string) []string {
	if most == 0 {
		return []string{value}
	}
	return wrapped(value, max(narrowest, most-12))
}

// shownEvidence is the maximum number of pieces of evidence for a cause in a list of alarms.
const shownEvidence = 4

// CauseText names the cause, and the weights of all possible causes.
func CauseText(cause alerts.Cause, ranked []alerts.RankedCause) string {
	var weights []string
	for _, c := range ranked {
		weights = append(weights, fmt.Sprintf("%s %.2f", c.Cause, c.Weight))
	}
	if len(weights) == 0 {
		return string(cause)
	}
	return fmt.Sprintf("%s (probabilities: %s)", cause, strings.Join(weights, ", "))
}

// returnText describes the parts of a change of the return.
func returnText(d *finding.Decomposition) string {
	s := fmt.Sprintf("changed by %s: reward per step %s, episode length %s, choice of actions %s",
		words.Short(d.Change), words.Short(d.PerStep), words.Short(d.Length), words.Short(d.ActionMix))
	if math.Abs(d.Rest) > .01*math.Abs(d.Change) {
		s += fmt.Sprintf(", rest %s", words.Short(d.Rest))
	}
	return s
}

// scoreText returns the highest score and the detectors that had one.
func scoreText(a alerts.Alarm) string {
	if len(a.Detectors) == 0 {
		return words.Short(a.Score) + " (threshold 1)"
	}
	return words.Short(a.Score) + " (threshold 1) by " + strings.Join(a.Detectors, ", ")
}

// StoryOf returns all facts about an alarm.
func StoryOf(a alerts.Alarm) []words.Fact {
	facts := slices.Concat(what(a), why(a, len(a.Evidence)), otherCauses(a), versionFacts(a), where(a))
	if more := effectText(a.Effect); more != "" {
		since := slices.IndexFunc(facts, func(f words.Fact) bool { return f.Name() == "since" })
		facts = slices.Insert(facts, since, words.Fact{"", more})
	}
	return facts
}

// effectText describes the parts of an effect that its own text omits.
func effectText(e finding.Effect) string {
	var parts []string
	add := func(name string, x float64) {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			parts = append(parts, name+" "+words.Short(x))
		}
	}
	add("median shift", e.MedianShift)
	add("10th percentile shift", e.Q10Shift)
	add("90th percentile shift", e.Q90Shift)
	add("spread ratio", e.SpreadRatio)
	add("Wasserstein distance", e.Wasserstein)
	if moved := words.Moved(e.AtLeast); moved != "" {
		parts = append(parts, moved)
	}
	return strings.Join(parts, ", ")
}

// otherCauses returns the evidence for and against the causes that the alarm does not name.
func otherCauses(a alerts.Alarm) (facts []words.Fact) {
	name := "others"
	for _, c := range a.Causes {
		if c.Cause == a.Cause {
			continue
		}
		for _, e := range c.Telling() {
			if !slices.Contains(a.Evidence, e) {
				facts = append(facts, words.Fact{name, fmt.Sprintf("%s %.2f: %s", c.Cause, c.Weight, e)})
				name = ""
			}
		}
	}
	return facts
}

// versionFacts returns the versions that acted before and after the onset.
func versionFacts(a alerts.Alarm) (facts []words.Fact) {
	name := "versions"
	for _, v := range []struct{ of, before, after string }{
		{"policy_version", a.Before.Policy, a.After.Policy},
		{"env_version", a.Before.Env, a.After.Env},
		{"reward_version", a.Before.Reward, a.After.Reward},
	} {
		switch {
		case v.before == "" && v.after == "":
			continue
		case v.before == v.after:
			facts = append(facts, words.Fact{name, v.of + " " + v.after})
		default:
			facts = append(facts, words.Fact{name, fmt.Sprintf("%s %s (%s before the onset)", v.of, Dash(v.after), Dash(v.before))})
		}
		name = ""
	}
	return facts
}
