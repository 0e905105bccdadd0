package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/client"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/replay"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// explainOptions are the flags of explain.
type explainOptions struct {
	from, scores, signal string
}

func newExplainCommand(c *terminal.Console) *cobra.Command {
	service := &client.Client{}
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain ALARM",
		Short: "Explain an alarm",
		Long: "Shows what drifted, by how much, since when, why, and in which records. Also shows small plots, the decisions made,\n" +
			"and the retrain requests. ALARM is the id of an alarm or incident, or a unique prefix of one. For an incident, explains\n" +
			"the alarm in its headline, or the one that --signal selects. Reads from a running service or, with --from, from the\n" +
			"output of replay --output json.",
		ValidArgsFunction: completeIDs(service, anIncident, 1),
		Example: "  rewardwatch explain 6dcbf0b8\n" +
			"  rewardwatch replay --output json --scores scores.ndjson events.ndjson >alarms.ndjson\n" +
			"  rewardwatch explain 6dcbf0b8 --from alarms.ndjson --scores scores.ndjson",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runExplain(cmd.Context(), c, service, o, args[0])
		},
	}
	service.Flags(cmd)
	cmd.Flags().StringVar(&o.from, "from", "", "output file of replay --output json, used instead of a running service; - for standard input")
	cmd.Flags().StringVar(&o.signal, "signal", "", "explain the alarm of this signal in the incident")
	completeFlag(cmd, "signal", completeSignals(service))
	cmd.Flags().StringVar(&o.scores, "scores", "", "output file of replay --scores, for the plot of the score")
	return cmd
}

func runExplain(ctx context.Context, c *terminal.Console, service *client.Client, o explainOptions, id string) error {
	if o.scores != "" && o.from == "" {
		return errors.New("--scores requires --from with the output of the same replay")
	}
	told, past, err := o.known(ctx, c, service)
	if err != nil {
		return err
	}
	s, err := told.story(id, o.signal)
	if err != nil {
		return err
	}
	if o.from == "" {
		s.Requests = orderedFor(ctx, c, service, s)
		s.History = pastOf(ctx, c, service, &s.Alarm)
	} else if at := slices.IndexFunc(past, func(h wire.History) bool {
		return h.Policy == s.Alarm.Policy && h.Signal == s.Alarm.Signal && maps.Equal(h.Group, s.Alarm.Group)
	}); at >= 0 {
		s.History = &past[at]
	}
	if o.scores != "" {
		if s.Scores, err = readScores(o.scores, s.alarm); err != nil {
			return err
		}
	}
	return c.Print(s, s.text)
}

// storyJSON is printed by explain: an alarm, its incident with the incident's other alarms, and the requests for it.
type storyJSON struct {
	Event    string           `json:"event"` // "story"
	Alarm    wire.Alarm       `json:"alarm"`
	Incident *wire.Incident   `json:"incident"` // null if the replay ended before it printed the incident
	Requests []*shownRequest  `json:"retrain_requests"`
	Scores   []scoredUnitJSON `json:"scores"`  // largest score after each unit; empty if unknown
	History  *wire.History    `json:"history"` // of the signal; null if unknown

	alarm alerts.Alarm
}

// scoredUnitJSON is the largest score of a stream after the unit that ended at a record.
type scoredUnitJSON struct {
	Index int64       `json:"index"`
	Score wire.Number `json:"score"`
}

// knownIncidents are the incidents in which explain looks for an alarm.
type knownIncidents []wire.Incident

// known returns the incidents and, for a replay, the histories of their signals.
func (o *explainOptions) known(ctx context.Context, c *terminal.Console, service *client.Client) (knownIncidents, []wire.History, error) {
	if o.from != "" {
		return replayedIncidents(o.from, c.In)
	}
	var answer struct{ Incidents knownIncidents }
	err := service.Get(ctx, &answer, "incidents")
	return answer.Incidents, nil, err
}

// story finds an alarm by its id, by the id of its incident, or by an unambiguous prefix. An incident has the id of its
// first alarm: such an id means the incident.
func (k knownIncidents) story(id, signal string) (*storyJSON, error) {
	var known []string
	for i := range k {
		known = append(known, idsOf(&k[i])...)
	}
	full, err := oneID(id, known)
	switch {
	case errors.Is(err, errNoID):
		return nil, fmt.Errorf("alarm or incident: %w; to see the ids, run rewardwatch replay or rewardwatch incident list", err)
	case err != nil:
		return nil, err
	}
	return k.storyOf(full, signal)
}

// idsOf returns the ids of an incident and of its alarms.
func idsOf(i *wire.Incident) (ids []string) {
	ids = append(ids, i.ID)
	for k := range i.Alarms {
		ids = append(ids, i.Alarms[k].ID)
	}
	return ids
}

// storyOf returns the story of an alarm: of the foremost one of a signal in the incident that has an id or contains the
// alarm with that id. Without a signal, it is the alarm with the id, or the foremost one of the incident.
func (k knownIncidents) storyOf(id, signal string) (*storyJSON, error) {
	i := &k[slices.IndexFunc(k, func(i wire.Incident) bool { return slices.Contains(idsOf(&i), id) })]
	wanted := func(a alerts.Alarm) bool { return a.ID == id }
	switch {
	case signal != "":
		wanted = func(a alerts.Alarm) bool { return a.Signal == signal }
	case i.ID == id:
		wanted = func(alerts.Alarm) bool { return true }
	}
	foremost := foremostFirst(i.Alarms)
	at := slices.IndexFunc(foremost, wanted)
	switch {
	case at < 0 && signal != "":
		return nil, fmt.Errorf("incident %s has no alarm of signal %q", i.ID, signal)
	case at < 0:
		return nil, fmt.Errorf("incident %s has no alarms", i.ID)
	}
	of := slices.IndexFunc(i.Alarms, func(a wire.Alarm) bool { return a.ID == foremost[at].ID })
	return &storyJSON{
		Event: "story", Alarm: i.Alarms[of], Incident: i, Requests: []*shownRequest{}, Scores: []scoredUnitJSON{}, alarm: foremost[at],
	}, nil
}

// completeSignals completes a flag with the signals of the incident that the first argument names.
func completeSignals(service *client.Client) completion {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var answer struct{ Incidents knownIncidents }
		if err := service.Get(cmd.Context(), &answer, string(anIncident)); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var out []cobra.Completion
		for n := range answer.Incidents {
			i := &answer.Incidents[n]
			if len(args) == 0 || slices.ContainsFunc(idsOf(i), func(id string) bool { return strings.HasPrefix(id, args[0]) }) {
				for k := range i.Alarms {
					out = append(out, i.Alarms[k].Signal)
				}
			}
		}
		slices.Sort(out)
		return slices.Compact(out), cobra.ShellCompDirectiveNoFileComp
	}
}

// orderedFor returns the requests that the incident of a story has led to, oldest first. If the ledger cannot be read,
// it reports that, and the rest of the story is still printed.
func orderedFor(ctx context.Context, c *terminal.Console, service *client.Client, s *storyJSON) []*shownRequest {
	var answer struct {
		Requests []*shownRequest `json:"retrain_requests"`
		Next     *string         `json:"next"`
	}
	if err := service.Query(ctx, &answer, url.Values{"policy": {s.Alarm.Policy}}, "retrain-requests"); err != nil {
		c.Tell("rewardwatch: cannot read the retrain requests: %v", err)
	}
	if answer.Next != nil {
		c.Tell("rewardwatch: searched only the newest %d retrain requests of %s", len(answer.Requests), terminal.Printable(s.Alarm.Policy))
	}
	var requests []ledger.Request
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

// maxReplayLine limits the length of a line of replay output.
const maxReplayLine = 16 * int(ingest.MiB)

// eachLine reads a file line by line; "-" is the standard input.
func eachLine(file string, stdin io.Reader, take func(line []byte) error) error {
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // opened only for reading
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

// errNoReplay is returned for a file that replay did not write.
var errNoReplay = errors.New("not the output of replay --output json")

// replayedIncidents reads the output of a replay. It uses the last line of each alarm, and the summary for incidents.
func replayedIncidents(file string, stdin io.Reader) (k knownIncidents, past []wire.History, err error) {
	err = eachLine(file, stdin, func(line []byte) error {
		var kind struct {
			Event string `json:"event"`
		}
		if err := json.Unmarshal(line, &kind); err != nil {
			return fmt.Errorf("%w: %w", errNoReplay, err)
		}
		switch kind.Event {
		case "alarm":
			var a replay.AlarmRecord
			if err := json.Unmarshal(line, &a); err != nil {
				return fmt.Errorf("%w: %w", errNoReplay, err)
			}
			k.addAlarm(a)
		case "summary":
			var s struct {
				Incidents []replay.IncidentRecord `json:"incidents"`
			}
			if err := json.Unmarshal(line, &s); err != nil {
				return fmt.Errorf("%w: %w", errNoReplay, err)
			}
			k.addSummary(s.Incidents)
		case "history":
			var h replay.HistoryRecord
			if err := json.Unmarshal(line, &h); err != nil {
				return fmt.Errorf("%w: %w", errNoReplay, err)
			}
			past = append(past, h.History)
		case "fault", "comparison", "comparison_summary":
		default:
			return errNoReplay
		}
		return nil
	})
	return k, past, err
}

// addAlarm adds an alarm to its incident, or replaces its earlier state.
func (k *knownIncidents) addAlarm(line replay.AlarmRecord) {
	n := slices.IndexFunc(*k, func(i wire.Incident) bool { return i.ID == line.Incident })
	if n < 0 {
		n = len(*k)
		*k = append(*k, wire.Incident{
			ID: line.Incident, Policy: line.Policy, Group: line.Group, Provisional: line.Provisional, Cause: line.Cause,
			Evidence: line.Evidence, Causes: line.Causes, Decisions: []wire.Decision{},
		})
	}
	i := &(*k)[n]
	at := slices.IndexFunc(i.Alarms, func(a wire.Alarm) bool { return a.ID == line.ID })
	if at < 0 {
		at, i.Alarms = len(i.Alarms), append(i.Alarms, wire.Alarm{})
	}
	i.Alarms[at] = line.Of(i.Alarms[at].At)
	i.Opened = i.Alarms[0].At
}

// addSummary adds the final states of incidents.
func (k *knownIncidents) addSummary(incidents []replay.IncidentRecord) {
	for _, line := range incidents {
		if n := slices.IndexFunc(*k, func(i wire.Incident) bool { return i.ID == line.ID }); n >= 0 {
			i := &(*k)[n]
			i.State, i.Cause, i.Evidence, i.Causes = line.State, line.Cause, line.Evidence, line.Causes
		}
	}
}

// readScores reads, from the output of replay --scores, the largest score of an alarm's stream after each unit.
func readScores(file string, a alerts.Alarm) ([]scoredUnitJSON, error) {
	scores := []scoredUnitJSON{}
	err := eachLine(file, nil, func(line []byte) error {
		var s replay.ScoreRecord
		if err := json.Unmarshal(line, &s); err != nil || s.Detector == "" {
			return errors.Join(errors.New("not the output of replay --scores"), err)
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
