package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// How much the page of a policy shows at once; the API has all of it.
const (
	maxCards    = 24 // streams with their distributions
	maxActions  = 20
	maxOfPolicy = 20 // incidents, and requests
)

// policyData is what the page of a policy shows of it and of one of its groups, as text.
type policyData struct {
	Policy    string
	Refresh   string // leads to the same page
	Groups    []groupChoice
	Group     *groupData // nil where the policy, or the group that was asked for, is not known
	Incidents []incidentRow
	Requests  []requestLine
	More      struct{ Incidents, Requests bool } // there are some that did not fit
	NoLedger  bool
}

// groupChoice leads to a group of the policy.
type groupChoice struct {
	Name, Link, State, Class string
	Here                     bool
}

// incidentRow is an incident of the policy, open or closed.
type incidentRow struct {
	listedIncident
	Since, Closed moment
}

// groupData is a group as it stands.
type groupData struct {
	group ingest.Group

	Name                        string
	State, Class                string
	Since, Last                 moment
	Units, Versions, Production string
	Baseline, Promise           string
	WarmUp                      string // the warm-up that goes on, "" where none does
	Fault                       string
	Incident                    *attention // open
	Chart                       *chart     // nil before there is a score
	Streams                     []streamCard
	Hidden                      int // streams that did not fit
	Actions                     []actionBar
	HiddenActions               int
	ActionText                  string
}

// streamCard is a stream with its two distributions.
type streamCard struct {
	Signal, State, Class     string
	Score                    score
	Missing, Armed, Next     string
	Shift, Baseline, Current string
	Notes                    []string
	Picture                  *picture // nil before there is a baseline
}

// actionBar is the share of an action, before and now; widths are of 100.
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

// policyData tells of a policy and one of its groups: of the one that is chosen by its key, or else of the worst. The page is refreshed
// with the group that it shows, also once another one is worse.
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
	}
	d.Refresh = groupLink(chosen)
	if len(groups) > 1 || !found {
		d.Groups = groupLinks(groups, known, d.Group)
	}
	d.addIncidents(incidents, c.now())
	d.Requests, d.More.Requests, d.NoLedger = c.requestsOf(ctx, policy)
	return d
}

// chosenGroup gives the group of a key, or the worst where none is chosen.
func chosenGroup(groups []bank.GroupSummary, known known, key string) (s standing, found bool) {
	if key == "" {
		return worstGroup(groups, known), true
	}
	i := slices.IndexFunc(groups, func(g bank.GroupSummary) bool { return groupKey(g.Group) == key })
	if i < 0 {
		return standing{}, false
	}
	return standingOf(&groups[i], known), true
}

// groupsOf gives the groups of a policy, nil where it is not known.
func groupsOf(summaries []*bank.Summary, policy string) []bank.GroupSummary {
	for _, p := range summaries {
		if p.Policy == policy {
			return p.Groups
		}
	}
	return nil
}

// groupKey names a group of a policy in an address, another one than every other group; it is not empty.
func groupKey(g ingest.Group) string {
	var parts []string
	for _, l := range g.Labels() {
		parts = append(parts, strconv.Quote(l.Name)+"="+strconv.Quote(l.Value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// groupLink leads from the page of a policy to one of its groups.
func groupLink(key string) string { return "?group=" + url.QueryEscape(key) }

// groupLinks leads to all groups, the worst first; shown may be nil.
func groupLinks(groups []bank.GroupSummary, known known, shown *groupData) []groupChoice {
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

// addIncidents lists those of the policy, the newest first.
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

// requestsOf gives the newest requests of a policy, whether there are more, and whether the ledger did not tell in time.
func (c *Console) requestsOf(ctx context.Context, policy string) (lines []requestLine, more, failed bool) {
	if c.desk == nil {
		return nil, false, false
	}
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	requests, more, err := c.desk.Search(ctx, retrain.Filter{Policy: policy, Limit: maxOfPolicy})
	if err != nil {
		c.log.Error().Err(err).Msg("cannot read the ledger")
		return nil, false, true
	}
	return requestLines(requests), more, false
}

func (c *Console) groupData(s standing, known known) *groupData {
	g := s.summary
	d := &groupData{
		group: g.Group,
		Name:  labelsOf(g.Group), State: words.Plain(s.state.String()), Class: stateClass(s.state), Since: s.since(known, c.now()), Last: momentOf(g.LastUnitTS, c.now()),
		Units: words.Grouped(g.Units, thinSpace), Versions: versionsText(g), Production: g.Production, WarmUp: warmUpText(g),
	}
	if g.Baseline.ID != "" {
		d.Baseline = words.Baseline(g.Baseline)
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
	d.Chart = chartOf(c.view.Course(g.Group), streams, known.incidents[g.Group])
	for i := range streams[:min(len(streams), maxCards)] {
		d.Streams = append(d.Streams, cardOf(&streams[i]))
	}
	d.Hidden = max(0, len(streams)-maxCards)
	d.addActions(g)
	return d
}

// warmUpText says how far the warm-up is that goes on.
func warmUpText(g *bank.GroupSummary) string {
	var parts []string
	if g.Lineage.Wanted > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d units", g.Lineage.Collected, g.Lineage.Wanted))
	}
	if g.Lineage.NextVersion != "" {
		parts = append(parts, fmt.Sprintf("version %s: %d of %d units", g.Lineage.NextVersion, g.Lineage.NextUnits, g.Lineage.NextWanted))
	}
	if g.Trending != "" {
		parts = append(parts, "the last one was refused, as it moved on: "+g.Trending)
	}
	return strings.Join(parts, "; ")
}

// worstFirst orders streams by their states, and then by score.
func worstFirst(streams []bank.StreamSummary) []bank.StreamSummary {
	rank := map[bank.State]int{bank.Drift: 0, bank.TelemetryFault: 1, bank.WarmingUp: 2, bank.OK: 2}
	out := slices.Clone(streams)
	slices.SortStableFunc(out, func(a, b bank.StreamSummary) int {
		x, _ := words.Score(&a)
		y, _ := words.Score(&b)
		return cmp.Or(rank[a.State]-rank[b.State], cmp.Compare(y, x))
	})
	return out
}

func cardOf(s *bank.StreamSummary) streamCard {
	card := streamCard{
		Signal: s.Signal, State: words.Plain(s.State.String()), Class: stateClass(s.State), Missing: words.Missing(*s), Armed: strings.Join(s.Armed, ", "),
		Next: nextArmed(s), Notes: s.Notes,
	}
	if x, any := words.Score(s); any {
		card.Score = scoreBar(x)
	}
	if s.Baseline.Units > 0 {
		card.Baseline = distributionText(s.Baseline)
	}
	if s.Current.Units > 0 {
		card.Current = distributionText(s.Current)
	}
	if s.Baseline.Units > 0 && s.Current.Units > 0 {
		card.Shift = fmt.Sprintf("%+.2f sd", s.Effect)
		card.Picture = pictureOf(s)
	}
	return card
}

func distributionText(d bank.Distribution) string {
	return words.Short(d.Mean) + " ± " + words.Short(d.SD)
}

// nextArmed says which test the stream would get next by a larger baseline.
func nextArmed(s *bank.StreamSummary) string {
	if len(s.Dropped) == 0 || len(s.Armed) == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d tests wait for a larger baseline", len(s.Dropped), s.Branches+len(s.Dropped))
	var next *bank.DroppedBranch
	for i := range s.Dropped {
		if d := &s.Dropped[i]; d.Units > 0 && (next == nil || d.Units < next.Units) {
			next = d
		}
	}
	if next == nil {
		return text + "; none within reach"
	}
	return fmt.Sprintf("%s; next %s, at about %s units", text, next.Branch, words.Grouped(int64(next.Units), thinSpace))
}

// addActions lists the actions, the commonest first.
func (d *groupData) addActions(g *bank.GroupSummary) {
	shares := slices.Clone(g.ActionShare)
	slices.SortStableFunc(shares, func(a, b bank.ActionShare) int {
		return cmp.Compare(max(b.Baseline, b.Current), max(a.Baseline, a.Current))
	})
	for _, s := range shares[:min(len(shares), maxActions)] {
		d.Actions = append(d.Actions, actionBar{
			Action: s.Action, Baseline: percent(s.Baseline), Current: percent(s.Current), Change: fmt.Sprintf("%+.1f", 100*(s.Current-s.Baseline)),
			BaselineBar: pixels(100 * s.Baseline), CurrentBar: pixels(100 * s.Current),
		})
	}
	d.HiddenActions = max(0, len(shares)-maxActions)
	m := g.ActionMix
	if len(m.Divergences) > 0 {
		d.ActionText = fmt.Sprintf("Entropy %.2f bits in the baseline, %.2f now.", m.BaselineEntropy, m.CurrentEntropy)
	}
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
