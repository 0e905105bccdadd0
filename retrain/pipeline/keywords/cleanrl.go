package keywords

import (
	"fmt"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// late returns what is wrong with the step at which learning starts, or "".
func (t Training) late(v yamlfile.Value) string {
	if v.Float() >= float64(t.Steps) {
		return fmt.Sprintf("must be below training.steps, %d, or nothing is learned", t.Steps)
	}
	return ""
}

// numberOf returns the value of an argument, or otherwise if the argument is not set.
func numberOf(all yamlfile.Value, name string, otherwise float64) float64 {
	if v := all.Members[name]; v.Kind == yamlfile.Number {
		return v.Float()
	}
	return otherwise
}

// besideOfCleanRL is beside for the CleanRL-style script, which divides the steps of all environments into minibatches.
func (t Training) besideOfCleanRL(name string, all yamlfile.Value) string {
	least, of := 2., "num_steps"
	if all.Members["norm_adv"].Scalar == "false" {
		least = 1
	}
	rows := numberOf(all, "num_steps", 128) * numberOf(all, "num_envs", 4) * float64(t.Environments)
	if _, given := all.Members["num_minibatches"]; given {
		of = "num_minibatches"
	}
	if name == "num_steps" && all.Members[name].Float() > float64(t.Steps) {
		return fmt.Sprintf("must be at most training.steps, %d", t.Steps)
	}
	if name != of || rows >= least*numberOf(all, "num_minibatches", 4) {
		return ""
	}
	return fmt.Sprintf("must leave at least %v steps for each minibatch: num_steps, num_envs and the environments result in %v", least, rows)
}
