package pipelines

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A shell offers the verbs, their flags, pipeline files, directories, generated files, and the proposals of fill.
func TestCompletion(t *testing.T) {
	const files, directories, nothing = cobra.ShellCompDirectiveFilterFileExt, cobra.ShellCompDirectiveFilterDirs, cobra.ShellCompDirectiveNoFileComp
	for _, test := range []struct {
		words     []string
		some      []string // offered; nil if nothing is
		directive cobra.ShellCompDirective
	}{
		{[]string{""}, []string{"init", "validate", "plan", "generate", "diff", "explain", "fill", "accept", "schema"}, nothing},
		{[]string{"ge"}, []string{"generate"}, nothing},
		{[]string{"generate", "--"}, []string{"--directory"}, nothing},
		{[]string{"init", "--"}, []string{"--file"}, nothing},
		{[]string{"explain", "--"}, []string{"--line", "--all"}, nothing},
		{[]string{"validate", ""}, []string{"yaml", "yml"}, files},
		{[]string{"plan", ""}, []string{"yaml", "yml"}, files},
		{[]string{"generate", ""}, []string{"yaml", "yml"}, files},
		{[]string{"generate", "-o", ""}, nil, directories},
		{[]string{"diff", "--directory", "x", ""}, []string{"yaml", "yml"}, files},
		{[]string{"fill", ""}, []string{"yaml", "yml"}, files},
		{[]string{"accept", ""}, []string{"yaml", "yml"}, files},
		{[]string{"accept", example, ""}, []string{"description", "features", "reward-shaping"}, nothing},
		{[]string{"accept", example, "description", "features", ""}, []string{"reward-shaping"}, nothing},
		{[]string{"init", ""}, nil, directories},
		{[]string{"init", "--file", ""}, []string{"yaml", "yml"}, files},
		{[]string{"explain", ""}, []string{"yaml", "yml"}, files},
		{[]string{"explain", example, ""}, []string{".gitlab-ci.yml", "pipeline/train.py", "pipeline/dashboards/fleet.json"}, nothing},
		{[]string{"explain", "nowhere.yaml", ""}, nil, nothing},
		{[]string{"explain", example, "--line", ""}, nil, nothing},
		{[]string{"validate", example, ""}, nil, nothing},
		{[]string{"init", ".", ""}, nil, nothing},
		{[]string{"schema", ""}, nil, nothing},
	} {
		lines := strings.Split(strings.TrimSpace(mustRun(t, append([]string{cobra.ShellCompNoDescRequestCmd}, test.words...)...)), "\n")
		at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, ":") })
		offered := lines[:at]
		if got := fmt.Sprintf(":%d", test.directive); lines[at] != got {
			t.Errorf("%q: the directive is %s, want %s", test.words, lines[at], got)
		}
		if test.some == nil && len(offered) > 0 {
			t.Errorf("%q: %q is offered", test.words, offered)
		}
		for _, want := range test.some {
			if !slices.Contains(offered, want) {
				t.Errorf("%q: %q is not offered, but %q", test.words, want, offered)
			}
		}
	}
}
