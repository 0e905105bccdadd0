package pipeline

import (
	"fmt"
	"strings"
)

// Stage is a step of the pipeline with its own script.
type Stage struct {
	Name  string   `json:"name"`
	Title string   `json:"title"` // title in orchestrators
	Needs []string `json:"needs"` // names of the stages that must precede it
	Cause string   `json:"cause"` // path of the value that causes the stage

	Training bool   `json:"-"` // whether the time limit of the training applies
	Heavy    bool   `json:"-"` // whether it has the resources of the training
	Waiting  bool   `json:"-"` // whether it waits for the gate's verdict
	Last     string `json:"-"` // state of the version after it if it is the last stage, otherwise ""
}

// Script returns the path of the stage's script, relative to the root of the repository.
func (s Stage) Script() string { return "pipeline/stages/" + s.Name + ".sh" }

// plan derives the stages. Each needs the preceding one.
func plan(w *Work) string {
	f := &w.File
	add := func(wanted bool, s Stage) {
		if !wanted {
			return
		}
		if n := len(w.Stages); n > 0 {
			s.Needs = []string{w.Stages[n-1].Name}
		}
		w.Stages = append(w.Stages, s)
	}
	add(f.Data.Export, Stage{Name: "export", Title: "Export the drifted and the baseline data", Cause: "data.export"})
	add(true, Stage{Name: "train", Title: "Train a new version", Cause: "training", Training: true, Heavy: true})
	add(true, Stage{Name: "evaluate", Title: "Evaluate the new version", Cause: "evaluation", Heavy: true})
	add(len(f.Shadow.Command) > 0, Stage{Name: "shadow", Title: "Serve the new version in shadow", Cause: "shadow.command"})
	add(!f.Gate.Skip, Stage{Name: "gate", Title: "Wait for Rewardwatch's verdict", Cause: "gate", Waiting: true})
	add(len(f.Deploy.Command) == 0, Stage{Name: "keep", Title: "Keep the new version", Cause: "deploy", Last: "kept"})
	add(len(f.Deploy.Command) > 0, Stage{Name: "deploy", Title: "Deploy the new version", Cause: "deploy.command", Last: "in service"})
	names := make([]string, len(w.Stages))
	for i, s := range w.Stages {
		names[i] = s.Name
	}
	return fmt.Sprintf("%d stages: %s", len(names), strings.Join(names, ", "))
}
