package kubejob

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// What the service sets in a Job. Metadata with prefix identifies its request.
const (
	prefix         = "rewardwatch/"
	requestKey     = prefix + "request" // a label and an annotation
	policyKey      = prefix + "policy"  // an annotation, as labels cannot have every name
	managedBy      = "app.kubernetes.io/managed-by"
	variablePrefix = "REWARDWATCH_"
	// resultFile is the default path of a container's termination message, which Kubernetes keeps in the status.
	resultFile = "/dev/termination-log"
)

// A Job must exist for as long as its request may be delivered again: otherwise it would be created a second time.
const (
	leastKept = 24 * time.Hour
	kept      = 7 * 24 * time.Hour
)

// Order is the part of a request that its Job needs.
type Order struct {
	Request, Policy, Event string
	Body                   string // JSON, without dollar signs, which Kubernetes would replace
}

// Manifest is a Job without a name.
type Manifest struct {
	job       map[string]any
	timeLimit time.Duration
}

// Load reads the manifest of a configuration, which must be valid, and returns all mistakes with their places. The error
// is that of a file that cannot be read.
func Load(c Config) (Manifest, []yamlfile.Problem, error) {
	text, err := yamlfile.Load(c.Manifest)
	if err != nil {
		return Manifest{}, nil, fmt.Errorf("cannot be read: %w", err)
	}
	m, problems := parse(c, text)
	return m, problems, nil
}

func parse(c Config, text []byte) (Manifest, []yamlfile.Problem) {
	var job yamlfile.Value
	r := yamlfile.Read(c.Manifest, text, &job)
	k := &checker{problems: r.Problems(), start: r.Place("")}
	if len(k.problems) == 0 {
		k.job(job, c.Namespace)
	}
	if len(k.problems) > 0 {
		return Manifest{}, k.problems
	}
	m := Manifest{timeLimit: time.Duration(c.TimeLimit)}
	asJSON, err := json.Marshal(job)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(asJSON))
		d.UseNumber() // large numbers stay exact
		err = d.Decode(&m.job)
	}
	if err != nil {
		k.report(job, "", "%v", err)
	}
	return m, k.problems
}

// checker collects the mistakes of a manifest.
type checker struct {
	problems []yamlfile.Problem
	start    yamlfile.Place
}

func (k *checker) report(at yamlfile.Value, path, format string, args ...any) {
	k.problems = append(k.problems, yamlfile.Problem{
		Place: cmp.Or(at.Place, k.start), Path: path, Message: fmt.Sprintf(format, args...),
	})
}

// child returns a member of a mapping, and reports a member of another kind. A member that is absent or null is
// Absent, and its place is that of the mapping.
func (k *checker) child(of yamlfile.Value, path, key string, kind yamlfile.Kind) yamlfile.Value {
	v, there := of.Members[key]
	if !there || v.Kind == yamlfile.Null {
		return yamlfile.Value{Place: of.Place}
	}
	if v.Kind != kind {
		k.report(v, yamlfile.JoinAny(path, key), "must be %s, not %s", kind, v.Kind)
		return yamlfile.Value{Place: of.Place}
	}
	return v
}

// forbidden reports a key that must not be in a mapping.
func (k *checker) forbidden(in yamlfile.Value, path, key, why string) {
	if v, there := in.Members[key]; there {
		k.report(v, yamlfile.JoinAny(path, key), "must not be set: %s", why)
	}
}

func (k *checker) job(job yamlfile.Value, namespace string) {
	if job.Kind != yamlfile.Mapping {
		k.report(job, "", "must be a Job with apiVersion, kind and spec")
		return
	}
	for key, want := range map[string]string{"apiVersion": "batch/v1", "kind": "Job"} {
		if v := k.child(job, "", key, yamlfile.String); v.Scalar != want {
			k.report(v, key, "must be %s", want)
		}
	}
	meta := k.child(job, "", "metadata", yamlfile.Mapping)
	k.forbidden(meta, "metadata", "name", "the name is derived from the request")
	k.forbidden(meta, "metadata", "generateName", "the name is derived from the request")
	if v := k.child(meta, "metadata", "namespace", yamlfile.String); v.Kind == yamlfile.String && v.Scalar != namespace {
		k.report(v, "metadata.namespace", "must be %q, the target's namespace", namespace)
	}
	k.forbidden(job, "", "status", "it is reserved for Kubernetes")
	k.metadata(meta, "metadata")
	spec := k.child(job, "", "spec", yamlfile.Mapping)
	if spec.Kind == yamlfile.Absent {
		k.report(job, "spec", "must be set")
		return
	}
	k.spec(spec)
}

// metadata checks the labels and annotations of a Job or of its pods.
func (k *checker) metadata(meta yamlfile.Value, path string) {
	for _, key := range []string{"labels", "annotations"} {
		texts, at := k.child(meta, path, key, yamlfile.Mapping), path+"."+key
		for _, name := range texts.Keys() {
			if strings.HasPrefix(name, prefix) || name == managedBy {
				k.forbidden(texts, at, name, "the service sets it")
			} else if v := texts.Members[name]; v.Kind != yamlfile.String {
				k.report(v, yamlfile.JoinAny(at, name), "must be a string, not %s; put it in quotes", v.Kind)
			}
		}
	}
}

func (k *checker) spec(spec yamlfile.Value) {
	for _, key := range []string{"selector", "manualSelector"} {
		k.forbidden(spec, "spec", key, "Kubernetes sets the selector")
	}
	k.forbidden(spec, "spec", "activeDeadlineSeconds", "it is set by the target's time_limit")
	k.whole(spec, "spec", "backoffLimit", 0)
	k.whole(spec, "spec", "ttlSecondsAfterFinished", int64(leastKept/time.Second))
	template := k.child(spec, "spec", "template", yamlfile.Mapping)
	pod := k.child(template, "spec.template", "spec", yamlfile.Mapping)
	if pod.Kind == yamlfile.Absent {
		k.report(spec, "spec.template.spec", "must be set")
		return
	}
	const at = "spec.template.spec"
	k.metadata(k.child(template, "spec.template", "metadata", yamlfile.Mapping), "spec.template.metadata")
	if v := k.child(pod, at, "restartPolicy", yamlfile.String); v.Scalar != "Never" && v.Scalar != "OnFailure" {
		k.report(v, at+".restartPolicy", "must be Never or OnFailure")
	}
	containers := k.child(pod, at, "containers", yamlfile.List)
	if len(containers.Items) == 0 {
		k.report(pod, at+".containers", "must list at least one container")
	}
	for _, key := range []string{"initContainers", "containers"} {
		for i, c := range k.child(pod, at, key, yamlfile.List).Items {
			k.container(c, fmt.Sprintf("%s.%s[%d]", at, key, i))
		}
	}
}

// whole checks that a number is whole and at least the given one, unless it is not set.
func (k *checker) whole(in yamlfile.Value, path, key string, least int64) {
	v := k.child(in, path, key, yamlfile.Number)
	if v.Kind == yamlfile.Absent {
		return
	}
	if n, err := strconv.ParseInt(v.Scalar, 10, 32); err != nil || n < least {
		k.report(v, path+"."+key, "must be a whole number of at least %d", least)
	}
}

func (k *checker) container(c yamlfile.Value, at string) {
	if c.Kind != yamlfile.Mapping {
		k.report(c, at, "must be a mapping, not %s", c.Kind)
		return
	}
	for _, key := range []string{"name", "image"} {
		if v := k.child(c, at, key, yamlfile.String); v.Scalar == "" {
			k.report(v, at+"."+key, "must be set")
		}
	}
	for i, v := range k.child(c, at, "env", yamlfile.List).Items {
		k.variable(v, fmt.Sprintf("%s.env[%d]", at, i))
	}
	k.resources(k.child(c, at, "resources", yamlfile.Mapping), at+".resources")
}

func (k *checker) variable(v yamlfile.Value, at string) {
	if v.Kind != yamlfile.Mapping {
		k.report(v, at, "must be a mapping, not %s", v.Kind)
		return
	}
	if name := k.child(v, at, "name", yamlfile.String); strings.HasPrefix(name.Scalar, variablePrefix) {
		k.report(name, at+".name", "must not start with %s, which is reserved for values of the request", variablePrefix)
	}
	if value, there := v.Members["value"]; there && value.Kind != yamlfile.String && value.Kind != yamlfile.Null {
		k.report(value, at+".value", "must be a string, not %s; put it in quotes", value.Kind)
	}
}

// resources checks the resources that plugins offer, such as nvidia.com/gpu. Kubernetes accepts a Job with a wrong amount
// and refuses only its pods, so the request would wait until its time limit.
func (k *checker) resources(r yamlfile.Value, at string) {
	limits, requests := k.child(r, at, "limits", yamlfile.Mapping), k.child(r, at, "requests", yamlfile.Mapping)
	for _, name := range limits.Keys() {
		v := limits.Members[name]
		if _, err := strconv.ParseUint(v.Scalar, 10, 31); strings.Contains(name, "/") && err != nil {
			k.report(v, yamlfile.JoinAny(at+".limits", name), "must be a whole number")
		}
	}
	for _, name := range requests.Keys() {
		if v := requests.Members[name]; strings.Contains(name, "/") && v.Scalar != limits.Members[name].Scalar {
			k.report(v, yamlfile.JoinAny(at+".requests", name), "must be the same as in limits")
		}
	}
}

// Containers returns how many containers receive the order.
func (m Manifest) Containers() int { return len(m.containers(m.job)) }

// containers returns the containers of a Job, init containers first.
func (m Manifest) containers(job map[string]any) []map[string]any {
	var out []map[string]any
	pod := below(job, "spec", "template", "spec")
	for _, key := range []string{"initContainers", "containers"} {
		list, _ := pod[key].([]any) // absent or null
		for _, c := range list {
			out = append(out, c.(map[string]any))
		}
	}
	return out
}

// below returns the mapping at a path of keys. It creates missing mappings.
func below(m map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		next, ok := m[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[key] = next
		}
		m = next
	}
	return m
}

// Job returns the Job of an order as JSON.
func (m Manifest) Job(o Order) ([]byte, error) {
	job, _ := deepCopy(m.job).(map[string]any)
	below(job, "metadata")["name"] = Name(o.Request)
	for _, keys := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		meta := below(job, keys...)
		maps.Copy(below(meta, "labels"), map[string]any{managedBy: "rewardwatch", requestKey: o.Request})
		maps.Copy(below(meta, "annotations"), map[string]any{requestKey: o.Request, policyKey: o.Policy})
	}
	spec := below(job, "spec")
	spec["activeDeadlineSeconds"] = int64(m.timeLimit / time.Second)
	if spec["backoffLimit"] == nil {
		spec["backoffLimit"] = 0 // by default, Kubernetes would train up to seven times
	}
	if spec["ttlSecondsAfterFinished"] == nil {
		spec["ttlSecondsAfterFinished"] = int64(kept / time.Second)
	}
	for _, c := range m.containers(job) {
		own, _ := c["env"].([]any)
		c["env"] = slices.Concat(o.environment(c), own)
	}
	return json.Marshal(job)
}

// environment returns the variables of a container. They come first, so that other variables can refer to them.
func (o Order) environment(container map[string]any) []any {
	result, ok := container["terminationMessagePath"].(string)
	if !ok {
		result = resultFile
	}
	var out []any
	for _, v := range [][2]string{
		{"EVENT", o.Event}, {"REQUEST", o.Request}, {"POLICY", literal(o.Policy)}, {"ORDER", o.Body}, {"RESULT", result},
	} {
		out = append(out, map[string]any{"name": variablePrefix + v[0], "value": v[1]})
	}
	return out
}

// literal escapes a text from telemetry. Otherwise Kubernetes would replace $(NAME) in it by another variable,
// which may be secret.
func literal(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD"), "$", "$$")
}

func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = deepCopy(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = deepCopy(value)
		}
		return out
	}
	return v
}
