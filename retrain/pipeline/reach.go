package pipeline

import (
	"net"
	"net/url"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/machines"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/words"
)

// address is the host of an address in the file, and which machines of hosting services use it.
type address struct {
	path, host string
	hosted     bool   // GitHub's
	shared     bool   // GitLab's, unless the team has machines of its own without tags
	runners    string // keys that choose other machines
}

// validateReach checks that the machines of the stages can reach the addresses in the file.
func validateReach(w *Work) {
	f := &w.File
	build, train := f.hosted(f.Gate.Runner), f.hosted(f.Training.Runner)
	shared := func(runner []string) bool {
		own := ""
		if f.Trigger.Target == GitLab {
			own = f.Trigger.URL
		}
		return f.placed(machines.Stage{Runner: runner}).MayBeShared(own)
	}
	var all []address
	if u, err := url.Parse(w.given.Monitoring.Service); err == nil && !strict.IsLoopback(f.Monitoring.Service) {
		all = append(all, address{"monitoring.service", u.Hostname(), f.hostedAsk(), shared(f.Gate.Runner) && !f.Gate.Skip, "training.runner and gate.runner"})
	}
	for i, b := range f.Data.Brokers {
		if host, _, err := net.SplitHostPort(b); err == nil && f.Data.Export {
			all = append(all, address{element("data.brokers", i), host, train, shared(f.Training.Runner), "training.runner"})
		}
	}
	if registry, named := machines.Registry(f.Image); named {
		host, _, _ := strings.Cut(registry, ":")
		all = append(all, address{"image", host, build || train, false, "training.runner and gate.runner"})
	}
	if registry, named := machines.Registry(f.Base); named {
		host, _, _ := strings.Cut(registry, ":")
		all = append(all, address{"base", host, build, shared(f.Gate.Runner), "gate.runner"})
	}
	for _, u := range all {
		where, certain := machines.Inside(u.host)
		switch {
		case where == "":
		case u.hosted && certain:
			w.report(u.path, "must be at a host that GitHub-hosted runners can reach, not %s, %s; for self-hosted runners, set %s", u.host, where, u.runners)
		case u.hosted:
			w.warn(u.path, "GitHub-hosted runners cannot reach %s, %s; for self-hosted runners, set %s", u.host, where, u.runners)
		case u.shared && certain:
			w.warn(u.path, "GitLab's shared runners cannot reach %s, %s; for your own runners, set %s", u.host, where, u.runners)
		}
	}
}

// readsExport returns the path of the first word of a command that reads the exported data, or "".
func (f *File) readsExport() string {
	paths := []string{"training.command", "evaluation.command", "shadow.command", "deploy.command"}
	commands := [][]string{f.Training.Command, f.Evaluation.Command, f.Shadow.Command, f.Deploy.Command}
	for i, path := range paths {
		if at := words.ReadsExport(commands[i], commands[:i]...); at >= 0 {
			return element(path, at)
		}
	}
	return ""
}

// needsRequest reports whether a run without a retrain request, which has no data to export, must not begin.
func (f *File) needsRequest() bool { return f.Data.Export && f.readsExport() != "" }

// validateExported checks that a stage writes the exported data that a command reads.
func validateExported(w *Work) {
	f := &w.File
	switch path := f.readsExport(); {
	case path != "" && !f.Data.Export:
		w.report(path, "must not read experience.parquet, because only the stage export writes this file; set data.export: true")
	case path != "" && f.Schedule != "":
		w.warn("schedule", "scheduled runs have no retrain request whose data could be exported, and end at once, because %s reads this data", path)
	case f.Data.Export && f.Schedule != "" && len(f.Training.Command) > 0 && !strings.Contains(strings.Join(f.Training.Command, " "), "experience.parquet"):
		w.warn("schedule", "scheduled runs have no retrain request and export no data, so training.command must also work without $WORK/experience.parquet")
	}
}
