package pipeline

import (
	"errors"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// A fault is reported only at the wrong value or key, which ^ marks.
func TestPlacesOfFaults(t *testing.T) {
	for _, test := range [][2]string{
		{"project: cartpole", "project: ^Cart_Pole"},
		{"project: cartpole\n", "^projekt: cartpole\n"},
		{"owner: control@example.com", "owner: ^[a, b]"},
		{"description: Balances a pole on a cart.", `description: ^"a {{b}}"`},
		{"release: v0.1.0", "release: ^latest"},
		{"make]", "^makes]"},
		{"make]", "make, ^make]"},
		{"ghcr.io/example/cartpole", "^Cartpole"},
		{"image: ghcr.io/example/cartpole", "image: ^cartpole"},
		{"image: ghcr.io/example/cartpole", "image: ghcr.io/example/cartpole\nbase: ^python"},
		{"- numpy==2.4.6", "- ^numpy"},
		{"- numpy==2.4.6", "- numpy==2.4.6\n  - ^numpy==2.4.5"},
		{"- numpy==2.4.6", "- ^{numpy: 2}"},
		{"id: CartPole-v1", "id: ^Cart Pole"},
		{"{id: CartPole-v1, env: lab}", "^{env: lab}"},
		{"{id: CartPole-v1, env: lab}", "{^name: CartPole-v1, env: lab}"},
		{"{id: CartPole-v1, env: lab}", "^CartPole-v1"},
		{"  - {id: CartPole-v1, env: lab}", "  - {id: CartPole-v1, env: lab}\n  - {id: ^CartPole-v1, env: lab}"},
		{"stable-baselines3\n  name", "^stable-baseline3\n  name"},
		{"name: PPO", "name: ^PPOO"},
		{"name: PPO", "name: PPO\n  policy: ^Mlp"},
		{"name: PPO", "name: PPO\n  frame_stack: ^0"},
		{"name: PPO", "name: PPO\n  frame_stack: ^65"},
		{"name: PPO", "name: PPO\n  atari: ^yes please"},
		{"n_steps: 256", "^n_stepz: 256"},
		{"n_steps: 256", "n_steps: ^-1"},
		{"n_steps: 256", "n_steps: ^many"},
		{"n_steps: 256", "^policy: 256"},
		{"n_steps: 256", "^lambda: 256"},
		{"n_steps: 256", `^"a b": 256`},
		{"{n_steps: 256, learning_rate: 3e-4}", "^[1, 2]"},
		{"n_steps: 256", "normalize_advantage: ^yes"},
		{"name: gravity", "name: ^9a"},
		{"low: 9.3, high: 10.3", "low: 9.3, high: ^9"},
		{"low: 9.3", "low: ^a"},
		{"name: length", "name: ^gravity"},
		{`"kafka-1:9092"`, `^"kafka-1:99999"`},
		{`brokers: ["kafka-1:9092"]`, "brokers: [\"kafka-1:9092\"]\n  topic: ^a b"},
		{"steps: 100000", "steps: ^-5"},
		{"steps: 100000", "steps: ^lots"},
		{"cpu: 2", "cpu: ^2.5"},
		{"cpu: 2", "cpu: ^0"},
		{"cpu: 2", "cpu: ^16"},
		{"cpu: 2", "gpu: ^1"},
		{"memory: 4Gi", "memory: ^4GB"},
		{"timeout: 2h", "timeout: ^2 hours"},
		{"timeout: 2h", "timeout: ^9h"},
		{"timeout: 2h", "storage: ^9"},
		{"timeout: 2h", "runner: [^a b]"},
		{"  telemetry: true", "  ^seeds: [1]"},
		{"  telemetry: true", "  seeds: [1, ^1]"},
		{"  telemetry: true", "  seeds: [1, ^-1]"},
		{"  telemetry: true", "  confidence: ^95"},
		{"  telemetry: true", "  episodes: ^0"},
		{"at_least: 300", "at_least: ^many"},
		{"{metric: return, at_least: 300}", "^{metric: return}"},
		{"{metric: return, at_least: 300}", "{metric: return, at_least: 300, at_most: ^2}"},
		{"{metric: return, at_least: 300}", "^{at_least: 300}"},
		{"metric: return", `metric: ^" return"`},
		{"within: 4h", "within: ^4x"},
		{"within: 4h", "within: ^6h"},
		{"within: 4h", "undecided: ^maybe"},
		{"every: 5m", "every: ^5h"},
		{"[python, deploy.py, --to, production]", "^python deploy.py"},
		{"[python, deploy.py, --to, production]", "[python, ^'']"},
		{"[python, deploy.py, --to, production]", "[python, deploy.py]\n  secrets: [^key]"},
		{"[python, deploy.py, --to, production]", "[python, deploy.py]\n  secrets: [KEY, ^KEY]"},
		{"[python, deploy.py, --to, production]", "[python, deploy.py]\n  secrets: [^WORK]"},
		{`"0 3 * * 1"`, `^"0 3 * *"`},
		{`"0 3 * * 1"`, `^"* * * * *"`},
		{"https://rewardwatch.example.com", "^rewardwatch.example.com"},
		{"https://rewardwatch.example.com", "^http://localhost:9464"},
		{"https://rewardwatch.example.com", `^"http://0.0.0.0:9464"`},
		{"https://rewardwatch.example.com", "^https://rewardwatch.example.com/?team=a"},
		{"https://rewardwatch.example.com", `^"https://rewardwatch.example.com/#a"`},
		{"per: 20000 episodes", "per: ^0d"},
		{"per: 20000 episodes", "per: ^0h0m"},
		{"ghcr.io/example/cartpole", "^https://ghcr.io/example/cartpole"},
		{`signals: [return, action, "observation.*"]`, "signals: [return, ^return]"},
		{"service: https://rewardwatch.example.com", "service: https://rewardwatch.example.com\n  baseline: ^10"},
		{"budget: 1", "budget: ^-1"},
		{"per: 20000 episodes", "per: ^often"},
		{"expected: mean return >= 0.95 * baseline over 200 episodes within 7d", "expected: ^good"},
		{"target: github-actions", "target: ^jenkins"},
		{"repository: example/cartpole", "repository: ^cartpole"},
		{"repository: example/cartpole", "ref: ^main\n  repository: example/cartpole"},
		{"approval: true", "approval: ^maybe"},
		{"approval: true", "approval: true\n  signals: [^nothere]"},
		{"project: cartpole", "project: cartpole\nmodel: {url: ^\"http://a.b/v1\", name: m}"},
		{"project: cartpole", "project: cartpole\nmodel: {url: \"https://a.b/v1\", name: m, timeout: ^11m}"},
		{"project: cartpole", "project: cartpole\nmodel: {url: \"https://a.b/v1\", name: m, calls: ^0}"},
		{"project: cartpole", "project: cartpole\ntemplates: [^nowhere]"},
		{"project: cartpole", "project: cartpole\nextends: ^nowhere.yaml"},
		{"project: cartpole", "project: cartpole\n^project: b"},
		{"gate: {within: 4h", "gate: {within: 4h, ^within: 5h"},
		{"targets: [github-actions, gitlab-ci, argo, kubernetes, kubeflow, airflow, make]", "targets: ^github-actions"},
		{"environments:\n  - {id: CartPole-v1, env: lab}\n", "^environments: []\n"},
		{"  command: [python, deploy.py, --undo]", "  ^comand: [python]"},
		{"within: 4h, every: 5m", "skip: true, within: ^4h"},
		{"[python, deploy.py, --to, production]", "[python, ^$WORK/deploy.py]"},
		{"limits:", `^"li mits":`},
		{"  - scipy==1.17.1\n  - stable-baselines3==2.9.2\nenvironments:\n  - {id: CartPole-v1, env: lab}\nalgorithm:\n  library: stable-baselines3\n  name: PPO\n  hyperparameters: {n_steps: 256", "  - scipy==1.17.1\n  - torch==2.15.0\n  - tyro==1.0.17\nenvironments:\n  - {id: CartPole-v1, env: lab}\nalgorithm:\n  library: cleanrl\n  name: PPO\n  hyperparameters: {^num_step: 256"},
		{"project: cartpole", "project: cartpole\nmodel: {timeout: ^1m}"},
		{"at_least: 300", "at_least: 300, ^at_mots: 400"},
		{"stable-baselines3==2.9.2", "stable-baselines3==2.9.2\n  - ^rewardwatch==0.1.0"},
	} {
		text := strings.Replace(exampleWith(t), test[0], test[1], 1)
		before, after, found := strings.Cut(text, "^")
		if !found {
			t.Fatalf("the example has no %q", test[0])
		}
		_, err := runText(t, before+after)
		var faults *yamlfile.Error
		if !errors.As(err, &faults) {
			t.Errorf("%s: %v", test[1], err)
			continue
		}
		line, column := strings.Count(before, "\n")+1, len(before)-strings.LastIndex(before, "\n")
		for _, p := range faults.Problems {
			if p.Line != line || p.Column != column || len(faults.Problems) > 1 {
				t.Errorf("%s is reported at %d:%d: %s", test[1], p.Line-line, p.Column-column, p.Message)
			}
		}
	}
}
