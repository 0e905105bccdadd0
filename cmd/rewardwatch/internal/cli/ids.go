package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/client"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// kind is the kind of object that an id identifies, as the API path at which the service lists such objects.
type kind string

const (
	anIncident kind = "incidents"
	aBaseline  kind = "baselines"
	aRequest   kind = "retrain-requests"
)

// String returns the name of the kind in the singular.
func (k kind) String() string {
	return map[kind]string{anIncident: "incident", aBaseline: "baseline", aRequest: "retrain request"}[k]
}

// length returns the length of a complete id.
func (k kind) length() int {
	if k == aRequest {
		return len("rr_") + 24
	}
	return 16
}

// named is an id with the description that completion shows beside it.
type named struct{ id, about string }

// listed returns the ids that the service lists. For requests, these are the newest 1000.
func listed(ctx context.Context, service *client.Client, k kind) ([]named, error) {
	var answer struct {
		Incidents []wire.Incident  `json:"incidents"`
		Baselines []wire.Baseline  `json:"baselines"`
		Requests  []ledger.Request `json:"retrain_requests"`
	}
	query := url.Values{}
	if k == aRequest {
		query.Set("limit", strconv.Itoa(wire.MaxListed))
	}
	if err := service.Query(ctx, &answer, query, string(k)); err != nil {
		return nil, err
	}
	var out []named
	for i := range answer.Incidents {
		n := &answer.Incidents[i]
		out = append(out, named{n.ID, fmt.Sprintf("%s, %s %s", words.Group(n.Policy, n.Group), n.State, n.Severity)})
	}
	for i := range answer.Baselines {
		if b := &answer.Baselines[i]; b.ID != nil {
			out = append(out, named{*b.ID, words.Group(b.Policy, b.Group).String()})
		}
	}
	for i := range answer.Requests {
		q := &answer.Requests[i]
		out = append(out, named{q.ID, fmt.Sprintf("%s, %s", q.Policy, words.StateOf(*q))})
	}
	return out, nil
}

// fullID returns the only listed id that begins with the given text. It returns the text itself if that is a complete
// id, without asking the service, or if no listed id begins with it: the service may know an id that it does not list,
// such as that of an old request.
func fullID(ctx context.Context, service *client.Client, k kind, given string) (string, error) {
	if len(given) == k.length() {
		return given, nil
	}
	all, err := listed(ctx, service, k)
	if err != nil {
		return "", err
	}
	ids := make([]string, len(all))
	for i, n := range all {
		ids[i] = n.id
	}
	id, err := oneID(given, ids)
	switch {
	case errors.Is(err, errNoID):
		return given, nil
	case err == nil && k == aRequest && len(all) >= wire.MaxListed && id != given:
		err = enough(given)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", k, err)
	}
	return id, nil
}

// enough returns an error if the beginning of a request id is so short that it may match an older request, which is not
// listed.
func enough(given string) error {
	const least = len("rr_") + 8
	if len(given) >= least {
		return nil
	}
	return fmt.Errorf("only the newest %d requests are searched: pass at least %d characters of the id, not %q", wire.MaxListed, least, given)
}

// errNoID means that no known id begins with the given text.
var errNoID = errors.New("no id begins with")

// shownIDs is the maximum number of ids in an error.
const shownIDs = 10

// oneID returns the given id if it is known, or else the only known id that begins with it.
func oneID(given string, known []string) (string, error) {
	if slices.Contains(known, given) {
		return given, nil
	}
	var found []string
	for _, id := range known {
		if strings.HasPrefix(id, given) && !slices.Contains(found, id) {
			found = append(found, id)
		}
	}
	switch {
	case len(found) == 0 || given == "":
		return "", fmt.Errorf("%w %q", errNoID, given)
	case len(found) == 1:
		return found[0], nil
	case len(found) > shownIDs:
		found = append(found[:shownIDs], "...")
	}
	return "", fmt.Errorf("several ids begin with %q: %s", given, strings.Join(found, ", "))
}

// completion is the function by which a shell completes an argument or the value of a flag.
type completion = cobra.CompletionFunc

// completeIDs completes up to most ids of a running service.
func completeIDs(service *client.Client, k kind, most int) completion {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := listed(cmd.Context(), service, k)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		out := make([]cobra.Completion, len(all))
		for i, n := range all {
			out[i] = cobra.CompletionWithDesc(n.id, terminal.Printable(n.about))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completePolicies completes the first argument, or a flag, with the policies of a running service.
func completePolicies(service *client.Client) completion {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var answer struct{ Baselines []wire.Baseline }
		if err := service.Get(cmd.Context(), &answer, string(aBaseline)); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var out []cobra.Completion
		for i := range answer.Baselines {
			out = append(out, answer.Baselines[i].Policy)
		}
		slices.Sort(out)
		return slices.Compact(out), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeOfPolicy completes the first argument with a policy, and the next ones with names that the service knows for
// that policy.
func completeOfPolicy(service *client.Client, known func(ctx context.Context, policy string) ([]cobra.Completion, error)) completion {
	policies := completePolicies(service)
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return policies(cmd, args, word)
		}
		all, err := known(cmd.Context(), args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		slices.Sort(all)
		return slices.DeleteFunc(slices.Compact(all), func(c cobra.Completion) bool { return slices.Contains(args[1:], c) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag sets the completion of a flag. A flag that the command does not have is a bug in this program.
func completeFlag(cmd *cobra.Command, flag string, f completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}

// completeWords completes with the words of a fixed list.
func completeWords[T ~string](list []T) completion {
	out := make([]cobra.Completion, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return cobra.FixedCompletions(out, cobra.ShellCompDirectiveNoFileComp)
}

// completeUsed completes a flag with values from the newest requests of a running service.
func completeUsed(service *client.Client, of func(*ledger.Request) string) completion {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var answer struct {
			Requests []ledger.Request `json:"retrain_requests"`
		}
		if err := service.Get(cmd.Context(), &answer, string(aRequest)); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var out []cobra.Completion
		for i := range answer.Requests {
			out = append(out, of(&answer.Requests[i]))
		}
		slices.Sort(out)
		return slices.Compact(out), cobra.ShellCompDirectiveNoFileComp
	}
}
