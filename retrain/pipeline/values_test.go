package pipeline

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
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/quote"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// All mistakes that a filter finds are reported at their places, and nothing is generated.
func TestMistakesHavePlaces(t *testing.T) {
	for name, test := range map[string]struct {
		old, now, want string
	}{
		"unknown key":           {"gate: {", "gate: {withn: 5h, ", `unknown key "withn"`},
		"unknown target":        {"airflow, make]", "airflw, make]", `did you mean "airflow"?`},
		"twice":                 {"airflow, make]", "make, make]", "targets[6]: is listed twice"},
		"project":               {"project: cartpole", "project: Cart_Pole", "project: must be"},
		"not pinned":            {"numpy==2.4.6", "numpy>=2", "requirements[1]: must be a package with its exact version"},
		"missing package":       {"  - stable-baselines3==2.9.2\n", "", "must pin stable-baselines3"},
		"package twice":         {"numpy==2.4.6", "Stable_Baselines3==2.9.2", "requirements[3]: is listed twice"},
		"base without version":  {"image: ghcr", "base: python:latest\nimage: ghcr", "base: must be an image with a digest"},
		"image with a tag":      {"ghcr.io/example/cartpole", "ghcr.io/example/cartpole:v1", "image: must be an image without a tag"},
		"image here only":       {"image: ghcr.io/example/cartpole\n", "", "image: must name a registry"},
		"release":               {"release: v0.1.0", "release: main", "release: must be a tag"},
		"algorithm":             {"name: PPO", "name: PPPO", `did you mean "PPO"?`},
		"library":               {"library: stable-baselines3", "library: sb3", "algorithm.library: must be one of"},
		"parameter":             {"low: 9.3, high: 10.3", "low: 9.3, high: 9.3", "simulation[0].high: must be above low"},
		"parameter name":        {"name: gravity", "name: my gravity", "simulation[0].name"},
		"timeout":               {"timeout: 2h", "timeout: 2 hours", "training.timeout: must be a whole number of minutes"},
		"hosted for too long":   {"timeout: 2h", "timeout: 7h", "training.timeout: must be at most 6h"},
		"hosted GPU":            {"cpu: 2,", "cpu: 2, gpu: 1,", "training.gpu: requires training.runner"},
		"memory":                {"memory: 4Gi", "memory: 4G", "training.memory"},
		"storage":               {"memory: 4Gi", "storage: 1TB", "training.storage: must be a size such as 10Gi"},
		"constraint":            {"at_least: 300", "at_least: much", "evaluation.constraints[0].at_least: must be a number"},
		"no constraint":         {", at_least: 300", "", "must have at_least or at_most"},
		"no deployment":         {"deploy:\n  command: [python, deploy.py, --to, production]\n", "", "deploy.command: must be set for argo, because its $WORK is deleted after the run"},
		"nothing to roll back":  {"deploy:\n  command: [python, deploy.py, --to, production]\n", "", "rollback.command: requires deploy.command"},
		"empty word":            {"[python, deploy.py, --undo]", `[python, ""]`, "rollback.command[1]: must not be empty"},
		"cron":                  {`"0 3 * * 1"`, `"0 3 * *"`, "schedule: must be a cron expression in UTC"},
		"cron with a zone":      {`"0 3 * * 1"`, `"CRON_TZ=Asia/Tokyo 0 3 * * 1"`, "schedule: must not name a time zone: schedules run in UTC. Convert the hour in \"CRON_TZ=Asia/Tokyo 0 3 * * 1\", and remove the zone"},
		"cron that never comes": {`"0 3 * * 1"`, `"0 3 30 feb *"`, "pipeline.yaml:34:11: schedule: must be a date that exists"},
		"cron of no cron":       {`"0 3 * * 1"`, `"0 3 ? * 1"`, "schedule: must be a cron expression in UTC"},
		"cron too often":        {`"0 3 * * 1"`, `"*/4 3 * * 1"`, `pipeline.yaml:34:11: schedule: must leave at least 5 minutes between runs, unlike "*/4 3 * * 1": GitHub Actions does not start workflows more often`},
		"too long for a runner": {"timeout: 2h", "timeout: 5d, runner: [gpu]", "training.timeout: must be at most 4d with GitHub Actions, which stops a job after five days"},
		"gate for too long":     {"within: 4h", "within: 14d, runner: [gpu]", "gate.within: must be at most 4d with GitHub Actions"},
		"service":               {"https://rewardwatch.example.com", "https://rewardwatch.example.com?a=b", "monitoring.service: must be"},
		"expected":              {"mean return >= 0.95 * baseline", "average return >= 1", "monitoring.expected"},
		"template of others":    {"description: Balances a pole on a cart.", `description: "{{ x }} Balances"`, "description: must not contain {{"},
		"two lines":             {"owner: control@example.com", `owner: "a\nb"`, "owner: must be one line"},
		"mark":                  {"owner: control@example.com", "owner: \"\\uE000\"", "owner: must be one line"},
		"broker":                {"kafka-1:9092", "kafka-1", "data.brokers[0]: must be host:port"},
		"hyperparameter":        {"n_steps: 256", "n-steps: 256", "algorithm.hyperparameters"},
		"nested hyperparameter": {"n_steps: 256", `policy_kwargs: {a: ["{{x}}"]}`, "pipeline.yaml:18:41: algorithm.hyperparameters.policy_kwargs.a[0]: must not contain"},
		"glob":                  {"project: cartpole", "project: cartpole\npolicy: cart*", "pipeline.yaml:3:9: policy: \"cart*\" contains wildcard characters"},
		"templates":             {"project: cartpole", "project: cartpole\ntemplates: [nowhere]", "templates[0]: must be a readable directory"},
		"trigger":               {trigger, "trigger: {target: argo}\n", "trigger.target: must be one of github-actions, gitlab-ci, airflow, make"},
		"trigger's token":       {trigger, "trigger: {target: github-actions, repository: a/b}\n", "pipeline.yaml:44:1: trigger.token_file: must be set"},
		"trigger's repository":  {trigger, "trigger: {target: gitlab-ci, repository: a, token_file: t}\n", "trigger.repository: must be owner/name"},
		"trigger's directory":   {trigger, "trigger: {target: make, directory: here}\n", "trigger.directory: must be an absolute path"},
		"seed twice":            {"evaluation:\n", "evaluation:\n  seeds: [1, 1]\n", "evaluation.seeds[1]: is listed twice"},
		"stretch":               {"per: 20000 episodes", "per: 3 bananas", "monitoring.false_alarms.per: must be a duration"},
		"hosted processors":     {"cpu: 2,", "cpu: 8,", "training.cpu: must be at most 4"},
		"no scipy":              {"  - scipy==1.17.1\n", "", "must pin scipy"},
		"word of Python":        {"n_steps: 256", "lambda: 256", "algorithm.hyperparameters.lambda: cannot be an argument"},
		"policy":                {"name: PPO", "name: PPO\n  policy: CnPolicy", `pipeline.yaml:18:11: algorithm.policy: must be one of MlpPolicy, CnnPolicy, MultiInputPolicy, not "CnPolicy" (did you mean "CnnPolicy"?)`},
		"policy of a library":   {"library: stable-baselines3", "library: cleanrl\n  policy: CnnPolicy", "algorithm.policy: requires library stable-baselines3"},
		"frames":                {"name: PPO", "name: PPO\n  frame_stack: 65", "pipeline.yaml:18:16: algorithm.frame_stack: must be from 1 to 64, not 65"},
		"frames of mappings":    {"name: PPO", "name: PPO\n  policy: MultiInputPolicy\n  frame_stack: 4", "algorithm.frame_stack: must be 1 with MultiInputPolicy"},
		"Atari's packages":      {"name: PPO", "name: PPO\n  atari: true", "pipeline.yaml:18:10: algorithm.atari: requires ale-py among the requirements"},
		"argument set already":  {"n_steps: 256", "policy: MlpPolicy", "algorithm.hyperparameters.policy: cannot be an argument"},
		"host of the registry":  {"ghcr.io/example/cartpole", "example/cartpole", "image: must start with the host of the registry"},
		"CleanRL's algorithm":   {"library: stable-baselines3\n  name: PPO", "library: cleanrl\n  name: SAC", "algorithm.name: must be one of PPO"},
		"CleanRL's argument":    {"library: stable-baselines3", "library: cleanrl", `algorithm.hyperparameters.n_steps: must be one of anneal_lr, clip_coef, ent_coef`},
		"CleanRL's number":      {"library: stable-baselines3\n  name: PPO\n  hyperparameters: {n_steps: 256", "library: cleanrl\n  name: PPO\n  hyperparameters: {num_steps: many", "algorithm.hyperparameters.num_steps: must be a whole number"},
		"CleanRL's switch":      {"library: stable-baselines3\n  name: PPO\n  hyperparameters: {n_steps: 256", "library: cleanrl\n  name: PPO\n  hyperparameters: {anneal_lr: 1", "algorithm.hyperparameters.anneal_lr: must be true or false"},
		"CleanRL's packages":    {"library: stable-baselines3", "library: cleanrl", "must pin tyro, which cleanrl requires"},
		"RLlib's packages":      {"library: stable-baselines3", "library: rllib", "must pin ray, which rllib requires"},
		"an old library":        {"stable-baselines3==2.9.2", "stable-baselines3==1.8.0", "pipeline.yaml:12:5: requirements[3]: must be 2.0.0 or later, because the generated scripts require Gymnasium environments; pin a newer version, or set algorithm.library: custom"},
		"telemetry of others":   {"{steps: 100000,", "{command: [make], telemetry: true,", "training.telemetry: has no effect with training.command"},
		"left to fill in":       {"deploy.py, --to", "CHANGE-ME.py, --to", "pipeline.yaml:31:21: deploy.command[1]: must be filled in: CHANGE-ME"},
		"secret's name":         {"deploy.py, --to, production]", "x]\n  secrets: [token]", "deploy.secrets[0]: must be a name of capital letters"},
		"secret of a shell":     {"deploy.py, --to, production]", "x]\n  secrets: [UID]", "deploy.secrets[0]: UID has a different meaning"},
		"secret of another":     {"deploy.py, --to, production]", "x]\n  secrets: [REWARDWATCH_STATUS_TOKEN]", "deploy.secrets[0]: REWARDWATCH_STATUS_TOKEN has a different meaning"},
		"secret of no stage":    {"data:\n", "shadow: {secrets: [A]}\ndata:\n", "shadow.secrets: requires shadow.command"},
		"polls too rarely":      {"within: 4h, every: 5m", "within: 4h, every: 5h", "gate.every: must be at most gate.within, which is 4h"},
		"image in capitals":     {"ghcr.io/example/cartpole", "ghcr.io/Example/cartpole", "in lowercase letters"},
		"two lines, folded":     {"description: Balances a pole on a cart.", "description: >\n  Balances a pole\n\n  on a cart.", "description: must be one line"},
		"secret in a command":   {"deploy.py, --to, production]", "deploy.py, \"ghp_0123456789abcdefghijklmnopqrstuvwxyz\"]", "deploy.command[2]: looks like a secret in plain text"},
		"one seed":              {"evaluation:\n", "evaluation:\n  seeds: [1]\n", "at least two seeds"},
	} {
		w, err := run(t, test.old, test.now)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
			continue
		}
		for _, p := range w.Problems {
			if p.Line == 0 || p.File == "" {
				t.Errorf("%s: %v has no place", name, p)
			}
		}
	}
}

// Values in other notations than in the example are accepted.
func TestOtherWaysToWriteValues(t *testing.T) {
	for name, test := range map[string][]string{
		"a folded description":   {"description: Balances a pole on a cart.", "description: >\n  Balances a pole\n  on a cart."},
		"a literal description":  {"description: Balances a pole on a cart.", "description: |\n  Balances a pole on a cart."},
		"a folded argument":      {"[python, deploy.py, --to, production]", "\n    - sh\n    - -c\n    - >\n      python deploy.py\n      --to production"},
		"brokers without quotes": {"data:\n  brokers: [\"kafka-1:9092\"]", "data: {brokers: [kafka-1:9092, kafka-2.example:9092]}"},
		"a metric with a point":  {"metric: return", "metric: \"safety.trips [1/h]\"", "id: CartPole-v1", "id: \"lab:CartPole-v1\""},
		"a directive":            {"# CartPole", "%YAML 1.2\n---\n# CartPole"},
		"a byte order mark":      {"# CartPole", "\ufeff# CartPole"},
	} {
		if _, err := run(t, test...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A value means the same in every syntax, whatever it contains.
func TestValuesAreQuoted(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{
		`it's "on"`, "$HOME `id` $(id) ${X}", `a\b\n`, "# no comment", ": - ? & * ! | > % @", "é 世界 🎉", "--flag", "~", "null", "1e3", "'''", `"""`, "\u00a0", "%s %d", "$$",
	} {
		out, err := exec.Command("sh", "-c", "printf %s "+quote.Shell(value)).Output()
		if err != nil || string(out) != value {
			t.Errorf("shell: %q, %v, want %q", out, err, value)
		}
		literal := quote.Python(yamlfile.Value{Kind: yamlfile.String, Scalar: value})
		out, err = exec.Command(python, "-c", "import sys; sys.stdout.buffer.write("+literal+".encode())").Output()
		if err != nil || string(out) != value {
			t.Errorf("Python: %q, %v, want %q", out, err, value)
		}
		text, err := quote.YAML(value)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if err := yaml.Unmarshal([]byte(text), &back); err != nil || back != value {
			t.Errorf("YAML: %q, %v, want %q", back, err, value)
		}
	}
}

func TestPythonLiterals(t *testing.T) {
	var into struct {
		V yamlfile.Value `yaml:"v"`
	}
	r := yamlfile.Read("f.yaml", []byte("v: {a: 3e-4, b: [1, true, null], c: {d: x}}\n"), &into)
	if len(r.Problems()) > 0 {
		t.Fatal(r.Problems())
	}
	if got, want := quote.Python(into.V), `{"a": 0.0003, "b": [1, True, None], "c": {"d": "x"}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The schema has the keys of the file, and accepts the example.
func TestSchemaHasTheKeysOfTheFile(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	compareKeys(t, "", reflect.ValueOf(&File{}).Elem(), schema)

	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	check := ofSchema(t)
	if err := check(string(text)); err != nil {
		t.Error(err)
	}
	if check(string(text)+"nonsense: 1\n") == nil {
		t.Error("the schema takes an unknown key")
	}
	files, err := filepath.Glob("testdata/strangers/*.yaml")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files { // including those that extend another file
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.TrimPrefix(strings.ReplaceAll(string(text), `"env": null`, `"env": "a"`), "\ufeff") // accepted, but not recommended
		if err := check(plain); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for text, takes := range map[string]bool{
		"extends: a.yaml\nalgorithm: {hyperparameters: {n_steps: 8}}\ndeploy: {secrets: [KEY]}\ntrigger: {target: ''}\nmodel: {url: 'https://a'}\n": true,
		"algorithm: {hyperparameters: {n_steps: 8}}\n":      false,
		"deploy: {secrets: [KEY]}\n":                        false,
		"trigger: {target: ''}\n":                           false,
		"model: {url: 'https://a'}\n":                       false,
		"extends: a.yaml\nalgorithm: {library: nonsense}\n": false,
	} {
		if got := check(text) == nil; got != takes {
			t.Errorf("the schema takes %q: %v, want %v", text, got, takes)
		}
	}
}

// ofSchema returns a function that validates the text of a file with the schema.
func ofSchema(t *testing.T) func(text string) error {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(Schema())))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("s.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("s.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) error {
		var read yamlfile.Value
		if problems := yamlfile.Read("x.yaml", []byte(text), &read).Problems(); len(problems) > 0 {
			t.Fatal(problems)
		}
		out, err := read.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(out)))
		if err != nil {
			t.Fatal(err)
		}
		return compiled.Validate(value)
	}
}

func compareKeys(t *testing.T, path string, x reflect.Value, schema map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	var keys []string
	for _, f := range yamlfile.Fields(x) {
		keys = append(keys, f.Key)
		sub, ok := properties[f.Key].(map[string]any)
		if !ok {
			t.Errorf("the schema has no %s", yamlfile.Join(path, f.Key))
			continue
		}
		v := f.Value
		if v.Kind() == reflect.Slice {
			v = reflect.New(v.Type().Elem()).Elem()
			sub, _ = sub["items"].(map[string]any)
		}
		if _, tree := v.Interface().(yamlfile.Value); v.Kind() == reflect.Struct && !tree {
			compareKeys(t, yamlfile.Join(path, f.Key), v, sub)
		}
	}
	for key := range properties {
		if !slices.Contains(keys, key) {
			t.Errorf("the schema has %s, which the file has not", yamlfile.Join(path, key))
		}
	}
}

func TestTemplatesOfTheirOwn(t *testing.T) {
	head := "# " + header + "\n"
	for name, test := range map[string]struct{ text, want string }{
		"good":          {head + "name: {{yaml \"project\"}}   \n\n\n", ""}, // the spaces are corrected
		"action":        {head + "uses: actions/checkout@v4\n", "extra.yaml:2:1: pins: action actions/checkout@v4"},
		"image":         {head + "image: python:latest\n", "pins: image python:latest"},
		"secret":        {head + "password: hunter2hunter2hunter2\n", "secrets: looks like a secret"},
		"key":           {head + "a: ghp_0123456789abcdefghijklmnopqrstuvwxyz\n", "secrets: looks like a secret"},
		"key of AWS":    {head + "a: AKIA0123456789ABCDEF\n", "secrets: looks like a secret"},
		"token":         {head + "a: glpat-0123456789abcdefghij\n", "secrets: looks like a secret"},
		"token of chat": {head + "a: xoxb-0123456789\n", "secrets: looks like a secret"},
		"webhook":       {head + "a: whsec_0123456789abcdefghijklmn\n", "secrets: looks like a secret"},
		"private key":   {head + "a: -----BEGIN EC PRIVATE KEY\n", "secrets: looks like a secret"},
		"API key":       {head + "API_KEY: 'aaaabbbbccccddddeeee'\n", "secrets: looks like a secret"},
		"address":       {head + "a: https://me:hunter2@example.com\n", "secrets: looks like a secret"},
		"YAML":          {head + "a: [\n", "yaml: is not YAML"},
		"twice":         {head + "a: 1\na: 2\n", "yaml: is not YAML"},
		"dangling file": {head + "run: pipeline/stages/none.sh\n", "references: there is no generated file pipeline/stages/none.sh"},
		"stage":         {head + "run: pipeline/run.sh nothing\n", "references: there is no stage nothing"},
		"header":        {"a: 1\n", "header: the text must contain"},
		"keep":          {head + "# rewardwatch:keep a\n", `keep: the keep marker "a" has no end marker`},
		"unknown value": {head + "{{yaml \"projekt\"}}\n", `the file does not contain the value "projekt"`},
		"raw value":     {head + "{{.File}}\n", "can't evaluate field File"},
		"syntax":        {head + "{{yaml\n", "unclosed action"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "extra.yaml.tmpl"), []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := run(t, "project: cartpole", "project: cartpole\ntemplates: ["+dir+"]")
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want == "":
			if got := artefact(t, w, "extra.yaml"); got != head+"name: \"cartpole\"\n" {
				t.Errorf("%s: %q", name, got)
			}
		case err == nil || !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
