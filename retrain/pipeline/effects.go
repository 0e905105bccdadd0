package pipeline

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// validateEffects reports keys that the file sets although its other values leave them without effect.
func validateEffects(w *Work) {
	f := &w.File
	unused := func(is bool, because, when string, keys ...string) {
		for _, key := range keys {
			if is {
				w.effective(key, because, when)
			}
		}
	}
	trains, evaluates := len(f.Training.Command) == 0, len(f.Evaluation.Command) == 0
	unused(!trains, "training.command", "with training.command, which replaces the generated script",
		"training.telemetry", "simulation", "algorithm.hyperparameters")
	unused(!evaluates, "evaluation.command", "with evaluation.command, which replaces the generated script",
		"evaluation.episodes", "evaluation.seeds", "evaluation.confidence", "evaluation.constraints", "evaluation.telemetry")
	unused(!trains && !evaluates, "evaluation.command", "with training.command and evaluation.command, which replace the generated scripts",
		"algorithm.policy", "algorithm.frame_stack", "algorithm.atari")
	unused(f.Gate.Skip, "gate.skip", "with gate.skip", "gate.within", "gate.every", "gate.undecided")
	unused(len(f.Data.Brokers) == 0, "data.brokers", "without data.brokers", "data.topic")

	among := f.among
	with := "with the targets " + strings.Join(f.Targets, ", ")
	unused(!among(inPods...), "targets", with, "training.storage")
	unused(!among(GitHub, GitLab), "targets", with, "training.runner", "gate.runner")
	limited := w.limited()
	if w.chain[0].Set("image") && !among(append(inPods, GitHub, Make)...) {
		w.warn("image", "has no effect %s, which set the image name themselves", with)
	}
	unused(!limited && (f.Algorithm.Library != RLlib || !trains), "targets", with+", where the runners determine it", "training.cpu", "training.gpu") // the RLlib script reads them
	unused(!limited, "targets", with+", where the runners determine it", "training.memory")
	unused(!among(append(inPods, GitHub, GitLab, Airflow)...), "targets", with, "training.timeout")
	unused(f.Model.URL == "", "model", "without model.url", "model.timeout", "model.calls")
	started := f.Trigger.Target
	keys, known := triggerKeys[started]
	unused(started == "", "trigger", "without trigger.target", "trigger.signals", "trigger.approval", "trigger.ref",
		"trigger.repository", "trigger.url", "trigger.token_file", "trigger.directory")
	for _, key := range []string{"repository", "ref", "url", "token_file", "directory"} {
		unused(known && !slices.Contains(keys, key) && !slices.Contains(keys, key+"?"), "trigger.target", "with "+started, "trigger."+key)
	}
}

// among reports whether the file has one of the given targets.
func (f *File) among(targets ...string) bool {
	return slices.ContainsFunc(f.Targets, func(t string) bool { return slices.Contains(targets, t) })
}

// limited reports whether a target enforces the processors, memory and GPUs that the file sets for the training.
func (w *Work) limited() bool { return w.File.among(append(inPods, GitHub, Airflow, Make)...) }

// set reports whether the nearest file that has a section sets a key in it. A file replaces the sections that it
// inherits.
func (w *Work) set(path, section string) bool {
	i := slices.IndexFunc(w.chain, func(r *yamlfile.Reader) bool { return r.Given(section) })
	return i >= 0 && w.chain[i].Set(path)
}

// effective reports a key that the file sets although another key, because, leaves it without effect. A key that only
// an ancestor of the file with because sets is not reported: the file may have to override just the other key.
func (w *Work) effective(path, because, when string) {
	for _, r := range w.chain {
		switch {
		case r.Set(path):
			w.report(path, "has no effect %s: omit it", when)
			return
		case r.Given(because):
			return
		}
	}
}
