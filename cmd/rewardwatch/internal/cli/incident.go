package cli

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
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/client"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
)

func newIncidentCommand(c *terminal.Console) *cobra.Command {
	service := &client.Client{}
	cmd := showsHelp(&cobra.Command{
		Use:   "incident",
		Short: "Show, accept, mute and comment on incidents of a running service",
	})
	service.Flags(cmd)
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List open and recently closed incidents", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return listIncidents(cmd.Context(), c, service) },
		},
		&cobra.Command{
			Use: "show INCIDENT", Short: "Show an incident with its alarms and the decisions about it", Args: cobra.ExactArgs(1),
			ValidArgsFunction: completeIDs(service, anIncident, 1),
			RunE: func(cmd *cobra.Command, args []string) error {
				id, err := fullID(cmd.Context(), service, anIncident, args[0])
				if err != nil {
					return err
				}
				var i shownIncident
				return showIncident(c, &i, service.Get(cmd.Context(), &i, "incidents", id))
			},
		},
		newAcceptCommand(c, service), newMuteCommand(c, service), newUnmuteCommand(c, service), newCommentCommand(c, service))
	return cmd
}

func newAcceptCommand(c *terminal.Console, service *client.Client) *cobra.Command {
	var why wire.Reason
	cmd := &cobra.Command{
		Use:   "accept INCIDENT --why TEXT",
		Short: "Accept the drift as the new normal",
		Long: "Closes the incident and starts collecting a new baseline for its group. The group is not checked for drift until the\n" +
			"new baseline is complete. Any baseline can be unrepresentative by chance, so accept only changes that will last.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeIDs(service, anIncident, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := why.Check(); err != nil {
				return err
			}
			_, err := orderIncident(cmd.Context(), c, service, why, args[0], "accept")
			return err
		},
	}
	client.ReasonFlags(cmd, &why)
	return cmd
}

func newCommentCommand(c *terminal.Console, service *client.Client) *cobra.Command {
	var why wire.Reason
	cmd := &cobra.Command{
		Use:   "comment INCIDENT --why TEXT",
		Short: "Comment on an incident",
		Long:  "Adds a comment to an open or recently closed incident. A comment changes nothing else.",
		Args:  cobra.ExactArgs(1),

		ValidArgsFunction: completeIDs(service, anIncident, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := why.Check(); err != nil {
				return err
			}
			_, err := orderIncident(cmd.Context(), c, service, why, args[0], "comment")
			return err
		},
	}
	client.ReasonFlags(cmd, &why)
	return cmd
}

// muteOrder is the body of a mute.
type muteOrder struct {
	wire.Reason
	Until *time.Time `json:"until,omitempty"`
	For   *string    `json:"for,omitempty"`
}

func newMuteCommand(c *terminal.Console, service *client.Client) *cobra.Command {
	var order muteOrder
	var until, duration string
	cmd := &cobra.Command{
		Use:   "mute INCIDENT (--for DURATION | --until TIME) --why TEXT",
		Short: "Mute an incident until a given time",
		Long: "Until the given time, the alert is resolved and the incident does not trigger a retraining. If the incident is still\n" +
			"open then, the alert fires again. A new mute replaces the previous one. To end it early, use unmute.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeIDs(service, anIncident, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(order.Check(), order.set(until, duration)); err != nil {
				return err
			}
			i, err := orderIncident(cmd.Context(), c, service, order, args[0], "mute")
			if err == nil && i.mutedLong() {
				c.Tell("Warning: this mute suppresses notifications for more than %d days. To end it earlier, run `rewardwatch incident unmute %s`.", words.MutedLongDays, i.ID)
			}
			return err
		},
	}
	client.ReasonFlags(cmd, &order.Reason)
	cmd.Flags().StringVar(&duration, "for", "", "how long to mute the incident, such as 4h or 2d")
	var presets []string
	for _, preset := range words.MutePresets() {
		presets = append(presets, preset.For)
	}
	completeFlag(cmd, "for", completeWords(presets))
	cmd.Flags().StringVar(&until, "until", "", "time at which the mute ends, such as \"2026-11-20 18:00:00 UTC\"")
	return cmd
}

func newUnmuteCommand(c *terminal.Console, service *client.Client) *cobra.Command {
	var order muteOrder
	cmd := &cobra.Command{
		Use:               "unmute INCIDENT --why TEXT",
		Short:             "End the mute of an incident",
		Long:              "If the incident is still open, its alert fires again.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeIDs(service, anIncident, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(order.Check(), order.set("", "0s")); err != nil {
				return err
			}
			_, err := orderIncident(cmd.Context(), c, service, order, args[0], "mute")
			return err
		},
	}
	client.ReasonFlags(cmd, &order.Reason)
	return cmd
}

func (o *muteOrder) set(until, duration string) error {
	switch {
	case (until == "") == (duration == ""):
		return errors.New("set the end of the mute with either --for or --until")
	case duration != "":
		o.For = &duration
		return nil
	}
	t, err := words.ParseTime(until)
	if err != nil {
		return fmt.Errorf("--until %q %w", until, err)
	}
	o.Until = &t
	return nil
}

// mutedLong reports whether the last mute is a long one. Comments may follow it, because repeating a mute adds no
// decision.
func (i *shownIncident) mutedLong() bool {
	for _, d := range slices.Backward(i.Decisions) {
		if d.Decision == alerts.Muted {
			return d.Until != nil && words.MutedLong(d.At, *d.Until)
		}
	}
	return false
}

// shownIncident is an incident as returned by the API. raw is printed as JSON.
type shownIncident struct {
	wire.Incident
	raw json.RawMessage
}

// UnmarshalJSON reads the incident and keeps its text.
func (i *shownIncident) UnmarshalJSON(text []byte) error {
	type plain shownIncident
	i.raw = slices.Clone(text)
	return json.Unmarshal(text, (*plain)(i))
}

func listIncidents(ctx context.Context, c *terminal.Console, service *client.Client) error {
	var answer struct{ Incidents []shownIncident }
	if err := service.Get(ctx, &answer, "incidents"); err != nil {
		return err
	}
	slices.SortStableFunc(answer.Incidents, func(a, b shownIncident) int { return -strings.Compare(a.State, b.State) }) // open ones first
	if c.Output == terminal.OutputJSON {
		return printLines(c, answer.Incidents, func(i shownIncident) json.RawMessage { return i.raw })
	}
	rows := [][]string{{"INCIDENT", "STATE", "SEVERITY", "POLICY", "GROUP", "SIGNALS", "CAUSE", "OPENED"}}
	for _, i := range answer.Incidents {
		rows = append(rows, []string{
			i.ID, i.state(), string(i.Severity), i.Policy, terminal.LabelsText(i.Group), strings.Join(alerts.Ranked(i.signals()), ", "), string(i.Cause),
			i.Opened.Ref().Moment(i.UnitName()),
		})
	}
	return terminal.PrintTable(c.Out, rows)
}

// state returns a text for the state of the incident: open, muted, closed, or how a decision ended it.
func (i *shownIncident) state() string {
	switch {
	case i.MutedUntil != nil:
		return "muted until " + words.Stamp(*i.MutedUntil)
	case i.State == "closed":
		for _, d := range slices.Backward(i.Decisions) {
			if d.Decision.Ends() {
				return words.EndedBy(d.Decision)
			}
		}
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

// orderIncident sends an order about an incident, and returns the incident in its new state.
func orderIncident(ctx context.Context, c *terminal.Console, service *client.Client, order any, given, verb string) (*shownIncident, error) {
	var i shownIncident
	id, err := fullID(ctx, service, anIncident, given)
	if err != nil {
		return &i, err
	}
	return &i, showIncident(c, &i, service.Post(ctx, order, &i, "incidents", id, verb))
}

// showIncident prints an incident that the service returned, or returns the error of the request.
func showIncident(c *terminal.Console, i *shownIncident, err error) error {
	if err != nil {
		return err
	}
	return c.Print(i.raw, i.text)
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
	rows = append(rows, []string{"opened", i.Opened.Ref().String()})
	if i.Closed != nil {
		rows = append(rows, []string{"closed", i.Closed.Ref().String()})
	}
	for _, d := range i.Decisions {
		rows = append(rows, []string{"decision", decisionText(d)})
	}
	if err := terminal.PrintTable(w, rows); err != nil {
		return err
	}
	for _, a := range foremostFirst(i.Alarms) {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := terminal.AlarmText(w, a); err != nil {
			return err
		}
	}
	return nil
}

// foremostFirst returns alarms in the order of the headline: firing ones first, and of these, those of the return, the
// reward, outcomes, and the rest.
func foremostFirst(alarms []wire.Alarm) []alerts.Alarm {
	var out []alerts.Alarm
	for k := range alarms {
		out = append(out, alarms[k].Alarm())
	}
	slices.SortStableFunc(out, func(a, b alerts.Alarm) int { return alerts.ByImportance(&a, &b) })
	return out
}

func decisionText(d wire.Decision) string {
	out := alerts.Decision{Kind: d.Decision, By: d.By, Why: d.Why, At: d.At}
	if d.Until != nil {
		out.Until = *d.Until
	}
	text := words.Decision(out)
	return strings.ToLower(text[:1]) + text[1:]
}

// printLines prints results as JSON, one per line.
func printLines[T any](c *terminal.Console, values []T, of func(T) json.RawMessage) error {
	for _, v := range values {
		if err := terminal.WriteLine(c.Out, of(v)); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
	}
	return nil
}
