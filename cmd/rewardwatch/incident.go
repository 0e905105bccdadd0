package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func newIncidentCommand(c *console) *cobra.Command {
	service := &client{}
	cmd := &cobra.Command{
		Use:   "incident",
		Short: "Look at the incidents of a running service, accept or mute them",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	service.flags(cmd)
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the incidents that are open or closed lately", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return listIncidents(cmd.Context(), c, service) },
		},
		&cobra.Command{
			Use: "show INCIDENT", Short: "Show an incident with its alarms and what people decided", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				var i shownIncident
				return c.showIncident(&i, service.get(cmd.Context(), &i, "incidents", args[0]))
			},
		},
		newAcceptCommand(c, service), newMuteCommand(c, service))
	return cmd
}

func newAcceptCommand(c *console, service *client) *cobra.Command {
	var why reason
	cmd := &cobra.Command{
		Use:   "accept INCIDENT --why TEXT",
		Short: "Declare what drifted the new normal",
		Long: "Closes the incident and has its group warm up a new baseline from now on. Until that is frozen the group is not\n" +
			"judged; each new baseline is one more chance of an unlucky one.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := why.check(); err != nil {
				return err
			}
			var i shownIncident
			return c.showIncident(&i, service.post(cmd.Context(), why, &i, "incidents", args[0], "accept"))
		},
	}
	why.flags(cmd)
	return cmd
}

// muteOrder is the body of a mute.
type muteOrder struct {
	reason
	Until *time.Time `json:"until,omitempty"`
	For   *string    `json:"for,omitempty"`
}

func newMuteCommand(c *console, service *client) *cobra.Command {
	var order muteOrder
	var until, duration string
	cmd := &cobra.Command{
		Use:   "mute INCIDENT (--for DURATION | --until TIME) --why TEXT",
		Short: "Have nobody told of an incident until a time",
		Long: "Resolves the alert and keeps it so, and has no retraining ordered, until the time has come; whoever is told of\n" +
			"incidents is told again then, if it is still open. A later mute replaces an earlier one; --for 0 ends it at once.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(order.check(), order.set(until, duration)); err != nil {
				return err
			}
			var i shownIncident
			return c.showIncident(&i, service.post(cmd.Context(), order, &i, "incidents", args[0], "mute"))
		},
	}
	order.flags(cmd)
	cmd.Flags().StringVar(&duration, "for", "", "for how long, such as 4h or 2d; 0 ends a mute")
	cmd.Flags().StringVar(&until, "until", "", "until when, as in 2026-11-20T18:00:00Z")
	return cmd
}

func (o *muteOrder) set(until, duration string) error {
	switch {
	case (until == "") == (duration == ""):
		return errors.New("either --for or --until says how long to mute")
	case duration != "":
		o.For = &duration
		return nil
	}
	t, err := time.Parse(time.RFC3339, until)
	if err != nil {
		return fmt.Errorf("--until %q is not a time such as 2026-11-20T18:00:00Z", until)
	}
	o.Until = &t
	return nil
}

// shownIncident is an incident as the API gives it. Raw is printed where JSON is asked for.
type shownIncident struct {
	incidentAPI
	raw json.RawMessage
}

// UnmarshalJSON reads the incident and keeps the text.
func (i *shownIncident) UnmarshalJSON(text []byte) error {
	type plain shownIncident
	i.raw = slices.Clone(text)
	return json.Unmarshal(text, (*plain)(i))
}

// alarm gives what of an alarm is printed.
func (a *alarmAPI) alarm() alerts.Alarm {
	out := alerts.Alarm{
		ID: a.ID, Incident: a.Incident, Group: words.Group(a.Policy, a.Group), Signal: a.Signal, Provisional: a.Provisional,
		Detectors: a.Detectors, Score: float64(a.Score), At: a.At.ref(), Onset: a.Onset.ref(), Effect: a.Effect,
		Baseline: bank.BaselineRef{ID: a.Baseline.ID, Units: a.Baseline.Units, Provisional: a.Provisional},
		Before:   ingest.Versions(a.Before), After: ingest.Versions(a.After),
		Offsets: a.Offsets, Cause: a.Cause, Evidence: a.Evidence,
	}
	a.addTo(&out)
	if a.ResolvedAt != nil {
		out.Resolved, out.ResolvedAt = true, a.ResolvedAt.ref()
	}
	return out
}

// addTo gives an alarm what is known of it beside its own signal.
func (e *evidenceJSON) addTo(a *alerts.Alarm) {
	a.Causes, a.Return, a.Promise, a.Shifts, a.Histogram = e.Causes, e.ReturnChange, e.Promise, e.Shifts, e.Histogram
	if i := e.OnsetInterval; i != nil {
		a.OnsetFrom, a.OnsetTo = endOf(i.FirstUnit, i.FirstTS), endOf(i.LastUnit, i.LastTS)
	}
}

// endOf gives what is printed of a unit at an end of an interval.
func endOf(ordinal int64, ts *time.Time) bank.UnitRef {
	u := bank.UnitRef{Ordinal: ordinal}
	if ts != nil {
		u.TS = ts.UnixNano()
	}
	return u
}

// ref gives the unit that the API showed.
func (u *unitAPI) ref() bank.UnitRef {
	out := bank.UnitRef{
		Ordinal: u.Ordinal, Pos: ingest.Position{Partition: u.Partition, Offset: u.Offset},
		First: ingest.Position{Partition: u.Partition, Offset: u.FirstOffset},
	}
	if u.Agent != nil {
		out.Agent = *u.Agent
	}
	if u.Episode != nil {
		out.Episode = *u.Episode
	}
	if u.TS != nil {
		out.TS = int64(*u.TS)
	}
	return out
}

func listIncidents(ctx context.Context, c *console, service *client) error {
	var answer struct{ Incidents []shownIncident }
	if err := service.get(ctx, &answer, "incidents"); err != nil {
		return err
	}
	slices.SortStableFunc(answer.Incidents, func(a, b shownIncident) int { return -strings.Compare(a.State, b.State) }) // open ones first
	if c.output == outputJSON {
		return printLines(c, answer.Incidents, func(i shownIncident) json.RawMessage { return i.raw })
	}
	rows := [][]string{{"INCIDENT", "STATE", "SEVERITY", "POLICY", "GROUP", "SIGNALS", "CAUSE", "OPENED"}}
	for _, i := range answer.Incidents {
		rows = append(rows, []string{
			i.ID, i.state(), string(i.Severity), i.Policy, labelsText(i.Group), strings.Join(i.signals(), ","), string(i.Cause),
			i.Opened.ref().Moment(),
		})
	}
	return printTable(c.out, rows)
}

// state says whether the incident is open, muted, closed or accepted.
func (i *shownIncident) state() string {
	switch {
	case i.MutedUntil != nil:
		return "muted until " + i.MutedUntil.Format(time.RFC3339)
	case i.State == "closed" && len(i.Decisions) > 0 && i.Decisions[len(i.Decisions)-1].Decision.Ends():
		return string(i.Decisions[len(i.Decisions)-1].Decision)
	}
	return i.State
}

func (i *shownIncident) signals() []string {
	var out []string
	for k := range i.Alarms {
		if signal := i.Alarms[k].Signal; !slices.Contains(out, signal) {
			out = append(out, signal)
		}
	}
	return out
}

// showIncident prints an incident that the service gave, or gives the error of asking for it.
func (c *console) showIncident(i *shownIncident, err error) error {
	if err != nil {
		return err
	}
	return c.print(i.raw, i.text)
}

func (i *shownIncident) text(w io.Writer) error {
	rows := [][]string{
		{"incident", i.ID},
		{"state", i.state()},
		{"severity", string(i.Severity)},
		{"group", words.Group(i.Policy, i.Group).String()},
		{"cause", string(i.Cause)},
	}
	for _, e := range i.Evidence {
		rows = append(rows, []string{"evidence", e})
	}
	rows = append(rows, []string{"opened", i.Opened.ref().String()})
	if i.Closed != nil {
		rows = append(rows, []string{"closed", i.Closed.ref().String()})
	}
	for _, d := range i.Decisions {
		rows = append(rows, []string{"decision", d.text()})
	}
	if err := printTable(w, rows); err != nil {
		return err
	}
	for k := range i.Alarms {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := alarmText(w, i.Alarms[k].alarm()); err != nil {
			return err
		}
	}
	return nil
}

func (d decisionAPI) text() string {
	out := alerts.Decision{Kind: d.Decision, By: d.By, Why: d.Why, At: d.At}
	if d.Until != nil {
		out.Until = *d.Until
	}
	return out.String()
}

// printLines prints results as JSON, one a line.
func printLines[T any](c *console, values []T, of func(T) json.RawMessage) error {
	for _, v := range values {
		if err := writeLine(c.out, of(v)); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
	}
	return nil
}
