package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/client"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// sentLog is the number of bytes at the end of a log that are sent. The service keeps a part of them.
const sentLog = 64 << 10

// shownRequest is a request as returned by the API. raw is printed as JSON.
type shownRequest struct {
	wire.RetrainRequest
	raw json.RawMessage
	by  string // the person who opened it, if the history was read
}

// UnmarshalJSON reads the request and keeps its text.
func (q *shownRequest) UnmarshalJSON(text []byte) error {
	q.raw = slices.Clone(text)
	return json.Unmarshal(text, &q.RetrainRequest)
}

// MarshalJSON returns the text as received.
func (q *shownRequest) MarshalJSON() ([]byte, error) { return q.raw, nil }

// requestStory is a request with its history.
type requestStory struct {
	Request    *shownRequest        `json:"request"`
	History    []ledger.StateChange `json:"history"`
	Deliveries []ledger.Delivery    `json:"deliveries"` // newest first
}

func newRequestListCommand(c *terminal.Console, service *client.Client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [--text WORDS] [--policy POLICY] [--state STATE] ...",
		Short: "List retrain requests, unfinished ones first",
		Long: "Without flags, lists the newest 1000 requests. With several flags, a request must match all of them. If there are more\n" +
			"requests, the last line on stderr shows how to continue.",
		Args: cobra.NoArgs,
	}
	chosen := searchFlags(cmd, service)
	limit := cmd.Flags().Int("limit", wire.MaxListed, "maximum number of requests, up to 1000")
	after := cmd.Flags().String("after", "", "show only requests older than the one with this id")
	completeFlag(cmd, "after", completeIDs(service, aRequest, 1))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		query, err := chosen(cmd.Context())
		if err != nil {
			return err
		}
		query.Set("limit", strconv.Itoa(*limit))
		if *after != "" {
			if *after, err = fullID(cmd.Context(), service, aRequest, *after); err != nil {
				return err
			}
			query.Set("after", *after)
		}
		return listRequests(cmd.Context(), c, service, query)
	}
	return cmd
}

// searchFlags adds the flags that select requests, and returns a function that turns them into a query of the API.
func searchFlags(cmd *cobra.Command, service *client.Client) func(context.Context) (url.Values, error) {
	values := map[string]*string{}
	for _, flag := range []struct{ name, usage string }{
		{"text", "show only requests with these words in the contract, the evidence, or the names and reasons of decisions"},
		{"policy", "show only requests for this policy"},
		{"cause", "show only requests for incidents with this cause, such as environment"},
		{"state", "show only requests in this state, such as awaiting_approval"},
		{"recipe", "show only requests with this recipe"},
		{"parent", "show only the next request for the policy of the request with this id"},
		{"parameter", "show only requests with this config value, such as optimizer.lr=0.001"},
		{"since", "show only requests opened at or after this time, such as \"2026-11-20 10:00:00 UTC\""},
		{"until", "show only requests opened before this time"},
	} {
		values[flag.name] = cmd.Flags().String(flag.name, "", flag.usage)
	}
	completeFlag(cmd, "policy", completePolicies(service))
	completeFlag(cmd, "cause", completeWords(alerts.Causes()))
	completeFlag(cmd, "state", completeWords(ledger.States()))
	completeFlag(cmd, "recipe", completeUsed(service, func(q *ledger.Request) string { return q.Recipe }))
	completeFlag(cmd, "parent", completeIDs(service, aRequest, 1))
	return func(ctx context.Context) (url.Values, error) {
		query := url.Values{}
		for name, value := range values {
			if *value != "" {
				query.Set(name, *value)
			}
		}
		if states, state := ledger.States(), query.Get("state"); state != "" && !slices.Contains(states, ledger.State(state)) {
			return nil, fmt.Errorf("unknown --state %q: must be one of %s", state, joined(states))
		}
		if given := query.Get("parent"); given != "" {
			parent, err := fullID(ctx, service, aRequest, given)
			if err != nil {
				return nil, err
			}
			query.Set("parent", parent)
		}
		return query, nil
	}
}

func newRequestShowCommand(c *terminal.Console, service *client.Client) *cobra.Command {
	return &cobra.Command{
		Use:   "show REQUEST",
		Short: "Show a request with its reason, status and history",
		Long: "With --token-file, also shows a link to approve or reject a request that is waiting for approval. You can send the link to\n" +
			"someone who has no token. It works once.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeIDs(service, aRequest, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := fullID(cmd.Context(), service, aRequest, args[0])
			if err != nil {
				return err
			}
			story, err := readStory(cmd.Context(), service, id)
			if err != nil {
				return err
			}
			return c.Print(story, story.text)
		},
	}
}

func newRequestDecisionCommand(c *terminal.Console, service *client.Client, verb, short, long string) *cobra.Command {
	var why wire.Reason
	cmd := &cobra.Command{
		Use: verb + " REQUEST --why TEXT", Short: short, Long: long, Args: cobra.ExactArgs(1),
		ValidArgsFunction: completeIDs(service, aRequest, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := why.Check(); err != nil {
				return err
			}
			return decideOnRequest(cmd.Context(), c, service, why, args[0], verb)
		},
	}
	client.ReasonFlags(cmd, &why)
	return cmd
}

func newJobStatusCommand(c *terminal.Console, service *client.Client) *cobra.Command {
	var body wire.Report
	var logFile string
	cmd := &cobra.Command{
		Use:   "status REQUEST (started | succeeded --version V | failed [--error TEXT]) [--log-file FILE]",
		Short: "Report the status of a request's job",
		Long: "For use by training jobs. A job that succeeded reports the policy_version it produced. The telemetry of that version is\n" +
			"then compared with the contract of the request. The token can be the one in the service's http.status_token_file.",
		Args: cobra.ExactArgs(2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, given string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return []cobra.Completion{"started", "succeeded", "failed"}, cobra.ShellCompDirectiveNoFileComp
			}
			return completeIDs(service, aRequest, 1)(cmd, args, given)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			body.State = args[1]
			if logFile != "" {
				var err error
				if body.Log, err = readTail(logFile, sentLog); err != nil {
					return fmt.Errorf("--log-file: %w", err)
				}
			}
			id, err := fullID(cmd.Context(), service, aRequest, args[0])
			if err != nil {
				return orRefused(err)
			}
			return orRefused(changeRequest(cmd.Context(), c, service, body, id, "status"))
		},
	}
	cmd.Flags().StringVar(&body.Version, "version", "", "policy_version that the job produced")
	cmd.Flags().StringVar(&body.Error, "error", "", "reason for the failure")
	cmd.Flags().StringVar(&logFile, "log-file", "", "file with the job's output; its last part is stored with the request")
	cmd.Flags().StringVar(&body.By, "by", "", "name of the person or program that reports the status (default "+wire.ByJob+")")
	return cmd
}

// readTail returns the end of a file as text.
func readTail(file string, most int64) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // opened only for reading
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return "", err
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	return strings.ToValidUTF8(string(text), "\ufffd"), err
}

// decideOnRequest carries out a person's decision. If a rejected request is already at its target, the job continues
// until a person stops it, and the command says so.
func decideOnRequest(ctx context.Context, c *terminal.Console, service *client.Client, why wire.Reason, given, verb string) error {
	id, err := fullID(ctx, service, aRequest, given)
	if err != nil {
		return err
	}
	var before shownRequest
	if verb == "reject" {
		if err := service.Get(ctx, &before, "retrain-requests", id); err != nil {
			return err
		}
	}
	if err := changeRequest(ctx, c, service, why, id, verb); err != nil {
		return err
	}
	switch before.State {
	case ledger.StateDelivered, ledger.StateRunning:
		c.Tell("Target %s already has this request. Stop its job yourself: Rewardwatch rejects its reports from now on.", before.Target)
	case ledger.StateVerifying:
		c.Tell("Version %s stays in use, and the request ends without an outcome.", before.NewVersion)
	}
	return nil
}

// changeRequest sends an order about a request and prints the request in its new state.
func changeRequest(ctx context.Context, c *terminal.Console, service *client.Client, order any, id, verb string) error {
	var q shownRequest
	if err := service.Post(ctx, order, &q, "retrain-requests", id, verb); err != nil {
		return err
	}
	return c.Print(&q, q.text)
}

func readStory(ctx context.Context, service *client.Client, id string) (*requestStory, error) {
	story := &requestStory{Request: &shownRequest{}}
	if err := service.Get(ctx, story.Request, "retrain-requests", id); err != nil {
		return nil, err
	}
	err := errors.Join(
		service.Get(ctx, story, "retrain-requests", id, "history"),
		service.Query(ctx, story, url.Values{"request": {id}}, "deliveries"))
	if asked, is := words.AskedFor(story.Request.Request, story.History); is {
		story.Request.by = asked.By
	}
	return story, err
}

func listRequests(ctx context.Context, c *terminal.Console, service *client.Client, chosen url.Values) error {
	var answer struct {
		Requests []*shownRequest `json:"retrain_requests"`
		Next     *string         `json:"next"`
	}
	if err := service.Query(ctx, &answer, chosen, "retrain-requests"); err != nil {
		return err
	}
	if answer.Next != nil {
		defer func() {
			_, _ = fmt.Fprintln(c.Err, "There are older requests: use --after", terminal.Printable(*answer.Next))
		}() // if this write fails, the list above is still complete
	}
	requests := answer.Requests
	slices.SortStableFunc(requests, func(a, b *shownRequest) int { return urgency(a.State) - urgency(b.State) })
	if c.Output == terminal.OutputJSON {
		return printLines(c, requests, func(q *shownRequest) json.RawMessage { return q.raw })
	}
	rows := [][]string{{"REQUEST", "STATE", "POLICY", "RECIPE", "REQUESTED BY", "OPENED", "WAITING FOR"}}
	for _, q := range requests {
		rows = append(rows, []string{q.ID, words.StateOf(q.Request), q.Policy, q.Recipe, originText(q.Request), words.Stamp(q.OpenedAt), words.WaitsFor(q.Request)})
	}
	return terminal.PrintTable(c.Out, rows)
}

// urgency sorts requests that wait for a person first, then those that wait for anything else, then finished ones.
func urgency(s ledger.State) int {
	switch {
	case s == ledger.StateAwaitingApproval:
		return 0
	case s.Final():
		return 2
	}
	return 1
}

func joined(states []ledger.State) string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// actionText describes what a request orders, and where it is sent.
func actionText(q ledger.Request) string {
	if q.Recipe == "" {
		return fmt.Sprintf("%s, target %s", words.Plain(q.Kind), q.Target)
	}
	return fmt.Sprintf("%s with recipe %s, target %s", words.Plain(q.Kind), q.Recipe, q.Target)
}

// originText says what opened a request. The origin of a person's request is a random id, which says nothing.
func originText(q ledger.Request) string {
	if q.OriginKind == ledger.OriginPerson {
		return words.AskedBy(q)
	}
	return string(q.OriginKind) + " " + strings.TrimPrefix(q.Origin, string(q.OriginKind)+"/")
}

// text prints the order of a request and its state.
func (q *shownRequest) text(w io.Writer) error {
	order, err := words.ReadOrder(q.Request)
	if err != nil {
		return err
	}
	rows := [][]string{{"request", q.ID}}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("state", words.StateOf(q.Request))
	add("reason", q.Reason)
	add("waiting for", words.WaitsFor(q.Request))
	if q.Links != nil {
		add("link", q.Links.Decide)
	}
	add("policy", words.Group(q.Policy, order.Group).String())
	add("action", actionText(q.Request))
	add("requested by", cmp.Or(q.by, originText(q.Request)))
	add("parent", q.Parent)
	add("new version", q.NewVersion)
	add("cause", words.Plain(order.Cause))
	for _, e := range order.Evidence {
		add("evidence", e)
	}
	add("signals", strings.Join(order.Signals, ", "))
	add("objective", order.Contract.Objective)
	add("hypothesis", words.Stamped(order.Contract.Hypothesis))
	add("expected", order.Contract.Expected.Told())
	add("owner", order.Contract.Owner)
	return terminal.PrintTable(w, rows)
}

func (s *requestStory) text(w io.Writer) error {
	if err := s.Request.text(w); err != nil {
		return err
	}
	history := [][]string{{"TIME", "STATE", "BY", "REASON"}}
	for _, h := range s.History {
		history = append(history, []string{words.Stamp(h.At), words.StepOf(s.Request.Request, h.State), h.By, h.Reason})
	}
	deliveries := [][]string{{"ATTEMPT", "STARTED", "DURATION", "TARGET", "RESULT", "STATUS", "ERROR"}}
	for _, d := range slices.Backward(s.Deliveries) {
		deliveries = append(deliveries, []string{
			strconv.Itoa(d.Attempt), words.Stamp(d.StartedAt), words.Took(d), d.Target, string(d.Result), words.Status(d.Status), d.Error,
		})
	}
	for _, rows := range [][][]string{s.config(), history, deliveries} {
		if len(rows) < 2 { // only the header
			continue
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := terminal.PrintTable(w, rows); err != nil {
			return err
		}
	}
	return s.logText(w)
}

// config returns the values that the order passes to the training. Requests from builds without recipes have none.
func (s *requestStory) config() [][]string {
	leaves, err := recipe.LeavesOfOrder(s.Request.Order)
	if err != nil {
		return nil
	}
	rows := [][]string{{"CONFIG", "VALUE", "FROM"}}
	for _, l := range leaves {
		if path, is := strings.CutPrefix(l.Path, "config"); is {
			rows = append(rows, []string{strings.TrimPrefix(path, "."), l.Value, l.From})
		}
	}
	return rows
}

// logText prints the end of the job's log, line by line.
func (s *requestStory) logText(w io.Writer) error {
	if s.Request.Log == "" {
		return nil
	}
	var b strings.Builder
	b.WriteString("\nLAST LINES OF THE JOB LOG\n")
	for line := range strings.Lines(s.Request.Log) {
		b.WriteString("  " + terminal.Printable(strings.TrimRight(line, "\r\n")) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
