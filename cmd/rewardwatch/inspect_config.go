package main

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// setting is a key of the configuration whose value differs from its default, and why.
type setting struct {
	key, value, why string
}

// policySettings are those of one policy.
type policySettings struct {
	policy string
	keys   []setting
}

// propose writes a configuration for what was found: only what differs from the defaults, each with its reason. kafka
// is what was given for it, by flags and by the configuration file, if there was one.
func propose(r inspection, kafka ingest.KafkaConfig, file string) string {
	var b strings.Builder
	b.WriteString("# Proposed by rewardwatch inspect. A key that is left out has its default.\n")
	for _, line := range groupingHints(r) {
		b.WriteString("# " + line + "\n")
	}
	writeKafka(&b, kafka, r.Source == "topic", file)
	entries, alike := policyEntries(r)
	if len(entries) > 0 {
		b.WriteString("policies:\n")
	}
	for _, e := range entries {
		fmt.Fprintf(&b, "  - match: %s\n", quoteYAML(escapeGlob(e.policy)))
		writeSettings(&b, "    ", e.keys)
	}
	if len(entries) > 0 && !alike {
		b.WriteString("  - match: \"*\" # all others, with the defaults: a policy that no entry matches is not watched\n")
	}
	return b.String()
}

// policyEntries gives an entry for each policy that needs one; a single one for all policies where all need the same.
func policyEntries(r inspection) (entries []policySettings, alike bool) {
	alike = true
	for _, p := range r.Policies {
		if keys := settings(p); len(keys) > 0 {
			entries = append(entries, policySettings{p.Policy, keys})
		}
	}
	for _, e := range entries {
		alike = alike && slices.EqualFunc(e.keys, entries[0].keys, func(a, b setting) bool { return a.key == b.key && a.value == b.value })
	}
	if alike = alike && len(entries) == len(r.Policies); alike && len(entries) > 1 {
		entries = entries[:1]
		entries[0].policy = ""
	}
	return entries, alike && len(r.Policies) > 1
}

// escapeGlob gives the pattern that matches the name and nothing else; "*" for "", which is no name.
func escapeGlob(name string) string {
	if name == "" {
		return "*"
	}
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(name)
}

// settings gives what a policy needs that is not the default.
func settings(p policyInspection) []setting {
	var out []setting
	add := func(s setting) {
		if s.key != "" {
			out = append(out, s)
		}
	}
	add(groupBySetting(p))
	add(signalsSetting(p))
	add(baselineSetting(p))
	add(falseAlarmsSetting(p))
	return out
}

// fewUnits is how many units a group needs for a first baseline.
const fewUnits = 100

// groupBySetting gives up groups where most units are in ones that are too small for baselines of their own.
func groupBySetting(p policyInspection) setting {
	units, total := groupUnits(p)
	small := int64(0)
	for _, n := range units {
		if n < fewUnits {
			small += n
		}
	}
	if total >= fewUnits && 2*small > total {
		return setting{"group_by", "[]", fmt.Sprintf("%d groups of %d units, by the median: too few for baselines of their own", len(units), median(units))}
	}
	if !slices.Equal(p.groupBy, bank.DefaultConfig().GroupBy) {
		return setting{"group_by", quoteList(p.groupBy), "as in the configuration that the telemetry was inspected with"}
	}
	return setting{}
}

func groupUnits(p policyInspection) (units []int64, total int64) {
	for _, g := range p.Groups {
		units = append(units, g.Units)
		total += g.Units
	}
	slices.Sort(units)
	return units, total
}

// median gives the lower median of sorted counts, 0 of none.
func median(sorted []int64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)/2]
}

// manySignals is about how many signals of all groups together a policy's detectors suffice for.
const manySignals = 60

// signalsSetting leaves out the observations, or else the reward's components too, where there are more signals than
// can be judged.
func signalsSetting(p policyInspection) setting {
	kept := []string{"return", "reward", "episode_length", "action", "action.*", "outcome.*", "reward_component.*"}
	all := countSignals(p, []string{"*"})
	if all <= manySignals {
		return setting{}
	}
	why := fmt.Sprintf("%d signals in all groups, and about %d can be judged: observations are left out", all, manySignals)
	if countSignals(p, kept) > manySignals {
		kept = kept[:len(kept)-1]
		why += ", and what the reward is made of"
	}
	if n := countSignals(p, kept); n == all || n == 0 {
		return setting{}
	}
	return setting{"signals", quoteList(kept), why}
}

func countSignals(p policyInspection, globs []string) int {
	n, cfg := 0, bank.Config{Signals: globs}
	for _, g := range p.Groups {
		for _, s := range g.Signals {
			if cfg.Follows(s.Signal) {
				n++
			}
		}
	}
	return n
}

// The sizes of a baseline that are proposed: smaller than the default one where it would take longer than patientDays to
// fill, larger where there are enough units, since detection grows sharper with it.
const (
	patientDays    = 30
	smallBaseline  = 100
	mediumBaseline = 250
	goodBaseline   = 1000
	bestBaseline   = 2000
)

// baselineSetting chooses the size of the baseline by what two weeks bring the median group, or without a clock by half
// of what is there.
func baselineSetting(p policyInspection) setting {
	units, _ := groupUnits(p)
	enough, why := float64(median(units)/2), fmt.Sprintf("detection grows sharper with it, and a group has %d units by the median", median(units))
	rate, clock := unitsPerDay(p)
	if clock {
		enough, why = rate*weeklyDays, "detection grows sharper with it, and there are "+words.Short(rate)+" units a day"
	}
	size, defaultSize := 0, bank.DefaultConfig().Baseline.Units
	switch month := rate * patientDays; {
	case median(units) < fewUnits:
		return setting{} // too few to tell
	case clock && month < mediumBaseline:
		size = smallBaseline
	case clock && month < float64(defaultSize):
		size = mediumBaseline
	case enough >= bestBaseline:
		size = bestBaseline
	case enough >= goodBaseline:
		size = goodBaseline
	default:
		return setting{}
	}
	if size < defaultSize {
		why = fmt.Sprintf("at %s units a day, %d would take %.0f days", words.Short(rate), defaultSize, float64(defaultSize)/rate)
	}
	return setting{"baseline", fmt.Sprintf("{units: %d}", size), why}
}

// unitsPerDay gives the median rate of the groups, and whether they have a clock.
func unitsPerDay(p policyInspection) (float64, bool) {
	var rates []float64
	for _, g := range p.Groups {
		if g.Clock.UnitsPerDay == nil {
			return 0, false
		}
		rates = append(rates, float64(*g.Clock.UnitsPerDay))
	}
	slices.Sort(rates)
	if len(rates) == 0 {
		return 0, false
	}
	return rates[(len(rates)-1)/2], true
}

// What a budget of false alarms is proposed for where there is no clock: as many steps, and episodes at least.
const (
	budgetSteps    = 1_000_000
	budgetEpisodes = 2_000
)

// falseAlarmsSetting states the budget in episodes where the clock cannot be used, or keeps the one that was given.
func falseAlarmsSetting(p policyInspection) setting {
	given := p.falseAlarms
	if given != bank.DefaultConfig().FalseAlarms {
		value := fmt.Sprintf("{budget: %s, per: %s}", strconv.FormatFloat(given.Budget, 'f', -1, 64), quoteYAML(given.Per.String()))
		return setting{"false_alarms", value, "as in the configuration that the telemetry was inspected with"}
	}
	steps, episodes := 0.0, 0.0
	for _, g := range p.Groups {
		if g.Clock.Usable {
			return setting{}
		}
		if n := float64(g.Units - g.Ends[ingest.EndBlock.String()]); g.Steps != nil && n > 0 {
			steps += n * float64(g.Steps.Mean)
			episodes += n
		}
	}
	per := fmt.Sprintf("%d steps", budgetSteps)
	if episodes > 0 {
		per = fmt.Sprintf("%.0f episodes", math.Max(budgetEpisodes, rounded(budgetSteps*episodes/math.Max(1, steps))))
	}
	return setting{"false_alarms", fmt.Sprintf("{budget: 1, per: %s}", per), "without a usable clock it cannot be stated in days"}
}

// rounded gives a number to two digits.
func rounded(x float64) float64 {
	scale := math.Pow(10, math.Floor(math.Log10(x))-1)
	return math.Round(x/scale) * scale
}

// maxHints is how many labels are pointed out.
const maxHints = 20

// groupingHints points out labels that a policy might be grouped by: whether each of their values should have a
// baseline of its own is for a person to say.
func groupingHints(r inspection) []string {
	var out []string
	for _, p := range r.Policies {
		for _, l := range p.Labels {
			key := "labels." + l.Name
			if !l.GroupBy || slices.Contains(p.groupBy, key) || len(out) == maxHints {
				continue
			}
			out = append(out, fmt.Sprintf("%s: %s has %d values; group_by: %s would judge each by itself",
				strconv.QuoteToASCII(p.Policy), key, l.Values, quoteList(append(slices.Clone(p.groupBy), key))))
		}
	}
	return out
}

// writeKafka writes the keys of ingest.kafka that differ from their defaults.
func writeKafka(b *strings.Builder, kafka ingest.KafkaConfig, topic bool, file string) {
	defaults := ingest.DefaultKafkaConfig()
	changed := differing(reflect.ValueOf(&kafka).Elem(), reflect.ValueOf(&defaults).Elem(), func(key string) string {
		switch {
		case key == "topic" && topic:
			return "the topic that was inspected"
		case key == "brokers" || file == "":
			return "as given"
		}
		return "as in the configuration that the telemetry was inspected with"
	})
	if len(changed) == 0 {
		return
	}
	b.WriteString("ingest:\n  kafka:\n")
	writeSettings(b, "    ", changed)
}

// differing lists the keys of a section whose values are not those of another; a section inside is one key.
func differing(v, from reflect.Value, why func(key string) string) []setting {
	var out []setting
	defaults := yamlfile.Fields(from)
	for i, f := range yamlfile.Fields(v) {
		switch {
		case reflect.DeepEqual(f.Value.Interface(), defaults[i].Value.Interface()):
		case f.Value.Kind() == reflect.Struct:
			var inside []string
			for _, s := range differing(f.Value, defaults[i].Value, why) {
				inside = append(inside, s.key+": "+s.value)
			}
			out = append(out, setting{f.Key, "{" + strings.Join(inside, ", ") + "}", why(f.Key)})
		default:
			out = append(out, setting{f.Key, yamlValue(f.Value.Interface()), why(f.Key)})
		}
	}
	return out
}

// yamlValue writes a value so that it reads back the same.
func yamlValue(value any) string {
	switch v := value.(type) {
	case string:
		return quoteYAML(v)
	case []string:
		return quoteList(v)
	case encoding.TextMarshaler:
		text, _ := v.MarshalText()
		return quoteYAML(string(text))
	case ingest.ByteSize:
		return v.String()
	}
	return fmt.Sprint(value)
}

func writeSettings(b *strings.Builder, indent string, settings []setting) {
	for _, s := range settings {
		fmt.Fprintf(b, "%s%s: %s # %s\n", indent, s.key, s.value, s.why)
	}
}

func quoteList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quoteYAML(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quoteYAML writes a string in double quotes, and escapes all that a file should not hold or an editor would not show.
func quoteYAML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == ' ' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
