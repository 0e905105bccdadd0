// Package machines checks the resources and the time that a stage requests against the limits of the machines that run
// it.
package machines

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
)

// Resources of GitHub's standard Linux machines: https://docs.github.com/en/actions/reference/runners
const (
	hostedCPU    = 4
	hostedMemory = 16 << 10 // MiB
)

// largestMemory is more memory than any machine has, in MiB.
const largestMemory = 32768 << 10

// standard matches the labels of these machines. The larger machines, which teams pay for, have other labels.
var standard = regexp.MustCompile(`(?i)^ubuntu-(latest|slim|[0-9]{2}\.04)(-arm)?$`)

// Stage is what a stage requests.
type Stage struct {
	GitHub, GitLab bool // whether they run the stage
	Enterprise     bool // whether this GitHub is an Enterprise Server, which has no hosted runners

	Name     string // training or gate
	Runner   []string
	CPU, GPU int
	Memory   string // such as 4Gi
	Limit    string // time limit
}

// Faults returns the requests that these machines do not satisfy, by their key in the section of the stage.
func (s Stage) Faults() map[string]string {
	out := map[string]string{}
	if fault := s.tooLong(); fault != "" {
		out[map[string]string{"training": "timeout", "gate": "within"}[s.Name]] = fault
	}
	if !s.IsHosted() {
		return out
	}
	if s.CPU > hostedCPU {
		out["cpu"] = fmt.Sprintf("must be at most %d on GitHub-hosted runners, because Docker does not allow more than the machine has; to use more, set %s.runner", hostedCPU, s.Name)
	}
	if s.GPU > 0 {
		out["gpu"] = fmt.Sprintf("requires %s.runner because GitHub-hosted runners have no GPU", s.Name)
	}
	if n, ok := strict.Mebibytes(s.Memory); ok && n > hostedMemory {
		out["memory"] = fmt.Sprintf("must be at most %dGi on GitHub-hosted runners, which have no more; to use more, set %s.runner", hostedMemory>>10, s.Name)
	}
	return out
}

// IsHosted reports whether GitHub Actions runs the stage on one of its own standard machines.
func (s Stage) IsHosted() bool {
	return s.GitHub && !s.Enterprise && !slices.ContainsFunc(s.Runner, func(label string) bool { return !standard.MatchString(label) })
}

// tooLong returns what is wrong with the time limit, or "". GitHub's standard machines run a job for at most six hours, of
// which the gate needs some to report that it has no verdict. GitHub waits at most five days for a self-hosted runner.
// GitLab rejects a job with a limit of more than a month.
func (s Stage) tooLong() string {
	d, err := strict.Duration(s.Limit)
	switch {
	case err != nil:
	case s.GitLab && d > 30*24*time.Hour:
		return "must be at most 30d with GitLab CI, which rejects jobs with a time limit of more than a month"
	case s.Name == "gate" && d > 5*time.Hour && s.IsHosted():
		return "must be at most 5h on GitHub-hosted runners, which stop a job after six hours; to allow more, set gate.runner"
	case d > 6*time.Hour && s.IsHosted():
		return fmt.Sprintf("must be at most 6h on GitHub-hosted runners, which then stop a job; to allow more, set %s.runner", s.Name)
	case s.GitHub && d > 4*24*time.Hour:
		return "must be at most 4d with GitHub Actions, which stops a job after five days"
	}
	return ""
}

// TooLarge reports whether a memory size exceeds that of any machine.
func TooLarge(size string) bool {
	n, ok := strict.Mebibytes(size)
	return ok && n > largestMemory
}
