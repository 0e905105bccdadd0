//go:build e2e

package deploy

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// tool returns the path of a program in .cache/bin, in the version of the Makefile.
func tool(t *testing.T, name string) string {
	t.Helper()
	version := regexp.MustCompile(`(?m)^` + strings.ToUpper(name) + `_VERSION := (\S+)`).FindStringSubmatch(read(t, "../Makefile"))[1]
	path, err := filepath.Abs("../.cache/bin/" + name + "-" + version)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// object is a Kubernetes object.
type object map[string]any

// objects returns the documents in a file.
func objects(t *testing.T, text string) []object {
	t.Helper()
	var found []object
	for _, doc := range regexp.MustCompile(`(?m)^---\n`).Split(text, -1) {
		encoded, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		var o object
		if err := json.Unmarshal(encoded, &o); err != nil {
			t.Fatal(err)
		}
		if o != nil {
			found = append(found, o)
		}
	}
	return found
}

func (o object) kind() string { return o.at("kind").(string) }
func (o object) name() string { return o.at("metadata", "name").(string) }

// at returns the value at a path, or nil.
func (o object) at(path ...string) any {
	var value any = map[string]any(o)
	for _, key := range path {
		m, _ := value.(map[string]any)
		value = m[key]
	}
	return value
}

// strings returns the map at a path.
func (o object) strings(path ...string) map[string]any {
	m, _ := o.at(path...).(map[string]any)
	return m
}

// list returns the objects of the list at a path.
func (o object) list(path ...string) []object {
	values, _ := o.at(path...).([]any)
	var found []object
	for _, v := range values {
		found = append(found, v.(map[string]any))
	}
	return found
}

// kubernetesVersions are the oldest and the newest version of Kubernetes whose schemas objects are validated against.
var kubernetesVersions = []string{"1.27", "1.37"}

// validator validates objects against the schemas of Kubernetes and the definitions of Prometheus' operator, and does
// not allow unknown fields.
type validator struct {
	schemas map[string]*jsonschema.Schema
	found   map[string]error // by the JSON of an object, as many combinations have the same
}

// newValidator reads the definitions of Prometheus' operator. Those of Kubernetes are read when needed.
func newValidator(t *testing.T) *validator {
	t.Helper()
	v := &validator{schemas: map[string]*jsonschema.Schema{}, found: map[string]error{}}
	for _, kind := range []string{"ServiceMonitor", "PrometheusRule"} {
		var definition object
		text := read(t, filepath.Join("../.cache/prometheus-operator", strings.ToLower(kind)+"s.yaml"))
		encoded, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(encoded, &definition); err != nil {
			t.Fatal(err)
		}
		schema := definition.list("spec", "versions")[0].at("schema", "openAPIV3Schema")
		closed(schema)
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(kind+".json", schema); err != nil {
			t.Fatal(err)
		}
		if v.schemas["monitoring.coreos.com/v1 "+kind], err = compiler.Compile(kind + ".json"); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// closed forbids other fields in the objects of a schema: the API server drops them without an error.
func closed(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if s["properties"] != nil && s["type"] == "object" && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
		for _, part := range s {
			closed(part)
		}
	case []any:
		for _, part := range s {
			closed(part)
		}
	}
}

// validate returns what is wrong with an object.
func (v *validator) validate(t *testing.T, o object) error {
	t.Helper()
	encoded, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if err, known := v.found[string(encoded)]; known {
		return err
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range kubernetesVersions {
		if err = v.schema(t, version, o).Validate(instance); err != nil {
			break
		}
	}
	v.found[string(encoded)] = err
	return err
}

func (v *validator) schema(t *testing.T, version string, o object) *jsonschema.Schema {
	t.Helper()
	api, _ := o["apiVersion"].(string)
	if s := v.schemas[api+" "+o.kind()]; s != nil {
		return s
	}
	key := version + " " + api + " " + o.kind()
	if v.schemas[key] == nil {
		group, number, ok := strings.Cut(api, "/")
		if !ok {
			group, number = "", group
		}
		group, _, _ = strings.Cut(group, ".")
		name := strings.ToLower(strings.Join(slices.DeleteFunc([]string{o.kind(), group, number}, func(s string) bool { return s == "" }), "-"))
		files, err := filepath.Glob("../.cache/venv-pipeline/lib/python3*/site-packages/kubernetes_validate/kubernetes-json-schema/v" + version + ".0-local-strict/" + name + ".json")
		if err != nil || len(files) != 1 {
			t.Fatalf("%s %s has the schemas %q, %v", api, o.kind(), files, err)
		}
		compiler := jsonschema.NewCompiler()
		compiler.UseLoader(definitions(filepath.Dir(files[0])))
		if v.schemas[key], err = compiler.Compile("https://kubernetes.io/api/" + name + ".json"); err != nil {
			t.Fatal(err)
		}
	}
	return v.schemas[key]
}

// definitions is a directory with the schemas of a version of Kubernetes, which it loads by their base names.
type definitions string

func (d definitions) Load(url string) (any, error) {
	file, err := os.Open(filepath.Join(string(d), filepath.Base(url)))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return jsonschema.UnmarshalJSON(file)
}

// The chart and the overlays produce objects that Kubernetes accepts.
func TestE2EHelmChartAndKustomize(t *testing.T) {
	valid, binary, chart := newValidator(t), filepath.Join(t.TempDir(), "rewardwatch"), packagedChart(t)
	run(t, "..", "go", "build", "-o", binary, "./cmd/rewardwatch")
	t.Run("validator", func(t *testing.T) { validatorRefuses(t, valid) })
	t.Run("chart", func(t *testing.T) { chartRenders(t, valid, binary, chart) })
	t.Run("chart refuses", func(t *testing.T) { chartRefuses(t, binary, chart) })
	t.Run("kustomize", func(t *testing.T) { kustomizeBuilds(t, valid, binary) })
}

// validatorRefuses checks that the validator refuses what the API server refuses or drops.
func validatorRefuses(t *testing.T, v *validator) {
	t.Helper()
	for name, text := range map[string]string{
		"unknown field":    "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {port: 1}",
		"type":             "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a}\nspec: {selector: {matchLabels: a}}",
		"required":         "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 1}",
		"field of CRD":     "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: a}\nspec: {selector: {}, endpoints: [{ports: http}]}",
		"pattern of CRD":   "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: a}\nspec: {selector: {}, endpoints: [{interval: often}]}",
		"rule without one": "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: a}\nspec: {groups: [{name: a, rules: [{alert: b}]}]}",
	} {
		t.Run(name, func(t *testing.T) {
			if err := v.validate(t, objects(t, text)[0]); err == nil {
				t.Error("it is not refused")
			}
		})
	}
}

// consistent checks what schemas cannot: objects are consistent with each other, and pods are confined.
func consistent(t *testing.T, v *validator, all []object) {
	t.Helper()
	maps := map[string]bool{}
	for _, o := range all {
		if err := v.validate(t, o); err != nil {
			t.Errorf("%s %s: %v", o.kind(), o.name(), err)
		}
		if o.kind() == "ConfigMap" {
			maps[o.name()] = true
		}
		if o.kind() == "Secret" {
			t.Errorf("there is a secret %s", o.name())
		}
	}
	for _, workload := range all {
		if kind := workload.kind(); kind != "Deployment" && kind != "StatefulSet" {
			continue
		}
		labels := workload.strings("spec", "template", "metadata", "labels")
		confined(t, workload)
		mounted(t, workload, maps)
		if !selects(workload.strings("spec", "selector", "matchLabels"), labels) {
			t.Error("the workload does not select its pods")
		}
		permitted(t, object(workload.strings("spec", "template", "spec")), all)
		for _, o := range all {
			target, selector := labels, map[string]any(nil)
			switch o.kind() {
			case "Service":
				selector = o.strings("spec", "selector")
			case "NetworkPolicy":
				selector = o.strings("spec", "podSelector", "matchLabels")
			case "PodDisruptionBudget":
				selector = o.strings("spec", "selector", "matchLabels")
			case "ServiceMonitor":
				selector, target = o.strings("spec", "selector", "matchLabels"), one(t, all, "Service").strings("metadata", "labels")
			default:
				continue
			}
			if !selects(selector, target) {
				t.Errorf("%s selects %v of %v", o.kind(), selector, target)
			}
		}
	}
}

// one returns the only object of a kind.
func one(t *testing.T, all []object, kind string) object {
	t.Helper()
	found := slices.DeleteFunc(slices.Clone(all), func(o object) bool { return o.kind() != kind })
	if len(found) != 1 {
		t.Fatalf("there are %d of %s", len(found), kind)
	}
	return found[0]
}

func selects(selector, labels map[string]any) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

// confined checks that the pods of a workload meet Kubernetes' restricted standard with a read-only root, and that
// probes allow enough time for a restore.
func confined(t *testing.T, workload object) {
	t.Helper()
	pod := object(workload.strings("spec", "template", "spec"))
	container := pod.list("containers")[0]
	for path, want := range map[string]any{
		"runAsNonRoot": true, "runAsUser": float64(imageUser), "runAsGroup": float64(imageUser), "fsGroup": float64(imageUser),
	} {
		if got := pod.at("securityContext", path); got != want {
			t.Errorf("%s is %v", path, got)
		}
	}
	if pod.at("securityContext", "seccompProfile", "type") != "RuntimeDefault" {
		t.Error("there is no seccomp profile")
	}
	drop, _ := container.at("securityContext", "capabilities", "drop").([]any)
	if !slices.Equal(drop, []any{"ALL"}) || container.at("securityContext", "allowPrivilegeEscalation") != false ||
		container.at("securityContext", "readOnlyRootFilesystem") != true {
		t.Errorf("the container has the context %v", container.at("securityContext"))
	}
	if grace, _ := pod.at("terminationGracePeriodSeconds").(float64); grace < 25 {
		t.Errorf("the service has %v s to save its state", grace)
	}
	for probe, path := range map[string]string{"startupProbe": "/-/healthy", "livenessProbe": "/-/healthy", "readinessProbe": "/-/ready"} {
		if tcp := container.at(probe, "tcpSocket", "port"); container.at(probe, "httpGet", "path") != path && tcp != "http" {
			t.Errorf("%s is %v", probe, container.at(probe))
		}
	}
	if port := container.list("ports")[0]; port["name"] != "http" || port["containerPort"] != float64(9464) {
		t.Errorf("the port is %v", port)
	}
}

// permitted checks that pods only have a token of the API if a role lets them create Jobs, and that no role permits
// more.
func permitted(t *testing.T, pod object, all []object) {
	t.Helper()
	roles := map[any]bool{}
	for _, o := range all {
		if o.kind() == "Role" {
			roles[o.at("metadata", "namespace")] = true
			rules, err := json.Marshal(o.at("rules"))
			if err != nil {
				t.Fatal(err)
			}
			const want = `[{"apiGroups":["batch"],"resources":["jobs"],"verbs":["create","get"]},{"apiGroups":[""],"resources":["pods"],"verbs":["list"]},{"apiGroups":[""],"resources":["pods/log"],"verbs":["get"]}]`
			if string(rules) != want {
				t.Errorf("a role permits %s", rules)
			}
		}
	}
	for _, o := range all {
		if o.kind() != "RoleBinding" {
			continue
		}
		account, role := o.list("subjects")[0], o.at("roleRef", "name")
		bound := slices.ContainsFunc(all, func(r object) bool {
			return r.kind() == "Role" && r.name() == role && r.at("metadata", "namespace") == o.at("metadata", "namespace")
		})
		if !bound || account["name"] != pod.at("serviceAccountName") {
			t.Errorf("%v is bound to %v", account, role)
		}
	}
	if mounts := pod.at("automountServiceAccountToken"); mounts != (len(roles) > 0) {
		t.Errorf("whether a token is mounted is %v, with %d roles", mounts, len(roles))
	}
}

// mounted checks that each mounted volume and each referenced ConfigMap exists, and that /data is mounted.
func mounted(t *testing.T, workload object, maps map[string]bool) {
	t.Helper()
	pod := object(workload.strings("spec", "template", "spec"))
	volumes := map[string]bool{}
	for _, claim := range workload.list("spec", "volumeClaimTemplates") {
		volumes[claim.name()] = true
	}
	for _, v := range pod.list("volumes") {
		volumes[v["name"].(string)] = true
		if name, ok := v.at("configMap", "name").(string); ok && !maps[name] {
			t.Errorf("there is no ConfigMap %s", name)
		}
		if mode := v.at("secret", "defaultMode"); v["secret"] != nil && mode != float64(0o440) {
			t.Errorf("a secret has the mode %v, which the service refuses", mode)
		}
	}
	data := false
	for _, m := range pod.list("containers")[0].list("volumeMounts") {
		if !volumes[m["name"].(string)] {
			t.Errorf("there is no volume %s", m["name"])
		}
		data = data || m["mountPath"] == "/data"
	}
	if !data {
		t.Error("/data is no volume")
	}
}

// validConfig lets the service check the configuration in a ConfigMap, with the files of directories in
// /etc/rewardwatch.
func validConfig(t *testing.T, binary string, config map[string]any, directories map[string]map[string]any) {
	t.Helper()
	text := config["rewardwatch.yml"].(string)
	for directory, files := range directories {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text.(string)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		text = strings.ReplaceAll(text, "/etc/rewardwatch/"+directory+"/", dir+"/")
		text = strings.ReplaceAll(text, "/etc/rewardwatch/"+directory+"\n", dir+"\n")
	}
	file := filepath.Join(t.TempDir(), "rewardwatch.yml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, "", binary, "validate", file)
}
