//go:build e2e

package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kustomizeBuilds checks that each overlay, with and without the parts that need operators, produces objects that
// Kubernetes accepts, with a configuration that the service accepts.
func kustomizeBuilds(t *testing.T, valid *validator, binary string) {
	t.Helper()
	const components = "ConfigMap PrometheusRule Role RoleBinding ServiceMonitor"
	for overlay, want := range map[string]string{
		"single":  "ConfigMap NetworkPolicy Service ServiceAccount StatefulSet",
		"cluster": "ConfigMap Deployment NetworkPolicy PodDisruptionBudget Service ServiceAccount",
	} {
		for _, monitored := range []bool{false, true} {
			t.Run(overlay, func(t *testing.T) {
				dir, want := t.TempDir(), strings.Fields(want)
				for _, part := range []string{"kustomize", "grafana"} {
					if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(part)); err != nil {
						t.Fatal(err)
					}
				}
				file := filepath.Join(dir, "kustomize", overlay, "kustomization.yaml")
				if monitored { // as its comment says
					want = slices.Sorted(slices.Values(append(want, strings.Fields(components)...)))
					uncomment(t, file, "components:")
					uncomment(t, filepath.Join(dir, "kustomize", "monitoring", "servicemonitor.yaml"), "authorization:")
				}
				all := objects(t, run(t, "", tool(t, "kustomize"), "build", filepath.Dir(file)))
				consistent(t, valid, all)
				var kinds []string
				for _, o := range all {
					kinds = append(kinds, o.kind())
					config := o.strings("data")
					if o.kind() == "ConfigMap" && config["rewardwatch.yml"] != nil {
						validConfig(t, binary, config, nil)
					}
				}
				if slices.Sort(kinds); !slices.Equal(kinds, want) {
					t.Errorf("there are %s", kinds)
				}
				if monitored {
					sameRules(t, one(t, all, "PrometheusRule"), "")
					scrapesWithToken(t, one(t, all, "ServiceMonitor"))
				}
			})
		}
	}
}

// uncomment uncomments a line of a file.
func uncomment(t *testing.T, file, line string) {
	t.Helper()
	text := read(t, file)
	if !strings.Contains(text, "# "+line) {
		t.Fatalf("%s has no comment with %s", file, line)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(text, "# "+line, line, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}
