package inspect

import (
	"encoding"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/rarity"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// setting is a key of the configuration, with a value that differs from the default, and the reason.
type setting struct {
	Key, Value, Why string
}

// policySettings are the settings of one policy.
type policySettings struct {
	policy string // "" for all
	found  PolicyInspection
	keys   []setting
}

// proposalHead is the header of every proposal.
const proposalHead = `# Proposed by rewardwatch inspect: the settings for a first run, with reasons. All other keys have default values.
# Check it with "rewardwatch validate FILE", start it with "rewardwatch run --config FILE".
# To use a setting whose line begins with "#" and no space, remove the "#".
`

// propose returns a configuration with which a first run can start. It lists the keys that a first run should review,
// whether or not they differ from the defaults, each with its reason. cfg is the configuration of the inspection, read
// from file if there is one.
func propose(r inspection, cfg *config.Config, file string) string {
	var b strings.Builder
	b.WriteString(proposalHead)
	for _, line := range groupingHints(r) {
		b.WriteString("# " + line + "\n")
	}
	defaults := config.Default()
	b.WriteString("ingest:\n")
	if cfg.Ingest.IsLocal() {
		logYAML(&b, cfg.Ingest.Log, r.shapes, file)
	} else {
		kafkaYAML(&b, cfg.Ingest.Kafka, r, file)
	}
	b.WriteString("  dead_letters:\n")
	writeSettings(&b, "    ", section(&cfg.Ingest.DeadLetters, &defaults.Ingest.DeadLetters, map[string]string{
		"directory": "rejected records are stored here with the reason",
	}))
	b.WriteString("checkpoint:\n")
	writeSettings(&b, "  ", section(&cfg.Checkpoint, &defaults.Checkpoint, map[string]string{
		"directory": "state is stored here; relative to the service's working directory",
		"every":     "maximum span of telemetry that is read again after a crash",
	}))
	writePolicies(&b, r)
	b.WriteString("#alerts: {alertmanager: {urls: [\"http://127.0.0.1:9093\"]}} # push incidents to Alertmanager; otherwise only the console and metrics show them\n")
	b.WriteString("retrain:\n  ledger:\n")
	writeSettings(&b, "    ", section(&cfg.Retrain.Ledger, &defaults.Retrain.Ledger, map[string]string{
		"sqlite": "stores incidents and requests if there are targets or triggers; its directory is created",
	}))
	b.WriteString("  #targets: [{name: trainer, webhook: \"https://trainer.example/retrain\", secret_file: trainer.secret}] # receiver of retrain requests; triggers define when to retrain, and recipes define how\n")
	b.WriteString("http:\n")
	writeSettings(&b, "  ", section(&cfg.HTTP, &defaults.HTTP, map[string]string{
		"listen": "metrics, API and console; a loopback address accepts only local connections",
	}))
	return b.String()
}

// shownPolicies is the maximum number of policies that each have an entry. If there are more, those with the defaults
// share the last entry.
const shownPolicies = 20

// writePolicies writes the entries of the policies. The last is for policies that appear later.
func writePolicies(b *strings.Builder, r inspection) {
	entries, alike := policyEntries(r)
	b.WriteString("policies: # the first matching entry applies; policies without a match are not monitored\n")
	for _, e := range entries {
		match := setting{"- match", quoteYAML(escapeGlob(e.policy)), "found in the telemetry"}
		if alike {
			match.Why = fmt.Sprintf("the same settings for all %d policies found", len(r.Policies))
		}
		writeSettings(b, "  ", []setting{match})
		writeSettings(b, "    ", e.keys)
		for _, example := range []string{directionExample(e.found), splitExample(e.found), ratersExample(e.found)} {
			if example != "" {
				b.WriteString("    " + example + "\n")
			}
		}
	}
	if !alike {
		b.WriteString("  - match: \"*\" # all others, with the defaults\n")
	}
}

// Limits for the example of causes.split_by: the number of labels, and the number of values of a label.
const (
	shownSplits     = 4
	mostSplitValues = 20
)

// splitExample returns the commented-out setting for the labels that may describe users, or "" if there are none.
func splitExample(p PolicyInspection) string {
	var by []string
	for _, l := range p.Labels {
		name := "labels." + l.Name
		if l.Values >= 2 && l.Values <= mostSplitValues && !l.AtLeast && l.Share >= .5 && len(by) < shownSplits && !slices.Contains(p.groupBy, name) {
			by = append(by, name)
		}
	}
	if len(by) == 0 {
		return ""
	}
	return "#causes: {split_by: " + quoteList(by) + "} # if these describe the user or the request, and not what the policy chose: causes then allow for their mix"
}

// directed is the maximum number of outcomes in the example of a direction.
const directed = 3

// directionExample returns the commented-out setting for the direction in which outcomes are better. It returns "" if
// the policy has no outcomes, or if the setting exists.
func directionExample(p PolicyInspection) string {
	if directionSetting(p).Key != "" {
		return ""
	}
	var ways []string
	for _, g := range p.Groups {
		for _, s := range g.Signals {
			way := quoteYAML(escapeGlob(s.Signal)) + ": up"
			if strings.HasPrefix(s.Signal, "outcome.") && len(ways) < directed && !slices.Contains(ways, way) {
				ways = append(ways, way)
			}
		}
	}
	if len(ways) == 0 {
		return ""
	}
	return "#direction: {" + strings.Join(ways, ", ") + "} # up, down or none: improvements do not page; return and reward are up by default"
}

// policyEntries returns an entry for each policy that needs one, with everything that a first run should review. If all
// policies need the same settings, it returns a single entry.
func policyEntries(r inspection) (entries []policySettings, alike bool) {
	same := func(a, b setting) bool { return a.Key == b.Key && a.Value == b.Value }
	alike = len(r.Policies) > 1
	for _, p := range r.Policies {
		keys := settings(p)
		alike = alike && slices.EqualFunc(keys, settings(r.Policies[0]), same)
		if len(keys) > 0 || len(r.Policies) <= shownPolicies {
			entries = append(entries, policySettings{p.Policy, p, completed(p, keys)})
		}
	}
	if alike {
		p := r.Policies[0]
		entries = []policySettings{{"", p, completed(p, settings(p))}}
	}
	return entries, alike
}

// completed returns the settings of a policy, including those that equal the defaults.
func completed(p PolicyInspection, differ []setting) []setting {
	cfg := watch.DefaultConfig()
	units, _ := groupUnits(p)
	rate := ""
	if perDay, clock := unitsPerDay(p); clock {
		rate = fmt.Sprintf("; %s %s per day in the median group", words.Short(perDay), p.unitName().Many())
	}
	all := []setting{
		{"group_by", quoteList(cfg.GroupBy), fmt.Sprintf("labels that separate baselines: %s found", terminal.Plural(len(units), "group"))},
		{"signals", quoteList(cfg.Signals), fmt.Sprintf("globs for signals; these match all signals, %d across all groups", countSignals(p, cfg.Signals))},
		{"baseline", fmt.Sprintf("{from: warmup, units: %d}", cfg.Baseline.Units), fmt.Sprintf("the first %s are the baseline; %d in the median group", p.unitName().Many(), median(units))},
		{"false_alarms", fmt.Sprintf("{budget: %s, per: %s}", strconv.FormatFloat(cfg.FalseAlarms.Budget, 'f', -1, 64), quoteYAML(cfg.FalseAlarms.Per.String())), "tolerated false alarms, on average" + rate},
	}
	for i, s := range all {
		if k := slices.IndexFunc(differ, func(d setting) bool { return d.Key == s.Key }); k >= 0 {
			all[i] = differ[k]
		}
	}
	for _, s := range differ {
		if s.Key == "direction" || s.Key == "feedback" || s.Key == "learning" || s.Key == "raters" {
			all = append(all, s)
		}
	}
	return all
}

// escapeGlob returns the pattern that matches only the given name. For "", which is not a name, it returns "*".
func escapeGlob(name string) string {
	if name == "" {
		return "*"
	}
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(name)
}

// settings returns the settings that a policy needs and that differ from the defaults.
func settings(p PolicyInspection) []setting {
	var out []setting
	add := func(s setting) {
		if s.Key != "" {
			out = append(out, s)
		}
	}
	add(groupBySetting(p))
	add(signalsSetting(p))
	add(baselineSetting(p))
	add(falseAlarmsSetting(p))
	add(directionSetting(p))
	add(learningSetting(p))
	add(feedbackSetting(p))
	add(ratersSetting(p.raters))
	return out
}

// feedbackSetting returns the setting for joining delayed feedback.
func feedbackSetting(p PolicyInspection) setting {
	c := p.joined
	if !c.Enabled() {
		return setting{}
	}
	value := "{key: " + quoteYAML(c.Key) + ", window: " + c.Window.String()
	if len(c.Horizons) > 0 {
		value += ", horizons: " + strings.ReplaceAll(fmt.Sprint(c.Horizons), " ", ", ")
	}
	if len(c.Default) > 0 {
		var defaults []string
		for _, name := range slices.Sorted(maps.Keys(c.Default)) {
			defaults = append(defaults, quoteYAML(name)+": "+strconv.FormatFloat(c.Default[name], 'g', -1, 64))
		}
		value += ", default: {" + strings.Join(defaults, ", ") + "}"
	}
	if p.Feedback == nil || !p.Feedback.Proposed {
		return setting{"feedback", value + "}", asInspected}
	}
	return setting{"feedback", value + "}", p.Feedback.why()}
}

// rated matches outcomes that are ratings by people. Higher values are better.
var rated = regexp.MustCompile(`(?i)^outcome\.((human|user|customer|rater|annotator|labeler|reviewer|expert)[_.-]?(rating|score|preference)|rating|satisfaction|csat|nps|thumbs_?up)$`)

// directionSetting keeps the configured directions, and sets one for ratings by people. Telemetry does not show in
// which direction other signals are better. Without a direction, the ratings of a policy that learns would not be
// judged.
func directionSetting(p PolicyInspection) setting {
	var ways []string
	if len(p.direction) == 0 {
		for _, g := range p.Groups {
			for _, s := range g.Signals {
				if way := quoteYAML(escapeGlob(s.Signal)) + ": up"; rated.MatchString(s.Signal) && !slices.Contains(ways, way) {
					ways = append(ways, way)
				}
			}
		}
		if len(ways) == 0 {
			return setting{}
		}
		return setting{"direction", "{" + strings.Join(ways, ", ") + "}", "ratings by people: improvements do not page; for other outcomes, add up, down or none"}
	}
	for _, signal := range slices.Sorted(maps.Keys(p.direction)) {
		ways = append(ways, quoteYAML(signal)+": "+p.direction[signal])
	}
	return setting{"direction", "{" + strings.Join(ways, ", ") + "}", asInspected}
}

// fewUnits is the number of units that a group needs for a first baseline.
const fewUnits = 100

// groupBySetting proposes no groups if most units are in groups that are too small for a baseline.
func groupBySetting(p PolicyInspection) setting {
	units, total := groupUnits(p)
	small := int64(0)
	for _, n := range units {
		if n < fewUnits {
			small += n
		}
	}
	if total >= fewUnits && 2*small > total {
		return setting{"group_by", "[]", fmt.Sprintf("%d groups with a median of %s: too few for separate baselines", len(units), p.unitName().Count(median(units)))}
	}
	if !slices.Equal(p.groupBy, watch.DefaultConfig().GroupBy) {
		return setting{"group_by", quoteList(p.groupBy), asInspected}
	}
	return setting{}
}

// unitName returns the name of the units of the policy's groups.
func (p PolicyInspection) unitName() finding.UnitName {
	names := make([]finding.UnitName, len(p.Groups))
	for i, g := range p.Groups {
		names[i] = g.unitName()
	}
	return finding.CommonUnit(names...)
}

func groupUnits(p PolicyInspection) (units []int64, total int64) {
	for _, g := range p.Groups {
		units = append(units, g.Units)
		total += g.Units
	}
	slices.Sort(units)
	return units, total
}

// median returns the lower median of sorted counts, or 0 if there are none.
func median(sorted []int64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)/2]
}

// manySignals is roughly how many signals, over all groups together, a policy's detectors can handle.
const manySignals = 60

// signalsSetting leaves out the observations if there are more signals than can be judged, and the reward's
// components too if that is not enough.
func signalsSetting(p PolicyInspection) setting {
	kept := []string{"return", "reward", "episode_length", "action", "action.*", "outcome.*", "reward_component.*"}
	all := countSignals(p, []string{"*"})
	if all <= manySignals {
		return setting{}
	}
	why := fmt.Sprintf("%d signals in all groups, and about %d can be judged: observations are excluded", all, manySignals)
	if countSignals(p, kept) > manySignals {
		kept = kept[:len(kept)-1]
		why += ", and so are the components of the reward"
	}
	if n := countSignals(p, kept); n == all || n == 0 {
		return setting{}
	}
	return setting{"signals", quoteList(kept), why}
}

func countSignals(p PolicyInspection, globs []string) int {
	n, cfg := 0, watch.Config{Signals: globs}
	for _, g := range p.Groups {
		for _, s := range g.Signals {
			if cfg.Follows(s.Signal) {
				n++
			}
		}
	}
	return n
}

// The proposed sizes of a baseline. They are smaller than the default if that would take longer than patientDays to
// fill, and larger if there are enough units, since detection improves with the size.
const (
	patientDays    = 30
	smallBaseline  = 100
	mediumBaseline = 250
	goodBaseline   = 1000
	bestBaseline   = 2000
)

// An outcome is rare if less than rareShare of the units have it. The baseline should contain rareInBaseline units with
// the outcome, twice as many as its tests need, but at most mostForRare units in total.
const (
	rareShare      = .05
	rareInBaseline = 2 * rarity.LeastRare
	mostForRare    = 10_000
)

// joinedBlocks is the approximate number of blocks of steps that are joined to one, because the blocks of an agent
// depend on each other. A larger baseline takes as many times longer.
const joinedBlocks = 16

// endless reports whether the episodes of a policy never end, so that blocks of steps are judged.
func (p PolicyInspection) endless() bool {
	return slices.ContainsFunc(p.Groups, func(g GroupInspection) bool { return g.Units > 0 && g.Ends[ingest.EndBlock.String()] == g.Units })
}

// baselineSetting chooses the size of the baseline: as many units as the median group collects in two weeks, or half of
// the telemetry if there is no clock.
func baselineSetting(p PolicyInspection) setting {
	units, _ := groupUnits(p)
	enough, why := float64(median(units)/2), fmt.Sprintf("a larger baseline detects smaller changes; the median group has %s", p.unitName().Count(median(units)))
	rate, clock := unitsPerDay(p)
	if clock {
		enough, why = rate*weeklyDays, "a larger baseline detects smaller changes; there are "+words.Whole(rate)+" "+p.unitName().Many()+" a day"
	}
	if p.endless() {
		enough /= joinedBlocks
	}
	size, defaultSize := 0, watch.DefaultConfig().Baseline.Units
	switch month := rate * patientDays; {
	case median(units) < fewUnits:
		return setting{} // not enough units to decide
	case clock && month < mediumBaseline:
		size = smallBaseline
	case clock && month < float64(defaultSize):
		size = mediumBaseline
	case enough >= bestBaseline:
		size = bestBaseline
	case enough >= goodBaseline:
		size = goodBaseline
	}
	if name, share := rarestOutcome(p); share > 0 {
		needed := math.Ceil(rareInBaseline / share)
		if needed > float64(max(size, defaultSize)) && needed <= mostForRare && (!clock || needed <= rate*patientDays) {
			return setting{"baseline", fmt.Sprintf("{units: %.0f}", rounded(needed)), fmt.Sprintf("%s is rare, %s of %s: a smaller baseline is not enough to estimate its rate",
				name, terminal.Percent(wire.Number(share)), p.unitName().Many())}
		}
	}
	if size == 0 {
		return setting{}
	}
	if size < defaultSize {
		why = fmt.Sprintf("at %s %s per day, %d would take %.0f days", words.Short(rate), p.unitName().Many(), defaultSize, float64(defaultSize)/rate)
	}
	return setting{"baseline", fmt.Sprintf("{units: %d}", size), why}
}

// rarestOutcome returns the rare outcome of 0 and 1 that the fewest units have, with their share; the share is 0 if
// there is none.
func rarestOutcome(p PolicyInspection) (name string, share float64) {
	for _, g := range p.Groups {
		for _, s := range g.Signals {
			if !signals.IsOutcome(s.Signal) || s.Kind != kindZeroOne || s.Mean == nil || g.Steps == nil {
				continue
			}
			of := -math.Expm1(float64(g.Steps.Mean) * math.Log1p(-float64(*s.Mean)))
			if of < rareShare && (share == 0 || of < share) {
				name, share = s.Signal, of
			}
		}
	}
	return name, share
}

// unitsPerDay returns the median rate of the groups, and whether they have a clock.
func unitsPerDay(p PolicyInspection) (float64, bool) {
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

// The period of the proposed budget without a clock: budgetSteps steps, or the number of episodes that have so many
// steps, but at least budgetEpisodes.
const (
	budgetSteps    = 1_000_000
	budgetEpisodes = 2_000
)

// falseAlarmsSetting keeps a configured budget. Otherwise it proposes a budget in episodes or steps if no clock can be
// used.
func falseAlarmsSetting(p PolicyInspection) setting {
	given := p.falseAlarms
	if given != watch.DefaultConfig().FalseAlarms {
		value := fmt.Sprintf("{budget: %s, per: %s}", strconv.FormatFloat(given.Budget, 'f', -1, 64), quoteYAML(given.Per.String()))
		return setting{"false_alarms", value, asInspected}
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
	return setting{"false_alarms", fmt.Sprintf("{budget: 1, per: %s}", per), "without usable timestamps, it cannot be set in days"}
}

// rounded rounds a number to two significant digits.
func rounded(x float64) float64 {
	scale := math.Pow(10, math.Floor(math.Log10(x))-1)
	return math.Round(x/scale) * scale
}

// maxHints is the maximum number of labels in the hints.
const maxHints = 20

// groupingHints suggests labels by which a policy could be grouped. A person must decide whether each of their values
// should have a separate baseline.
func groupingHints(r inspection) []string {
	var out []string
	for _, p := range r.Policies {
		for _, l := range p.Labels {
			key := "labels." + l.Name
			if !l.GroupBy || slices.Contains(p.groupBy, key) || len(out) == maxHints {
				continue
			}
			out = append(out, fmt.Sprintf("%s: %s has %d values; with group_by: %s, each has its own baseline",
				strconv.QuoteToASCII(p.Policy), key, l.Values, quoteList(append(slices.Clone(p.groupBy), key))))
		}
	}
	return out
}

// kafkaYAML writes ingest.kafka.
func kafkaYAML(b *strings.Builder, kafka config.KafkaConfig, r inspection, file string) {
	b.WriteString("  kafka:\n")
	writeSettings(b, "    ", kafkaSettings(kafka, r.Source == "topic", file))
	if len(kafka.Topics) > 0 {
		topicsYAML(b, kafka.Topics, r.shapes)
	}
}

// kafkaSettings returns the keys of ingest.kafka that a first run needs, and the configured ones.
func kafkaSettings(kafka config.KafkaConfig, topic bool, file string) []setting {
	defaults := config.Default().Ingest.Kafka
	shown := map[string]string{
		"brokers": "the default; any broker of the cluster, as host:port",
		"topic":   "the default; topic with the telemetry of the agents",
		"group":   "consumer group; requires permission to read the topic and to commit offsets",
	}
	if len(kafka.Topics) > 0 {
		kafka.Topic, kafka.Topics = defaults.Topic, nil
		delete(shown, "topic")
	}
	why := func(key string) string {
		switch {
		case topic && key == "topic":
			return "the topic that was inspected"
		case key == "brokers" || file == "":
			return "as given"
		}
		return asInspected
	}
	return complete(reflect.ValueOf(&kafka).Elem(), reflect.ValueOf(&defaults).Elem(), why, shown)
}

// asInspected is the reason for a key that keeps its configured value.
const asInspected = "from the configuration used for inspect"

// section returns the shown keys of a section, each with its reason, and the configured ones. given and defaults are
// pointers to the section.
func section(given, defaults any, shown map[string]string) []setting {
	why := func(string) string { return asInspected }
	return complete(reflect.ValueOf(given).Elem(), reflect.ValueOf(defaults).Elem(), why, shown)
}

// complete returns the keys of a section that differ from the defaults, and the keys in shown in any case.
func complete(v, from reflect.Value, why func(key string) string, shown map[string]string) []setting {
	changed, out := differing(v, from, why), []setting(nil)
	for _, f := range yamlfile.Fields(v) {
		i := slices.IndexFunc(changed, func(s setting) bool { return s.Key == f.Key })
		switch reason := shown[f.Key]; {
		case i >= 0:
			out = append(out, changed[i])
		case reason != "":
			out = append(out, setting{f.Key, yamlValue(f.Value.Interface()), reason})
		}
	}
	return out
}

// differing returns the keys of a section whose values differ from another's. A nested section is one key.
func differing(v, from reflect.Value, why func(key string) string) []setting {
	var out []setting
	defaults := yamlfile.Fields(from)
	for i, f := range yamlfile.Fields(v) {
		switch {
		case reflect.DeepEqual(f.Value.Interface(), defaults[i].Value.Interface()):
		case f.Value.Kind() == reflect.Struct:
			out = append(out, setting{f.Key, flow(f.Value, defaults[i].Value), why(f.Key)})
		case f.Value.Kind() == reflect.Slice && f.Value.Type().Elem().Kind() == reflect.Struct:
			elements, empty := make([]string, f.Value.Len()), reflect.Zero(f.Value.Type().Elem())
			for n := range elements {
				elements[n] = flow(f.Value.Index(n), empty)
			}
			out = append(out, setting{f.Key, "[" + strings.Join(elements, ", ") + "]", why(f.Key)})
		default:
			out = append(out, setting{f.Key, yamlValue(f.Value.Interface()), why(f.Key)})
		}
	}
	return out
}

// flow formats the keys of a section whose values differ from another's on one line.
func flow(v, from reflect.Value) string {
	var inside []string
	for _, s := range differing(v, from, func(string) string { return "" }) {
		inside = append(inside, s.Key+": "+s.Value)
	}
	return "{" + strings.Join(inside, ", ") + "}"
}

// yamlValue formats a value so that YAML reads it back unchanged.
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
		fmt.Fprintf(b, "%s%s: %s # %s\n", indent, s.Key, s.Value, s.Why)
	}
}

func quoteList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quoteYAML(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quoteYAML quotes a string, and escapes all characters that a file should not contain or an editor would not show.
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
