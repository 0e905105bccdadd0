//go:build e2e

package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/rewardwatch/rewardwatch/alerts/rules"
)

// Configurations for the cases.
const (
	clustered = "http: {listen: ':9464'}\ncluster: {units_topic: units, checkpoints_topic: checkpoints}\ningest: {dead_letters: {topic: dead}}\n"
	retrains  = `retrain:
  recipes: /etc/rewardwatch/recipes
  targets: [{name: trainer, webhook: "https://trainer.example/retrain", secret_file: /etc/rewardwatch/secrets/trainer/secret}]
  triggers: [{on: incident, recipe: checkout-ranker, target: trainer}]
`
	served = "http: {listen: '0.0.0.0:9464', web_config_file: /etc/rewardwatch/secrets/web/web.yml}\n"
	pushes = `alerts: {grafana_url: "https://grafana.example/", alertmanager: {urls: ["http://alertmanager:9093"]}}
http: {listen: ":9464"}
policies: [{match: "shop-*"}, {match: "*", group_by: [env]}]
`
	regions  = "http: {listen: ':9464'}\npolicies: [{match: '*', group_by: [env, labels.region]}]\n"
	recorded = "http: {listen: ':9464', audit_log: /audit/audit.log}\ningest: {kafka: {tls: {enabled: true, ca_file: /ca/ca.crt}}}\n"
	local    = "# without Kafka\nhttp: {listen: '[::]:9464'}\ningest: {log: {directory: /data/log}}\nlimits: {open_decisions: 2000000}\n"
)

// trains is a configuration with Jobs in the namespace of the release and in another one.
const trains = `http: {listen: ':9464'}
retrain:
  ledger: {sqlite: data/ledger/ledger.db}
  targets:
    - {name: here, kubernetes: {manifest: /etc/rewardwatch/jobs/train.yaml, namespace: watch}}
    - {name: there, kubernetes: {manifest: /etc/rewardwatch/jobs/train.yaml, namespace: training}}
    - {name: elsewhere, kubernetes: {manifest: /etc/rewardwatch/jobs/train.yaml, namespace: ml, url: "https://kubernetes.example", token_file: /etc/rewardwatch/secrets/token/token}}
`

// trainsElsewhere is a configuration with Jobs only in another cluster.
const trainsElsewhere = `http: {listen: ':9464'}
retrain:
  ledger: {sqlite: data/ledger/ledger.db}
  targets:
    - {name: elsewhere, kubernetes: {manifest: /etc/rewardwatch/jobs/train.yaml, namespace: ml, url: "https://kubernetes.example", token_file: /etc/rewardwatch/secrets/token/token}}
`

// scrapeToken is a value that lets Prometheus send a token, which authed requires.
const (
	scrapeToken = "serviceMonitor.authorization.credentials.name=rewardwatch-scrape,serviceMonitor.authorization.credentials.key=token"
	authed      = "http: {listen: ':9464', require_token: true, token_file: /etc/rewardwatch/secrets/token/token}\n"
)

const everything = "serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboards.enabled=true"

// helmCases are combinations of values. set holds arguments after the configuration; RECIPES stands for those of
// deploy/recipes, JOBS for a manifest, and RULES for rules of the configuration.
var helmCases = map[string]struct {
	config string // by default that of the chart
	set    []string
	want   string // kinds besides ConfigMap, Service, ServiceAccount and NetworkPolicy
	maps   int    // number of ConfigMaps besides the configuration
}{
	"defaults":     {want: "StatefulSet"},
	"monitored":    {set: []string{"--set", everything + ",serviceMonitor.labels.release=prometheus"}, want: "PrometheusRule ServiceMonitor StatefulSet", maps: 4},
	"cluster":      {config: clustered, set: []string{"--set", "replicas=3," + everything}, want: "Deployment PodDisruptionBudget PrometheusRule ServiceMonitor", maps: 4},
	"cluster of 1": {config: clustered, want: "Deployment"},
	"retraining": {
		config: "http: {listen: ':9464'}\n" + retrains + "  ledger: {sqlite: data/ledger/ledger.db}\n",
		set:    []string{"RECIPES", "--set", "secrets={trainer,token}"}, want: "StatefulSet", maps: 1,
	},
	"retraining cluster": {
		config: clustered + retrains + "  ledger: {postgres_url_env: LEDGER_URL}\n",
		set:    []string{"RECIPES", "--set", "replicas=2,secrets={trainer},secretEnv.LEDGER_URL.secret=ledger,secretEnv.LEDGER_URL.key=url"},
		want:   "Deployment PodDisruptionBudget", maps: 1,
	},
	"jobs":          {config: trains, set: []string{"JOBS", "--set", "jobs.enabled=true,jobs.namespaces={watch,training},secrets={token}"}, want: "Role Role RoleBinding RoleBinding StatefulSet", maps: 1},
	"other cluster": {config: trainsElsewhere, set: []string{"JOBS", "--set", "secrets={token}"}, want: "StatefulSet", maps: 1},
	"no budget":     {config: clustered, set: []string{"--set", "replicas=2,podDisruptionBudget.enabled=false"}, want: "Deployment"},
	"TLS":           {config: served, set: []string{"--set", "http.tls=true,secrets={web},serviceMonitor.enabled=true,serviceMonitor.tlsConfig.serverName=a"}, want: "ServiceMonitor StatefulSet"},
	"authenticated": {config: served, set: []string{"--set", "http.tls=true,http.authenticated=true,secrets={web},serviceMonitor.enabled=true,serviceMonitor.basicAuth.username.name=a,serviceMonitor.basicAuth.username.key=b"}, want: "ServiceMonitor StatefulSet"},
	"token":         {config: authed, set: []string{"--set", "secrets={token},serviceMonitor.enabled=true," + scrapeToken}, want: "ServiceMonitor StatefulSet"},
	"network": {
		set:  []string{"--set-json", `networkPolicy={"from":[{"namespaceSelector":{"matchLabels":{"a":"b"}}}],"egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.0/8"}}],"ports":[{"port":9092}]}]}`},
		want: "StatefulSet",
	},
	"pushing":      {config: pushes, set: []string{"--set", "prometheusRule.enabled=true"}, want: "PrometheusRule StatefulSet"},
	"other groups": {config: regions, set: []string{"RULES", "--set", "prometheusRule.enabled=true"}, want: "PrometheusRule StatefulSet"},
	"local":        {config: local, set: []string{"--set", "persistence.size=1Ti,persistence.storageClass=fast,service.type=LoadBalancer,service.port=80"}, want: "StatefulSet"},
	"placed": {
		config: clustered,
		set: []string{
			"--set", "replicas=2,image.digest=sha256:" + strings.Repeat("0a", 32) + ",imagePullSecrets[0].name=registry,nodeSelector.disk=ssd,priorityClassName=high,podAnnotations.a=b,podLabels.c=d",
			"--set-json", `tolerations=[{"key":"a","operator":"Exists"}]`,
			"--set-json", `topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{}}]`,
			"--set-json", `affinity={"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"host"}}]}}`,
		}, want: "Deployment PodDisruptionBudget",
	},
	"volumes": {
		config: recorded, want: "StatefulSet",
		set: []string{
			"--set-json", `extraVolumes=[{"name":"ca","configMap":{"name":"x-rewardwatch"}},{"name":"audit","persistentVolumeClaim":{"claimName":"audit"}}]`,
			"--set-json", `extraVolumeMounts=[{"name":"ca","mountPath":"/ca"},{"name":"audit","mountPath":"/audit"}]`,
		},
	},
	"names": {set: []string{"--set", "fullnameOverride=" + strings.Repeat("long-", 13) + ",nameOverride=watch,serviceAccount.name=given,serviceAccount.annotations.a=b," + everything}, want: "PrometheusRule ServiceMonitor StatefulSet", maps: 4},
	"words and numbers": { // of YAML
		config: "http: {listen: ':9464'}\nsecrets: [{file: /tmp/key, env: A}, {file: data/keys/key, env: B}]\n",
		set: []string{
			"2024", "--set-string", "fullnameOverride=on,nameOverride=1,serviceAccount.name=true,secrets={7},secretEnv.A.secret=1e3,secretEnv.A.key=null,secretEnv.B.secret=no,secretEnv.B.key=0,persistence.storageClass=-",
			"--set-json", `jobs={"enabled":true,"namespaces":["2024"]}`,
		}, want: "Role RoleBinding StatefulSet",
	},
	"paths written differently": {
		config: "http: {listen: ':9464', audit_log: //audit/./log}\ncheckpoint: {directory: /data/}\nsecrets: [{file: /run/rw/token, env: A}, {file: /run/./rw/keys/../key, env: B}]\n",
		set: []string{
			"--set", "secretEnv.A.secret=a,secretEnv.A.key=a,secretEnv.B.secret=b,secretEnv.B.key=b",
			"--set-json", `extraVolumes=[{"name":"rw","emptyDir":{}},{"name":"audit","emptyDir":{}}]`,
			"--set-json", `extraVolumeMounts=[{"name":"rw","mountPath":"/run/rw/"},{"name":"audit","mountPath":"/audit/"}]`,
		}, want: "StatefulSet",
	},
	"without defaults": {set: []string{"--set", "dashboards.enabled=true,dashboards.labels=null,probes.liveness=null,resources=null,service.annotations=null,networkPolicy.from=null"}, want: "StatefulSet", maps: 4},
	"bare":             {set: []string{"--set", "networkPolicy.enabled=false,serviceAccount.create=false"}, want: "StatefulSet"},
}

// chartRenders checks that the chart renders to objects that Kubernetes accepts, with configurations that the service
// accepts, and with the rules and dashboards of this build.
func chartRenders(t *testing.T, valid *validator, binary, chart string) {
	t.Helper()
	for name, c := range helmCases {
		t.Run(name, func(t *testing.T) {
			text, err := helm(t, "template", chart, binary, c.config, c.set)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			all := objects(t, text)
			consistent(t, valid, all)
			var kinds []string
			maps := map[string]map[string]any{}
			for _, o := range all {
				switch o.kind() {
				case "ConfigMap":
					maps[strings.TrimPrefix(o.name(), one(t, all, "Service").name())] = o.strings("data")
				case "Service", "ServiceAccount", "NetworkPolicy":
				default:
					kinds = append(kinds, o.kind())
				}
			}
			slices.Sort(kinds)
			if got := strings.Join(kinds, " "); got != c.want || len(maps) != 1+c.maps {
				t.Errorf("there are %s and %d maps", got, len(maps))
			}
			if got := maps[""]["rewardwatch.yml"]; c.config != "" && got != c.config {
				t.Errorf("the configuration is\n%s", got)
			}
			validConfig(t, binary, maps[""], map[string]map[string]any{"recipes": maps["-recipes"], "jobs": maps["-jobs"]})
			for _, dashboard := range []string{"fleet", "policy", "retraining", "service"} {
				want := read(t, "grafana/dashboards/"+dashboard+".json")
				if got := maps["-"+dashboard]["rewardwatch-"+dashboard+".json"]; got != want && strings.Contains(strings.Join(c.set, ""), "dashboards") {
					t.Errorf("%s is not the dashboard of this build", dashboard)
				}
			}
			if c.config == authed {
				scrapesWithToken(t, one(t, all, "ServiceMonitor"))
			}
			if slices.Contains(kinds, "PrometheusRule") {
				sameRules(t, one(t, all, "PrometheusRule"), c.config)
			}
		})
	}
}

// chartRefuses checks that the chart passes Helm's lint, and refuses values that cannot work, with a message that says
// what would be right.
func chartRefuses(t *testing.T, binary, chart string) {
	t.Helper()
	for name, c := range helmCases {
		if text, err := helm(t, "lint", chart, binary, c.config, c.set); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	const listens = "http: {listen: ':9464'}\n"
	for name, c := range map[string]struct {
		config string
		set    string
		want   string
	}{
		"type":                 {set: "replicas=three", want: "at '/replicas': got string, want integer"},
		"unknown":              {set: "replica=3", want: "additional properties 'replica' not allowed"},
		"unknown below":        {set: "image.name=a", want: "at '/image': additional properties 'name' not allowed"},
		"secret in values":     {set: "secretEnv.PASSWORD=hunter2", want: "at '/secretEnv/PASSWORD': got string, want object"},
		"secret as object":     {set: "secrets[0].password=hunter2", want: "at '/secrets/0': got object, want string"},
		"password of scrapes":  {set: "serviceMonitor.basicAuth.password=hunter2", want: "at '/serviceMonitor/basicAuth/password': got string, want object"},
		"token of scrapes":     {set: "serviceMonitor.authorization.credentials=hunter2", want: "at '/serviceMonitor/authorization/credentials': got string, want object"},
		"scrapes refused":      {config: authed, set: "serviceMonitor.enabled=true", want: "http.require_token blocks scrapes by Prometheus; set serviceMonitor.authorization.credentials"},
		"two ways of scrapes":  {set: "serviceMonitor.enabled=true,serviceMonitor.basicAuth.username.name=a,serviceMonitor.basicAuth.username.key=b," + scrapeToken, want: "cannot be combined"},
		"digest":               {set: "image.digest=latest", want: "at '/image/digest': 'latest' does not match"},
		"size":                 {set: "persistence.size=big", want: "at '/persistence/size': 'big' does not match"},
		"time to stop":         {set: "terminationGracePeriodSeconds=5", want: "minimum: got 5, want 25"},
		"recipe":               {set: "recipes.base=a", want: "at '/recipes': additional properties 'base' not allowed"},
		"no YAML":              {config: "ingest: [", want: "config: not YAML: "},
		"address":              {config: "ingest: {}\n", want: `config: http.listen is "127.0.0.1:9464", which probes and the service do not reach; set ":9464"`},
		"replicas":             {config: listens, set: "replicas=3", want: "replicas is 3, but only instances with cluster.units_topic and cluster.checkpoints_topic in config share their work"},
		"TLS":                  {config: listens, set: "http.tls=true", want: "http.tls and http.authenticated require http.web_config_file in config"},
		"state elsewhere":      {config: listens + "checkpoint: {directory: /var/lib/rewardwatch}\n", want: `config: checkpoint.directory is "/var/lib/rewardwatch", which cannot be written; it must be in one of /data`},
		"secret elsewhere":     {config: listens + "secrets: [{file: /etc/rewardwatch/key, env: KEY}]\n", want: `config: the file "/etc/rewardwatch/key" in secrets cannot be written; it must be in one of /tmp, /data`},
		"secret back from tmp": {config: listens + "secrets: [{file: /tmp/../etc/key, env: KEY}]\n", want: `config: the file "/tmp/../etc/key" in secrets cannot be written`},
		"state back from data": {config: listens + "checkpoint: {directory: data/../var}\n", want: `config: checkpoint.directory is "data/../var", which cannot be written`},
		"state beside a mount": {config: listens + "checkpoint: {directory: /database/}\n", want: `config: checkpoint.directory is "/database/", which cannot be written`},
		"name of the service":  {set: "fullnameOverride=a.b", want: `a Service cannot be called "a.b"; set fullnameOverride`},
		"log elsewhere":        {config: "http: {listen: ':9464', audit_log: audit.log}\n", want: `config: http.audit_log is "audit.log", which cannot be written`},
		"ledger":               {config: listens + retrains, want: "config: retrain.ledger.sqlite must be in a directory of its own, such as data/ledger/ledger.db"},
		"ledger in the root":   {config: listens + retrains + "  ledger: {sqlite: data/ledger.db}\n", want: "config: retrain.ledger.sqlite must be in a directory of its own"},
		"ledger in ./":         {config: listens + retrains + "  ledger: {sqlite: data/./ledger.db}\n", want: "config: retrain.ledger.sqlite must be in a directory of its own"},
		"manifest":             {set: "jobs.manifests.train=a", want: "at '/jobs/manifests': additional properties 'train' not allowed"},
		"jobs not enabled":     {config: trains, set: "jobs.namespaces={watch,training}", want: "config: target here creates Jobs in the namespace watch, which requires jobs.enabled=true"},
		"jobs elsewhere":       {config: trains, set: "jobs.enabled=true", want: "config: target there creates Jobs in the namespace training, which requires jobs.enabled=true and the namespace in jobs.namespaces"},
		"default account":      {config: trains, set: "jobs.enabled=true,jobs.namespaces={watch,training},serviceAccount.create=false", want: "jobs.enabled with serviceAccount.create=false requires serviceAccount.name"},
		"rules of groups":      {config: regions, set: "prometheusRule.enabled=true", want: "write their rules with `rewardwatch rules --config rewardwatch.yml -o DIR`"},
		"dashboards of groups": {config: regions, set: "dashboards.enabled=true", want: "write their dashboards with `rewardwatch dashboards --config rewardwatch.yml -o DIR`"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := helm(t, "template", chart, binary, c.config, []string{"--set", c.set})
			if err == nil || !strings.Contains(text, c.want) {
				t.Errorf("%v:\n%.2000s", err, text)
			}
		})
	}
}

// packagedChart returns the file of the chart as it is published, without links to files outside of it.
func packagedChart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, "", tool(t, "helm"), "package", "helm/rewardwatch", "--destination", dir)
	files, err := filepath.Glob(dir + "/*.tgz")
	if err != nil || len(files) != 1 {
		t.Fatalf("there are %q, %v", files, err)
	}
	return files[0]
}

// helm runs a command on the chart with a configuration and further arguments, and returns its output.
func helm(t *testing.T, verb, chart, binary, config string, set []string) (string, error) {
	t.Helper()
	args := []string{verb}
	if verb == "template" {
		args = append(args, "x", "--namespace", "watch")
	}
	args = append(args, chart, "--kube-version", "1.37.0")
	if config != "" {
		file := filepath.Join(t.TempDir(), "rewardwatch.yml")
		if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--set-file", "config="+file)
		if slices.Contains(set, "RULES") {
			dir := t.TempDir()
			run(t, "", binary, "rules", "--config", file, "-o", dir)
			args = append(args, "--set-file", "prometheusRule.rules="+dir+"/"+rules.RulesFile)
		}
	}
	for _, arg := range set {
		switch arg {
		case "RULES":
		case "2024":
			if verb == "template" {
				args[1] = arg // the name of the release
			}
		case "JOBS":
			args = append(args, "--set-file", `jobs.manifests.train\.yaml=../cmd/rewardwatch/internal/config/testdata/jobs/train.yaml`)
		case "RECIPES":
			args = append(args, "--set-file", `recipes.base\.yaml=recipes/base.yaml,recipes.checkout-ranker\.yaml=recipes/checkout-ranker.yaml`)
		default:
			args = append(args, arg)
		}
	}
	out, err := exec.CommandContext(t.Context(), tool(t, "helm"), args...).CombinedOutput()
	return string(out), err
}

// sameRules checks that an object has the rules that this build writes for a configuration.
func sameRules(t *testing.T, o object, config string) {
	t.Helper()
	opts := rules.Options{GroupLabels: []string{"env"}}
	switch config {
	case pushes:
		opts.Push, opts.GrafanaURL = true, "https://grafana.example"
	case regions:
		opts.GroupLabels = append(opts.GroupLabels, "label_region")
	}
	files, err := rules.Files(opts)
	if err != nil {
		t.Fatal(err)
	}
	if want := objects(t, string(files[rules.RulesFile]))[0]; !reflect.DeepEqual(o.at("spec"), map[string]any(want)) {
		text, _ := yaml.Marshal(o.at("spec")) // was read from YAML
		t.Errorf("the rules are not those of this build:\n%.3000s", text)
	}
}

// scrapesWithToken checks that Prometheus sends the token in the secret.
func scrapesWithToken(t *testing.T, monitor object) {
	t.Helper()
	text, err := json.Marshal(monitor)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"authorization":{"credentials":{"key":"token","name":"rewardwatch-scrape"}}`; !strings.Contains(string(text), want) {
		t.Errorf("the monitor has no %s:\n%s", want, text)
	}
}
