package keywords

import (
	"cmp"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Training describes the training that receives the hyperparameters as arguments.
type Training struct {
	Library, Algorithm string
	Policy             string // of Stable-Baselines3
	Own                bool   // whether a command replaces the generated script, and so may take other arguments
	Steps              int
	Environments       int
	Discrete           string // the id of an environment with discrete actions, or ""
	NoGPU              bool   // whether the container has no GPU
	Memory             int    // memory of the container in MiB, 0 if unknown
	Seen               int    // minimum size of an observation in bytes, 0 if unknown
	OfficialPython     bool   // whether the base image is an official Python image, which has no packages of its own
	Requirements       []string
}

// Faults returns what is wrong with the hyperparameters at a path.
func (t Training) Faults(path string, h yamlfile.Value) []yamlfile.Problem {
	var out []yamlfile.Problem
	for _, key := range h.Keys() {
		member, at := h.Members[key], yamlfile.JoinAny(path, key)
		if fault := Name(t.Library, t.Algorithm, key, t.Own, t.Requirements); fault != "" {
			out = append(out, yamlfile.Problem{Place: member.Key, Path: at, Message: fault})
			continue
		}
		if t.Own {
			continue
		}
		if fault := cmp.Or(Value(t.Library, t.Algorithm, key, member), t.beside(key, h)); fault != "" {
			out = append(out, yamlfile.Problem{Place: member.Place, Path: at, Message: fault})
		}
		for _, of := range member.Keys() {
			if fault := Inside(t.Library, t.Algorithm, key, of, member.Members[of], t.Requirements); fault != "" {
				out = append(out, yamlfile.Problem{Place: member.Members[of].Place, Path: yamlfile.JoinAny(at, of), Message: fault})
			}
		}
	}
	return out
}

// beside returns what is wrong with an argument's value in combination with the other arguments and the training, or
// "". Such a value would make the training fail after it has started, or learn nothing.
func (t Training) beside(name string, all yamlfile.Value) string {
	switch {
	case name == "learning_starts" || name == "num_steps_sampled_before_learning_starts":
		return t.late(all.Members[name])
	case t.Library == "cleanrl":
		return t.besideOfCleanRL(name, all)
	case t.Library == "rllib":
		return t.besideOfRLlib(name, all)
	case t.Library == "stable-baselines3":
		return t.besideOfSB3(name, all)
	}
	return ""
}
