package kubejob

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/training"
)

// job is the part of a Job that shows how far it has got.
type job struct {
	Metadata struct {
		UID         string            `json:"uid"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Deadline int64 `json:"activeDeadlineSeconds"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
		Ready      int         `json:"ready"`
		Succeeded  int         `json:"succeeded"`
		Failed     int         `json:"failed"`
	} `json:"status"`
}

// condition is an entry in the status of a Job or a pod.
type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// pod is the part of a pod that shows how its containers ended.
type pod struct {
	Metadata struct {
		Name        string            `json:"name"`
		Created     time.Time         `json:"creationTimestamp"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Containers []container `json:"containers"`
		Init       []container `json:"initContainers"`
	} `json:"spec"`
	Status struct {
		Phase      string            `json:"phase"`
		Reason     string            `json:"reason"`
		Message    string            `json:"message"`
		Conditions []condition       `json:"conditions"`
		Init       []containerStatus `json:"initContainerStatuses"`
		Containers []containerStatus `json:"containerStatuses"`
	} `json:"status"`
}

type container struct {
	Name    string `json:"name"`
	Restart string `json:"restartPolicy"`
}

type containerStatus struct {
	Name  string `json:"name"`
	State struct {
		Running    *struct{}   `json:"running"`
		Terminated *terminated `json:"terminated"`
	} `json:"state"`
	LastState struct {
		Terminated *terminated `json:"terminated"`
	} `json:"lastState"`
}

// terminated is how a container ended.
type terminated struct {
	Code     int       `json:"exitCode"`
	Reason   string    `json:"reason"`
	Message  string    `json:"message"` // its termination message
	Finished time.Time `json:"finishedAt"`
}

// ended returns the condition with which a Job has ended, and whether it has.
func (j job) ended() (c condition, over bool) {
	for _, c := range j.Status.Conditions {
		if c.Status == "True" && (c.Type == "Complete" || c.Type == "Failed") {
			return c, true
		}
	}
	return condition{}, false
}

// started reports whether a container of the Job has run.
func (j job) started() bool {
	_, over := j.ended()
	return over || j.Status.Ready+j.Status.Succeeded+j.Status.Failed > 0
}

// main returns the name of the container that matters: the first one, unless an annotation names another.
func (p pod) main() string {
	if name := p.Metadata.Annotations["kubectl.kubernetes.io/default-container"]; name != "" || len(p.Spec.Containers) == 0 {
		return name
	}
	return p.Spec.Containers[0].Name
}

// containers returns the states of all containers of a pod, the main one first.
func (p pod) containers() []containerStatus {
	all := slices.Concat(p.Status.Containers, p.Status.Init)
	slices.SortStableFunc(all, func(a, b containerStatus) int {
		return cmp.Compare(btoi(b.Name == p.main()), btoi(a.Name == p.main()))
	})
	return all
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// end returns how a container ended the last time, nil if it has not.
func (c containerStatus) end() *terminated {
	if c.State.Terminated != nil {
		return c.State.Terminated
	}
	return c.LastState.Terminated
}

// isSidecar reports whether Kubernetes kills a container after the others have ended, so that its exit code means
// nothing.
func (p pod) isSidecar(name string) bool {
	return slices.Contains(p.Spec.Init, container{name, "Always"})
}

// failed returns the container of a pod that failed, the main one if possible, or false if there is none.
func (p pod) failed() (containerStatus, bool) {
	if p.Status.Phase == "Succeeded" {
		return containerStatus{}, false
	}
	all := p.containers()
	i := slices.IndexFunc(all, func(c containerStatus) bool {
		return c.end() != nil && c.end().Code != 0 && !p.isSidecar(c.Name)
	})
	if i < 0 {
		return containerStatus{}, false
	}
	return all[i], true
}

// version returns the version that a container of a pod has written as its termination message, "" without one.
func (p pod) version() string {
	for _, c := range p.containers() {
		var result struct {
			Version string `json:"policy_version"`
		}
		if t := c.State.Terminated; t != nil && t.Code == 0 && json.Unmarshal([]byte(t.Message), &result) == nil && result.Version != "" {
			return result.Version
		}
	}
	return ""
}

// newest returns the pod of the last attempt, nil without pods.
func newest(pods []pod) *pod {
	if len(pods) == 0 {
		return nil
	}
	last := slices.MaxFunc(pods, func(a, b pod) int {
		return cmp.Or(a.Metadata.Created.Compare(b.Metadata.Created), a.finished().Compare(b.finished()), strings.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return &last
}

// finished returns when the last container of a pod ended, zero if none has.
func (p pod) finished() (at time.Time) {
	for _, c := range p.containers() {
		if end := c.end(); end != nil && end.Finished.After(at) {
			at = end.Finished
		}
	}
	return at
}

// chosen returns the pod whose log and exit code show how a Job ended: the last pod that agrees with its condition,
// or otherwise the last one. Of several pods that succeeded, it prefers those that wrote the version. It returns
// nil without pods.
func chosen(c condition, pods []pod) *pod {
	phase := "Failed"
	if c.Type == "Complete" {
		phase = "Succeeded"
	}
	agree := slices.DeleteFunc(slices.Clone(pods), func(p pod) bool { return p.Status.Phase != phase })
	wrote := slices.DeleteFunc(slices.Clone(agree), func(p pod) bool { return c.Type != "Complete" || p.version() == "" })
	return cmp.Or(newest(wrote), newest(agree), newest(pods))
}

// logOf returns the name of the container whose log shows how a pod ended, or how far the training has got.
func (p pod) logOf() string {
	all, main := p.containers(), p.main()
	runs := slices.ContainsFunc(all, func(c containerStatus) bool { return c.Name == main && c.State.Running != nil })
	if c, is := p.failed(); is && !runs {
		return c.Name
	}
	return main
}

// evicted returns why a pod was evicted, preempted or deleted, "" if it was not.
func (p pod) evicted() string {
	for _, c := range p.Status.Conditions {
		if c.Type == "DisruptionTarget" && c.Status == "True" {
			return joined(c.Reason, c.Message)
		}
	}
	if p.Status.Reason == "Evicted" || p.Status.Reason == "Preempting" || p.Status.Reason == "NodeLost" {
		return joined(p.Status.Reason, p.Status.Message)
	}
	return ""
}

// explain returns how a pod ended: the eviction, and the exit code of the container that failed.
func (p pod) explain() string {
	var parts []string
	if why := p.evicted(); why != "" {
		parts = append(parts, fmt.Sprintf("pod %s was evicted (%s)", p.Metadata.Name, why))
	}
	if c, is := p.failed(); is {
		parts = append(parts, fmt.Sprintf("container %s of pod %s exited with code %d%s", c.Name, p.Metadata.Name, c.end().Code, c.end().because()))
	} else if len(parts) == 0 && joined(p.Status.Reason, p.Status.Message) != "" {
		parts = append(parts, fmt.Sprintf("pod %s: %s", p.Metadata.Name, joined(p.Status.Reason, p.Status.Message)))
	}
	return strings.Join(parts, ", ")
}

// longestMessage bounds how much of a termination message an error repeats, in bytes.
const longestMessage = 300

// because returns the reason and the message of a container that failed, in the form " (OOMKilled)".
func (t terminated) because() string {
	reason := t.Reason
	if reason == "Error" { // it adds nothing
		reason = ""
	}
	message := strings.TrimSpace(t.Message)
	if why := joined(reason, strings.ToValidUTF8(message[:min(len(message), longestMessage)], "")); why != "" {
		return " (" + why + ")"
	}
	return ""
}

// joined returns the reason and the message of a status.
func joined(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

// report returns the report on a Job that has ended with a condition, without its log.
func (j job) report(c condition, p *pod) training.Report {
	if c.Type == "Complete" {
		switch {
		case p == nil:
			return training.Report{State: training.Failed, Error: "the Job succeeded, but its pods were deleted before the service could read the version it produced"}
		case p.version() == "":
			return training.Report{State: training.Failed, Error: `the Job succeeded with exit code 0, but did not write {"policy_version": "..."} to the file in ` + variablePrefix + "RESULT"}
		}
		return training.Report{State: training.Succeeded, Version: p.version()}
	}
	why := j.failure(c)
	if p == nil {
		return training.Report{State: training.Failed, Error: why + "; its pods no longer exist"}
	}
	if how := p.explain(); how != "" {
		why += ": " + how
	}
	return training.Report{State: training.Failed, Error: why}
}

// failure returns what a Job says about its failure.
func (j job) failure(c condition) string {
	if c.Reason == "DeadlineExceeded" {
		return fmt.Sprintf("the Job reached its time limit of %s", time.Duration(j.Spec.Deadline)*time.Second)
	}
	return fmt.Sprintf("the Job failed (%s)", joined(c.Reason, c.Message))
}
