package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// explainOptions are the flags of explain.
type explainOptions struct {
	from, scores string
}

func newExplainCommand(c *console) *cobra.Command {
	service := &client{}
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain ALARM",
		Short: "Tell the story of an alarm",
		Long: "Tells what drifted, by how much, since when, why, and on which records, what people decided and what was ordered, with\n" +
			"small plots. ALARM is the id of an alarm or of an incident, or as much of its beginning as no other has. It is looked for in a\n" +
			"running service, or with --from in what replay --output json has printed.",
		Example: "  rewardwatch explain 6dcbf0b8\n" +
			"  rewardwatch replay --output json --scores scores.ndjson events.ndjson >alarms.ndjson\n" +
			"  rewardwatch explain 6dcbf0b8 --from alarms.ndjson --scores scores.ndjson",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runExplain(cmd.Context(), c, service, o, args[0])
		},
	}
	service.flags(cmd)
	cmd.Flags().StringVar(&o.from, "from", "", "file with what replay --output json has printed, instead of a service; - is the standard input")
	cmd.Flags().StringVar(&o.scores, "scores", "", "file with what replay --scores has written, for the plot of the score")
	return cmd
}

func runExplain(ctx context.Context, c *console, service *client, o explainOptions, id string) error {
	if o.scores != "" && o.from == "" {
		return errors.New("--scores is of a replay, which --from must name")
	}
	told, err := o.known(ctx, c, service)
	if err != nil {
		return err
	}
	s, err := told.story(id)
	if err != nil {
		return err
	}
	if o.from == "" {
		s.Requests = orderedFor(ctx, c, service, s)
	}
	if o.scores != "" {
		if s.Scores, err = readScores(o.scores, s.alarm); err != nil {
			return err
		}
	}
	return c.print(s, s.text)
}

// storyJSON is what explain prints: an alarm, its incident with the alarms beside it, and what was ordered for it.
type storyJSON struct {
	Event    string           `json:"event"` // "story"
	Alarm    alarmAPI         `json:"alarm"`
	Incident *incidentAPI     `json:"incident"` // null where the replay broke off before it told of it
	Requests []*shownRequest  `json:"retrain_requests"`
	Scores   []scoredUnitJSON `json:"scores"` // the largest after each unit; empty where they are not known

	alarm alerts.Alarm
}

// scoredUnitJSON is the largest score of a stream after the unit that ended at a record.
type scoredUnitJSON struct {
	Index int64  `json:"index"`
	Score number `json:"score"`
}

// knownIncidents is where an alarm is looked for.
type knownIncidents []incidentAPI

func (o *explainOptions) known(ctx context.Context, c *console, service *client) (knownIncidents, error) {
	if o.from != "" {
		return replayedIncidents(o.from, c.in)
	}
	var answer struct{ Incidents knownIncidents }
	err := service.get(ctx, &answer, "incidents")
	return answer.Incidents, err
}

// shownIDs is how many ids an error names.
const shownIDs = 10

// story finds an alarm by its id or that of its incident, or by a beginning that no other has. An incident has the id of its first
// alarm, so that both mean the same.
func (k knownIncidents) story(id string) (*storyJSON, error) {
	var found []string
	for _, i := range k {
		for _, known := range i.ids() {
			if known == id {
				return k.storyOf(id), nil
			}
			if strings.HasPrefix(known, id) && !slices.Contains(found, known) {
				found = append(found, known)
			}
		}
	}
	if len(found) == 1 && id != "" {
		return k.storyOf(found[0]), nil
	}
	if len(found) == 0 || id == "" {
		return nil, fmt.Errorf("no alarm and no incident has an id that begins with %q", id)
	}
	more := ""
	if len(found) > shownIDs {
		found, more = found[:shownIDs], ", ..."
	}
	return nil, fmt.Errorf("several ids begin with %q: %s%s", id, strings.Join(found, ", "), more)
}

// ids gives the ids of an incident and of its alarms.
func (i *incidentAPI) ids() (ids []string) {
	ids = append(ids, i.ID)
	for k := range i.Alarms {
		ids = append(ids, i.Alarms[k].ID)
	}
	return ids
}

// storyOf tells of the alarm of an id, or of the first of the incident of that id.
func (k knownIncidents) storyOf(id string) *storyJSON {
	for n := range k {
		i := &k[n]
		at := slices.IndexFunc(i.Alarms, func(a alarmAPI) bool { return a.ID == id })
		if at < 0 && i.ID == id && len(i.Alarms) > 0 {
			at = 0
		}
		if at >= 0 {
			a := i.Alarms[at]
			return &storyJSON{
				Event: "story", Alarm: a, Incident: i, Requests: []*shownRequest{}, Scores: []scoredUnitJSON{}, alarm: a.alarm(),
			}
		}
	}
	return nil
}

// orderedFor asks the service for the requests that the incident of a story has led to, the oldest first. A ledger that cannot be read
// is told, and takes nothing from the rest of the story.
func orderedFor(ctx context.Context, c *console, service *client, s *storyJSON) []*shownRequest {
	var answer struct {
		Requests []*shownRequest `json:"retrain_requests"`
		Next     *string         `json:"next"`
	}
	if err := service.query(ctx, &answer, url.Values{"policy": {s.Alarm.Policy}}, "retrain-requests"); err != nil {
		c.tell("rewardwatch: what was ordered is not known: %v", err)
	}
	if answer.Next != nil {
		c.tell("rewardwatch: only the newest %d retrain requests of %s were looked through for what was ordered", len(answer.Requests), printable(s.Alarm.Policy))
	}
	var requests []retrain.Request
	shown := map[string]*shownRequest{}
	for _, q := range answer.Requests {
		requests, shown[q.ID] = append(requests, q.Request), q
	}
	ordered := []*shownRequest{}
	for _, q := range words.OfIncident(requests, s.Alarm.Incident) {
		ordered = append(ordered, shown[q.ID])
	}
	return ordered
}

// maxReplayLine bounds a line of what a replay has printed.
const maxReplayLine = 16 * int(ingest.MiB)

// eachLine reads a file line by line; "-" is the standard input.
func eachLine(file string, stdin io.Reader, take func(line []byte) error) error {
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxReplayLine)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := take(lines.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// errNoReplay says that a file was not written by replay.
var errNoReplay = errors.New("this is not what replay --output json prints")

// replayedIncidents reads what a replay has printed. Of an alarm the last line holds, of an incident the summary.
func replayedIncidents(file string, stdin io.Reader) (knownIncidents, error) {
	var k knownIncidents
	err := eachLine(file, stdin, func(line []byte) error {
		var kind struct {
			Event string `json:"event"`
		}
		if err := json.Unmarshal(line, &kind); err != nil {
			return fmt.Errorf("%w: %w", errNoReplay, err)
		}
		switch kind.Event {
		case "alarm":
			var a alarmJSON
			if err := json.Unmarshal(line, &a); err != nil {
				return fmt.Errorf("%w: %w", errNoReplay, err)
			}
			k.addAlarm(a)
		case "summary":
			var s struct {
				Incidents []incidentLineJSON `json:"incidents"`
			}
			if err := json.Unmarshal(line, &s); err != nil {
				return fmt.Errorf("%w: %w", errNoReplay, err)
			}
			k.addSummary(s.Incidents)
		case "comparison", "comparison_summary":
		default:
			return errNoReplay
		}
		return nil
	})
	return k, err
}

// addAlarm adds an alarm to its incident, or replaces what was told of it before.
func (k *knownIncidents) addAlarm(line alarmJSON) {
	n := slices.IndexFunc(*k, func(i incidentAPI) bool { return i.ID == line.Incident })
	if n < 0 {
		n = len(*k)
		*k = append(*k, incidentAPI{
			ID: line.Incident, Policy: line.Policy, Group: line.Group, Provisional: line.Provisional, Cause: line.Cause,
			Evidence: line.Evidence, Causes: line.Causes, Decisions: []decisionAPI{},
		})
	}
	i := &(*k)[n]
	at := slices.IndexFunc(i.Alarms, func(a alarmAPI) bool { return a.ID == line.ID })
	if at < 0 {
		at, i.Alarms = len(i.Alarms), append(i.Alarms, alarmAPI{})
	}
	i.Alarms[at] = line.of(i.Alarms[at].At)
	i.Opened = i.Alarms[0].At
}

// of gives the alarm of a line as the API would. Found is the unit at which it fired, where a line before has told of it.
func (a *alarmJSON) of(found unitAPI) alarmAPI {
	here := unitAPI{Ordinal: a.Unit, FirstOffset: a.Index, Offset: a.Index, TS: a.TS}
	out := alarmAPI{
		ID: a.ID, Incident: a.Incident, State: a.State, Policy: a.Policy, Group: a.Group, Signal: a.Signal, Provisional: a.Provisional,
		Detectors: a.Detectors, Score: a.Score, Cause: a.Cause, Evidence: a.Evidence, At: here,
		Onset:  unitAPI{Ordinal: a.OnsetUnit, FirstOffset: a.OnsetIndex, Offset: a.OnsetIndex, TS: a.OnsetTS},
		Effect: a.Effect, Baseline: a.Baseline, Before: a.Before, After: a.After, Offsets: []ingest.Range{}, evidenceJSON: a.evidenceJSON,
	}
	if a.State == "resolved" {
		out.ResolvedAt = &here
		if found != (unitAPI{}) {
			out.At = found
		}
	}
	if o := a.Offsets; o != nil {
		out.Offsets = append(out.Offsets, ingest.Range{First: o.First, Last: o.Last})
	}
	return out
}

// addSummary adds how incidents ended.
func (k *knownIncidents) addSummary(incidents []incidentLineJSON) {
	for _, line := range incidents {
		if n := slices.IndexFunc(*k, func(i incidentAPI) bool { return i.ID == line.ID }); n >= 0 {
			i := &(*k)[n]
			i.State, i.Cause, i.Evidence, i.Causes = line.State, line.Cause, line.Evidence, line.Causes
		}
	}
}

// readScores reads the largest score of an alarm's stream after each unit from what replay --scores has written.
func readScores(file string, a alerts.Alarm) ([]scoredUnitJSON, error) {
	scores := []scoredUnitJSON{}
	err := eachLine(file, nil, func(line []byte) error {
		var s scoreJSON
		if err := json.Unmarshal(line, &s); err != nil || s.Detector == "" {
			return errors.Join(errors.New("this is not what replay --scores writes"), err)
		}
		if s.Score == nil || s.Signal != a.Signal || words.Group(s.Policy, s.Group) != a.Group {
			return nil
		}
		last := len(scores) - 1
		if last >= 0 && scores[last].Index == s.Index {
			scores[last].Score = max(scores[last].Score, *s.Score)
		} else {
			scores = append(scores, scoredUnitJSON{s.Index, *s.Score})
		}
		return nil
	})
	return scores, err
}
