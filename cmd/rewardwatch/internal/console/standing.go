package console

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// known is the known data of groups in addition to their summaries.
type known struct {
	incidents map[ingest.Group]*alerts.Incident // newest incidents
	faults    map[ingest.Group]*alerts.Fault
	trips     map[string][]*alerts.Incident // open incidents of guards, by policy
}

func newKnown(incidents []alerts.Incident, faults []alerts.Fault) known {
	k := known{incidents: map[ingest.Group]*alerts.Incident{}, faults: map[ingest.Group]*alerts.Fault{}, trips: map[string][]*alerts.Incident{}}
	for i := range incidents {
		k.incidents[incidents[i].Group] = &incidents[i]
		if policy := incidents[i].Group.Policy; !incidents[i].Closed && incidents[i].Guard() != nil {
			k.trips[policy] = append(k.trips[policy], &incidents[i])
		}
	}
	for i := range faults {
		k.faults[faults[i].Group] = &faults[i]
	}
	return k
}

// open returns the open incident of a group, or nil if there is none.
func (k known) open(g ingest.Group) *alerts.Incident {
	if i := k.incidents[g]; i != nil && !i.Closed {
		return i
	}
	return nil
}

// standing is the overall state of a group.
type standing struct {
	summary  *finding.GroupSummary
	state    finding.State // of its worst stream; warming up if no stream is judged yet
	score    score
	largest  float64          // score as a number; -1 before a detector is armed
	incident *alerts.Incident // open, nil if there is none
}

func standingOf(g *finding.GroupSummary, k known) standing {
	s := standing{summary: g, state: finding.WarmingUp, largest: -1, incident: k.open(g.Group)}
	for i := range g.Streams {
		stream := &g.Streams[i]
		if severity(stream.State) > severity(s.state) {
			s.state = stream.State
		}
		if have, any := words.Score(stream); any && have > s.largest {
			s.largest, s.score = have, scoreBar(have)
		}
	}
	return s
}

// severity ranks states. The state of a group is its most severe one.
func severity(s finding.State) int {
	return map[finding.State]int{finding.WarmingUp: 0, finding.OK: 1, finding.TelemetryFault: 2, finding.Drift: 3}[s]
}

// rank returns the sort key of a group; lower values come first. Of two groups in the same state, the one with an open
// incident comes first. An incident stays open for some units after all signals have returned to the baseline.
func (s standing) rank() int {
	rank := 2 * map[finding.State]int{finding.Drift: 0, finding.TelemetryFault: 1, finding.WarmingUp: 2, finding.OK: 3}[s.state]
	if s.incident == nil {
		rank++
	}
	return rank
}

// compare sorts groups, worst first: by rank, and then by score.
func (s standing) compare(to standing) int {
	return cmp.Or(s.rank()-to.rank(), cmp.Compare(to.largest, s.largest))
}

func worstGroup(groups []finding.GroupSummary, k known) standing {
	worst := standingOf(&groups[0], k)
	for i := range groups[1:] {
		s := standingOf(&groups[i+1], k)
		if s.compare(worst) < 0 {
			worst = s
		}
	}
	return worst
}

// since returns when the group entered its state: at its first onset, at the beginning of its fault, or when its
// baseline was frozen, its last incident closed, or the last alarm of an open incident resolved.
func (s standing) since(k known, now time.Time) moment {
	i := k.incidents[s.summary.Group]
	switch {
	case s.state == finding.Drift && s.incident != nil && len(s.incident.Alarms) > 0:
		return momentOf(s.incident.Earliest().Onset.TS, now)
	case s.state == finding.TelemetryFault && k.faults[s.summary.Group] != nil:
		return momentOf(k.faults[s.summary.Group].Since.TS, now)
	case s.state == finding.OK:
		return momentOf(max(s.summary.FrozenTS, backAt(i)), now)
	}
	return moment{}
}

// backAt returns when an incident closed, or when the latest alarm of an open one resolved, in Unix nanoseconds. It
// returns 0 if neither has happened.
func backAt(i *alerts.Incident) int64 {
	switch {
	case i == nil:
		return 0
	case i.Closed:
		return i.ClosedAt.TS
	}
	var newest int64
	for k := range i.Alarms {
		if i.Alarms[k].Resolved {
			newest = max(newest, i.Alarms[k].ResolvedAt.TS)
		}
	}
	return newest
}

// scoreBar draws a score. The bar may extend slightly beyond the line of score 1.
func scoreBar(x float64) score {
	s := score{Text: fmt.Sprintf("%.2f", x), Bar: strconv.FormatFloat(80*min(1.25, max(0, x)), 'f', 1, 64), Class: "calm"}
	switch {
	case math.IsNaN(x):
		s.Bar = "0"
	case x >= 1:
		s.Class = "over"
	case x >= .5:
		s.Class = "near"
	}
	return s
}

func stateClass(s finding.State) string { return strings.ReplaceAll(s.String(), "_", "-") }

// labelsOf returns the labels of a group on one line, or "" if it has none.
func labelsOf(g ingest.Group) string { return strings.Join(labelList(g), ", ") }

// labelList returns the labels of a group, one text per label.
func labelList(g ingest.Group) []string {
	var out []string
	for _, l := range g.Labels() {
		out = append(out, l.Name+" = "+l.Value)
	}
	return out
}

// momentOf formats a time in Unix nanoseconds; 0 means none.
func momentOf(ns int64, now time.Time) moment {
	if ns == 0 {
		return moment{}
	}
	at := time.Unix(0, ns)
	return moment{Ago: ago(now.Sub(at)), At: words.Stamp(at)}
}

// ago formats a past duration in the largest unit that fits.
func ago(d time.Duration) string {
	ahead := d < -time.Minute // clocks may differ slightly
	if ahead {
		d = -d
	}
	text := ""
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", max(0, int(d.Seconds())))
	case d < time.Hour:
		text = fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		text = fmt.Sprintf("%d h", int(d.Hours()))
	default:
		text = fmt.Sprintf("%d d", int(d.Hours()/24))
	}
	if ahead {
		return "in " + text
	}
	return text + " ago"
}

// policyLink returns the path from the root to the page of a policy.
func policyLink(policy string) string { return "policies/" + segment(policy) }

func incidentLink(id string) string { return "incidents/" + segment(id) }

// segment encodes any name as a path segment. Names that begin with a dot, slash or tilde, and empty names, get a tilde
// in front: browsers resolve the segments "." and ".." even if they are escaped, servers end the path at "/", and an
// empty segment does not exist.
func segment(name string) string {
	if name == "" || strings.ContainsRune("./~", rune(name[0])) {
		name = "~" + name
	}
	return url.PathEscape(name)
}

// named decodes the name in a segment of the path.
func named(r *http.Request, wildcard string) string {
	return strings.TrimPrefix(r.PathValue(wildcard), "~")
}

// visible returns a name that people can see and click: it replaces invisible characters, and quotes names that consist
// only of white space.
func visible(name string) string {
	if strings.TrimSpace(name) == "" {
		name = strconv.Quote(name)
	}
	return words.Printable(name)
}
