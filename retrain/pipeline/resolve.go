package pipeline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/machines"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/verdicts"
)

// resolve sets the defaults of what the file omits.
func resolve(w *Work) string {
	f := &w.File
	w.given = *f
	f.Policy = cmp.Or(f.Policy, f.Project)
	f.Owner = cmp.Or(f.Owner, "unknown")
	f.Description = cmp.Or(f.Description, "The "+f.Project+" agent.")
	f.Release = cmp.Or(f.Release, w.Options.Release)
	f.Image = cmp.Or(f.Image, f.Project)
	f.Base = cmp.Or(f.Base, pins.Base(pins.Default))
	if len(f.Targets) == 0 {
		f.Targets = []string{Make}
	}
	if f.Algorithm.Library == StableBaselines3 {
		f.Algorithm.Policy = cmp.Or(f.Algorithm.Policy, mlpPolicy)
	}
	f.Algorithm.FrameStack = cmp.Or(f.Algorithm.FrameStack, 1)
	f.Data.Topic = cmp.Or(f.Data.Topic, "agent-telemetry")
	if len(f.Training.Command) == 0 {
		f.Training.Steps = cmp.Or(f.Training.Steps, 200_000)
	}
	f.Training.CPU = cmp.Or(f.Training.CPU, 2)
	f.Training.Memory = cmp.Or(f.Training.Memory, "4Gi")
	f.Training.Timeout = cmp.Or(f.Training.Timeout, "5h")
	f.Training.Storage = cmp.Or(f.Training.Storage, "10Gi")
	if len(f.Evaluation.Seeds) == 0 {
		f.Evaluation.Seeds = []int{1, 2, 3, 4, 5}
	}
	f.Evaluation.Confidence = cmp.Or(f.Evaluation.Confidence, .95)
	if len(f.Evaluation.Command) == 0 && len(f.Shadow.Command) == 0 && !f.Gate.Skip && !w.set("evaluation.telemetry", "evaluation.telemetry") {
		f.Evaluation.Telemetry = true // otherwise, the gate would have no data of the new version
	}
	if f.hosted(f.Gate.Runner) {
		f.Gate.Within = cmp.Or(f.Gate.Within, "5h")
	}
	f.Gate.Within = cmp.Or(f.Gate.Within, "24h")
	f.Gate.Every = cmp.Or(f.Gate.Every, "5m")
	f.Gate.Undecided = cmp.Or(f.Gate.Undecided, Fail)
	m := &f.Monitoring
	m.Service = cmp.Or(m.Service, "http://127.0.0.1:9464")
	if len(m.Signals) == 0 {
		m.Signals = []string{"*"}
	}
	m.Baseline = cmp.Or(m.Baseline, 500)
	decides := f.Evaluation.Telemetry && len(f.Shadow.Command) == 0 && !f.Gate.Skip
	f.Evaluation.Episodes = cmp.Or(f.Evaluation.Episodes, verdicts.Episodes(decides, m.Baseline, len(f.Evaluation.Seeds)))
	m.FalseAlarms.Budget = cmp.Or(m.FalseAlarms.Budget, 1)
	m.FalseAlarms.Per = cmp.Or(m.FalseAlarms.Per, "30d")
	m.Expected = cmp.Or(m.Expected, "mean "+strict.Expected(m.Signals)+" >= baseline - 0.25 * sd over 200 episodes within 7d")
	f.Model.Timeout = cmp.Or(f.Model.Timeout, "2m")
	f.Model.Calls = cmp.Or(f.Model.Calls, 9)
	f.Trigger.Ref = cmp.Or(f.Trigger.Ref, "main")
	if len(f.Trigger.Signals) == 0 {
		f.Trigger.Signals = []string{"return", "reward"}
	}
	return fmt.Sprintf("targets %v (%d in the file)", f.Targets, len(w.given.Targets))
}

// hostedAsk reports whether a GitHub-hosted runner polls the service, reports to it, or sends telemetry to it.
func (f *File) hostedAsk() bool {
	return f.hosted(f.Gate.Runner) && (!f.Gate.Skip || f.Trigger.Target == GitHub) || f.hosted(f.Training.Runner) && (f.Training.Telemetry || f.Evaluation.Telemetry || f.Trigger.Target == GitHub)
}

// hosted reports whether a stage with these labels runs on a GitHub-hosted runner.
func (f *File) hosted(runner []string) bool {
	return f.placed(machines.Stage{Runner: runner}).IsHosted()
}

// placed sets which services may run a stage.
func (f *File) placed(s machines.Stage) machines.Stage {
	s.GitHub, s.GitLab = slices.Contains(f.Targets, GitHub), slices.Contains(f.Targets, GitLab)
	s.Enterprise = strict.IsEnterprise(f.githubAPI())
	return s
}
