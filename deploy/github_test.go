//go:build e2e

package deploy

import (
	"path/filepath"
	"testing"
)

// The files for GitHub and Renovate follow their schemas.
func TestE2EFilesOfGitHub(t *testing.T) {
	checker, err := filepath.Abs("../.cache/venv-pipeline/bin/check-jsonschema")
	if err != nil {
		t.Fatal(err)
	}
	for schema, pattern := range map[string]string{
		"vendor.github-issue-forms":  "ISSUE_TEMPLATE/*_*.yml",
		"vendor.github-issue-config": "ISSUE_TEMPLATE/config.yml",
		"vendor.renovate":            "renovate.json",
	} {
		files, err := filepath.Glob("../.github/" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		run(t, "", checker, append([]string{"--builtin-schema", schema}, files...)...)
	}
}
