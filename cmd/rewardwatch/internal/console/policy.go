package console

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// Limits on the content of the page of a policy. The API returns everything.
const (
	maxCards    = 24 // streams with their distributions
	maxActions  = 20
	maxOfPolicy = 20 // incidents, and requests
)

// policyData is the content of the page for a policy and one of its groups, as text.
type policyData struct {
	Policy    string
	Refresh   string // link to the same page
	Groups    []groupChoice
	Group     *groupData // nil if the policy, or the chosen group, is unknown
	Incidents []incidentRow
	Trips     []attention // open incidents of guards
	Requests  []requestLine
	More      struct{ Incidents, Requests bool } // whether some did not fit
	NoLedger  bool
}

// groupChoice links to a group of the policy.
type groupChoice struct {
	Name, Link, State, Class string
	Here                     bool
}

// incidentRow is an incident of the policy, open or closed.
type incidentRow struct {
	listedIncident
	Since, Closed moment
}

// groupData is the current state of a group.
//
// It is large because it has a field for each fact that the page shows.
type groupData struct {
	group ingest.Group

	Name                        string
	State, Class                string
	Since, Last                 moment
	Units, Versions, Production string
	Unit                        finding.UnitName
	Baseline, Promise           string
	WarmUp                      string // the current warm-up, "" if there is none
	Fault                       string
	Incident                    *attention   // the open incident
	Chart                       *plots.Chart // nil if there are no scores yet
	Streams                     []streamCard
	Hidden                      int // number of streams that did not fit
	Actions                     []actionBar
	HiddenActions               int
	ActionText                  string
}

// streamCard is a stream with its two distributions.
type streamCard struct {
	Signal, State, Class     string
	Score                    score
	Missing, Armed, Next     string
	Finds                    string       // the smallest detectable changes
	Curve                    *plots.Curve // curve of these changes
	Shift, Baseline, Current string
	Last                     string // number of units in Current
	Notes                    []string
	Progress                 string         // of the return of a policy that learns
	Picture                  *plots.Picture // nil before there is a baseline
	Past                     *plots.SignalChart
}

// actionBar is the share of an action in the baseline and now. Widths are percentages.
type actionBar struct {
	Action, Baseline, Current, Change string
	BaselineBar, CurrentBar           string
}

func (c *Console) policy(w http.ResponseWriter, r *http.Request) {
	d := c.policyData(r.Context(), named(r, "policy"), r.URL.Query().Get("group"))
	status := http.StatusOK
	if d.Group == nil {
		status = http.StatusNotFound
	}
	c.show(w, r, status, "policy.html", d)
}

// policyData describes a policy and one of its groups: the one with the chosen key, or else the worst. A refresh shows
// the same group, even if another one has become worse.
func (c *Console) policyData(ctx context.Context, policy, chosen string) policyData {
	d := policyData{Policy: policy}
	groups := groupsOf(c.view.Summaries(), policy)
	if len(groups) == 0 {
		return d
	}
	incidents := c.view.Incidents()
	known := newKnown(incidents, c.view.Faults())
	shown, found := chosenGroup(groups, known, chosen)
	if found {
		chosen, d.Group = groupKey(shown.summary.Group), c.groupData(shown, known)
		c.addPast(ctx, d.Group, shown, known)
	}
	d.Refresh = groupLink(chosen)
	if len(groups) > 1 || !found {
		d.Groups = groupLinks(groups, known, d.Group)
	}
	d.addIncidents(incidents, c.now())
	for _, i := range known.trips[policy] {
		d.Trips = append(d.Trips, incidentLine(i, c.now()))
	}
	d.Requests, d.More.Requests, d.NoLedger = c.requestsOf(ctx, policy)
	return d
}

// chosenGroup returns the group with a key, or the worst if key is "".
func chosenGroup(groups []finding.GroupSummary, known known, key string) (s standing, found bool) {
	if key == "" {
		return worstGroup(groups, known), true
	}
	i := slices.IndexFunc(groups, func(g finding.GroupSummary) bool { return groupKey(g.Group) == key })
	if i < 0 {
		return standing{}, false
	}
	return standingOf(&groups[i], known), true
}

// groupsOf returns the groups of a policy, or nil if the policy is unknown.
func groupsOf(summaries []*finding.Summary, policy string) []finding.GroupSummary {
	for _, p := range summaries {
		if p.Policy == policy {
			return p.Groups
		}
	}
	return nil
}

// groupKey returns a unique, non-empty name of a group of a policy for addresses.
func groupKey(g ingest.Group) string {
	var parts []string
	for _, l := range g.Labels() {
		parts = append(parts, strconv.Quote(l.Name)+"="+strconv.Quote(l.Value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// groupLink returns the link from the page of a policy to one of its groups.
func groupLink(key string) string { return "?group=" + url.QueryEscape(key) }

// groupLinks returns links to all groups, worst first. shown may be nil.
func groupLinks(groups []finding.GroupSummary, known known, shown *groupData) []groupChoice {
	standings := make([]standing, len(groups))
	for i := range groups {
		standings[i] = standingOf(&groups[i], known)
	}
	slices.SortStableFunc(standings, standing.compare)
	var out []groupChoice
	for _, s := range standings {
		g := s.summary.Group
		out = append(out, groupChoice{
			Name: cmp.Or(labelsOf(g), "no labels"), Link: groupLink(groupKey(g)), State: words.Plain(s.state.String()), Class: stateClass(s.state),
			Here: shown != nil && g == shown.group,
		})
	}
	return out
}

// addIncidents lists the incidents of the policy, newest first.
func (d *policyData) addIncidents(incidents []alerts.Incident, now time.Time) {
	for i := range slices.Backward(incidents) {
		switch {
		case incidents[i].Group.Policy != d.Policy:
		case len(d.Incidents) == maxOfPolicy:
			d.More.Incidents = true
			return
		default:
			d.Incidents = append(d.Incidents, incidentRowOf(&incidents[i], now))
		}
	}
}

func incidentRowOf(i *alerts.Incident, now time.Time) incidentRow {
	line := lineOf(i)
	return incidentRow{listedIncident: line, Since: momentOf(line.since, now), Closed: momentOf(line.closed, now)}
}

// requestsOf returns the newest requests of a policy, whether there are more, and whether the ledger failed to answer
// in time.
func (c *Console) requestsOf(ctx context.Context, policy string) (lines []requestLine, more, failed bool) {
	if c.desk == nil {
		return nil, false, false
	}
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	requests, more, err := c.desk.Search(ctx, ledger.Filter{Policy: policy, Limit: maxOfPolicy})
	if err != nil {
		c.log.Error().Err(err).Msg("failed to read the ledger")
		return nil, false, true
	}
	return requestLines(requests), more, false
}

func (c *Console) groupData(s standing, known known) *groupData {
	g := s.summary
	d := &groupData{
		group: g.Group,
		Name:  labelsOf(g.Group), State: words.Plain(s.state.String()), Class: stateClass(s.state), Since: s.since(known, c.now()), Last: momentOf(g.LastUnitTS, c.now()),
		Units: words.Grouped(g.Units), Unit: g.UnitName(), Versions: words.Versions(g.Versions), Production: g.Production, WarmUp: warmUpText(g),
	}
	if g.Baseline.ID != "" {
		d.Baseline = words.Baseline(g.Baseline, g.UnitName())
	}
	if g.Promise.N > 0 {
		d.Promise = words.Promise(g.Promise)
	}
	if s.incident != nil {
		line := incidentLine(s.incident, c.now())
		d.Incident = &line
	}
	if f := known.faults[g.Group]; f != nil {
		d.Fault = faultLine(*f, c.now()).What
	}
	streams := worstFirst(g.Streams)
	d.Chart = plots.ChartOf(c.view.Course(g.Group), d.Unit, streams, known.incidents[g.Group])
	cards := byImportance(g.Streams)
	for i := range cards[:min(len(cards), maxCards)] {
		d.Streams = append(d.Streams, cardOf(&cards[i], d.Unit))
	}
	d.Hidden = max(0, len(streams)-maxCards)
	d.addActions(g)
	return d
}

// addPast adds the charts of the signals.
func (c *Console) addPast(ctx context.Context, d *groupData, s standing, known known) {
	p := c.pastOf(ctx, s.summary.Group, d.Unit)
	streams := byImportance(s.summary.Streams)
	for i := range d.Streams {
		var baseline *plots.Level
		if b := streams[i].Baseline; b.Units > 0 {
			baseline = &plots.Level{Mean: b.Mean, SD: b.SD}
		}
		d.Streams[i].Past = p.Chart(d.Streams[i].Signal, baseline, known.incidents[s.summary.Group])
	}
}

// warmUpText describes the progress of the current warm-up.
func warmUpText(g *finding.GroupSummary) string {
	var parts []string
	if g.Lineage.Wanted > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d %s", g.Lineage.Collected, g.Lineage.Wanted, g.UnitName().Sized()))
	}
	if g.Lineage.NextVersion != "" {
		parts = append(parts, fmt.Sprintf("version %s: %d of %d %s", g.Lineage.NextVersion, g.Lineage.NextUnits, g.Lineage.NextWanted, g.UnitName().Many()))
	}
	if g.Trending != "" {
		parts = append(parts, "the previous warm-up was discarded because it was not stationary: "+g.Trending)
	}
	return strings.Join(parts, "; ")
}

// byImportance sorts streams by state, then by the rank of their signals, and then by name. Scores do not matter:
// otherwise cards would trade places whenever the page is refreshed.
func byImportance(streams []finding.StreamSummary) []finding.StreamSummary {
	rank := stateRanks()
	out := slices.Clone(streams)
	slices.SortStableFunc(out, func(a, b finding.StreamSummary) int {
		return cmp.Or(rank[a.State]-rank[b.State], cmp.Compare(signals.Rank(a.Signal), signals.Rank(b.Signal)), cmp.Compare(a.Signal, b.Signal))
	})
	return out
}

func stateRanks() map[finding.State]int {
	return map[finding.State]int{finding.Drift: 0, finding.TelemetryFault: 1, finding.WarmingUp: 2, finding.OK: 2}
}

// worstFirst sorts streams by state, and then by score.
func worstFirst(streams []finding.StreamSummary) []finding.StreamSummary {
	rank := stateRanks()
	out := slices.Clone(streams)
	slices.SortStableFunc(out, func(a, b finding.StreamSummary) int {
		x, _ := words.Score(&a)
		y, _ := words.Score(&b)
		return cmp.Or(rank[a.State]-rank[b.State], cmp.Compare(y, x))
	})
	return out
}

func cardOf(s *finding.StreamSummary, unit finding.UnitName) streamCard {
	card := streamCard{
		Signal: s.Signal, State: words.Plain(s.State.String()), Class: stateClass(s.State), Missing: words.Missing(*s), Armed: strings.Join(s.Armed, ", "),
		Next: nextArmed(s, unit), Finds: words.Reach(s, unit), Curve: plots.CurveOf(s, unit), Notes: s.Notes, Progress: words.Progress(s.Progress, unit),
	}
	if x, any := words.Score(s); any {
		card.Score = scoreBar(x)
		if x < 1 && s.State == finding.Drift && card.Missing == "" {
			card.Missing = "The score has fallen below the threshold. The alarm resolves if the score stays low."
		}
	}
	if s.Baseline.Units > 0 {
		card.Baseline = distributionText(s.Baseline)
	}
	if s.Current.Units > 0 {
		card.Current, card.Last = distributionText(s.Current), "Most recent "+unit.Count(int64(s.Current.Units))
	}
	if s.Baseline.Units > 0 && s.Current.Units > 0 {
		card.Shift = fmt.Sprintf("%+.2f SD", s.Effect)
		card.Picture = plots.PictureOf(s, unit)
	}
	return card
}

func distributionText(d finding.Distribution) string {
	return words.Short(d.Mean) + " ± " + words.Short(d.SD)
}

// nextArmed returns which test a larger baseline would arm next for the stream.
func nextArmed(s *finding.StreamSummary, unit finding.UnitName) string {
	if len(s.Dropped) == 0 || len(s.Armed) == 0 {
		return ""
	}
	text := fmt.Sprintf("Inactive tests: %d of %d", len(s.Dropped), s.Branches+len(s.Dropped))
	var next *finding.DroppedBranch
	for i := range s.Dropped {
		if d := &s.Dropped[i]; d.Units > 0 && (next == nil || d.Units < next.Units) {
			next = d
		}
	}
	if next == nil {
		return text
	}
	return fmt.Sprintf("%s, because the baseline is too small. The next test (%s) requires about %s %s", text, next.Branch, words.Grouped(int64(next.Units)), unit.Many())
}

// points returns the difference of two shares in percentage points, as that of the percentages shown.
func points(from, to float64) string {
	tenths := math.Round(1000*to) - math.Round(1000*from)
	if tenths == 0 {
		return "0.0"
	}
	return fmt.Sprintf("%+.1f", tenths/10)
}

// addActions lists the actions, most common first.
func (d *groupData) addActions(g *finding.GroupSummary) {
	shares := slices.Clone(g.ActionShare)
	slices.SortStableFunc(shares, func(a, b finding.ActionShare) int {
		return cmp.Compare(max(b.Baseline, b.Current), max(a.Baseline, a.Current))
	})
	for _, s := range shares[:min(len(shares), maxActions)] {
		d.Actions = append(d.Actions, actionBar{
			Action: s.Action, Baseline: plots.Percent(s.Baseline), Current: plots.Percent(s.Current), Change: points(s.Baseline, s.Current),
			BaselineBar: plots.Pixels(100 * s.Baseline), CurrentBar: plots.Pixels(100 * s.Current),
		})
	}
	d.HiddenActions = max(0, len(shares)-maxActions)
	m := g.ActionMix
	if len(m.Divergences) > 0 {
		d.ActionText = fmt.Sprintf("Entropy of the actions: %.2f bits in the baseline, %.2f bits in the most recent %s. An entropy of 0 means that the action is always the same.", m.BaselineEntropy, m.CurrentEntropy, d.Unit.Many())
	}
}
