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

// kind is what an id is of, as the path of the API where the service lists it.
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

// length is that of a whole id.
func (k kind) length() int {
	if k == aRequest {
		return len("rr_") + 24
	}
	return 16
}

// named is an id with the words that completion shows beside it.
type named struct{ id, about string }

// listed returns the ids that the service lists: of requests the newest 1000.
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

// fullID returns the only listed id that begins as given. It returns what is given if that is a whole id, for which it
// does not ask the service, or if no listed id begins so: the service may still know one that it does not list, such as
// that of an old request.
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

// enough returns an error if the beginning of the id of a request is so short that it may be that of an older one, which
// is not listed.
func enough(given string) error {
	const least = len("rr_") + 8
	if len(given) >= least {
		return nil
	}
	return fmt.Errorf("only the newest %d requests are searched: pass at least %d characters of the id, not %q", wire.MaxListed, least, given)
}

// errNoID says that no known id begins as given.
var errNoID = errors.New("no id begins with")

// shownIDs is how many ids an error lists.
const shownIDs = 10

// oneID returns the known id that is the given one, or the only one that begins so.
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

// completeOfPolicy completes the first argument with a policy, and the next ones with what the service knows of that policy.
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

// completeFlag has a flag completed. A flag that the command lacks is a bug of this program.
func completeFlag(cmd *cobra.Command, flag string, f completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}

// completeWords completes with some of a fixed list of words.
func completeWords[T ~string](list []T) completion {
	out := make([]cobra.Completion, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return cobra.FixedCompletions(out, cobra.ShellCompDirectiveNoFileComp)
}

// completeUsed completes a flag with what the newest requests of a running service had.
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
