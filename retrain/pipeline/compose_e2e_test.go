//go:build e2e

package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// loadCompose loads a file as `docker compose config` does if the Makefile starts Compose. Compose replaces unset
// variables by empty strings with only a warning. Here, they are errors.
func loadCompose(t *testing.T, file string) error {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(filepath.Dir(file), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	environment := types.Mapping{}
	for _, exported := range regexp.MustCompile(`(?m)^export (\w+) \?= (.+)$`).FindAllStringSubmatch(string(makefile), -1) {
		environment[exported[1]] = exported[2]
	}
	details := types.ConfigDetails{WorkingDir: filepath.Dir(file), ConfigFiles: types.ToConfigFiles([]string{file}), Environment: environment}
	var unset []string
	project, err := loader.LoadWithContext(t.Context(), details, func(o *loader.Options) {
		lookup := o.Interpolate.LookupValue
		o.Interpolate.LookupValue = func(name string) (string, bool) {
			value, ok := lookup(name)
			if !ok {
				unset = append(unset, name)
			}
			return value, ok
		}
	})
	if len(unset) > 0 {
		return fmt.Errorf("the Makefile does not export %v", unset)
	}
	if err != nil {
		return err
	}
	names := project.ServiceNames()
	slices.Sort(names)
	if !strings.HasPrefix(project.Name, "retrain-") || !slices.Equal(names, []string{"stage", "train"}) {
		return fmt.Errorf("project %q has the services %q", project.Name, names)
	}
	return nil
}

// Compose's own loader finds faults that its JSON Schema cannot express.
func TestE2ECheckersFindFaultsOfCompose(t *testing.T) {
	w, err := run(t)
	if err != nil {
		t.Fatal(err)
	}
	command := []string{"--builtin-schema", "vendor.compose-spec"}
	for name, test := range map[string]struct{ old, now, want string }{
		"none":              {"", "", ""},
		"volume":            {"- ../work:/work", "- work:/work", `refers to undefined volume work`},
		"network":           {"network_mode: host", "networks: [training]", `refers to undefined network training`},
		"two networks":      {"network_mode: host", "network_mode: host\n    networks: [default]", "mutually exclusive `network_mode` and `networks`"},
		"network's service": {"network_mode: host", `network_mode: "service:built"`, `depends on undefined service "built"`},
		"dependency":        {"  train:\n", "  train:\n    depends_on: [built]\n", `service "train" depends on undefined service "built"`},
		"cycle":             {"  train:\n", "  train:\n    depends_on: [train]\n", `dependency cycle detected: train -> train`},
		"service":           {"  train:\n", "  training:\n", `has the services ["stage" "training"]`},
		"secret":            {"  train:\n", "  train:\n    secrets: [token]\n", `service "train" refers to undefined secret token`},
		"two mounts":        {"- ../work:/work", "- ../work:/work\n    tmpfs: /work", `target /work already mounted`},
		"variable":          {"${IMAGE}", "${IMAGES}", `the Makefile does not export [IMAGES`},
		"brace":             {"${IMAGE}", "${IMAGE", `invalid interpolation format`},
		"project":           {"name: retrain-cartpole", "name: ${IMAGE}", `project "ghcrioexamplecartpolelocal"`},
		"size":              {"memory: 4g", "memory: 4 gallons", `invalid suffix`},
	} {
		dir := t.TempDir()
		if err := Write(newFiles(w.Artefacts), dir); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "pipeline", "compose.yaml")
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), test.old) {
			t.Fatalf("%s: %v, no %q", name, err, test.old)
		}
		if test.old != "" {
			text = []byte(strings.ReplaceAll(string(text), test.old, test.now))
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		err = loadCompose(t, file)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		command = append(command, file)
	}
	check(t, checkers+"/check-jsonschema", command...)
}
