package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A secret is reported at its place, and no message contains it.
func TestSecretsInPlainText(t *testing.T) {
	for name, test := range map[string]struct{ old, now, want string }{
		"hyperparameter":   {"n_steps: 256", `n_steps: 256, tensorboard_log: "https://me:hunter2@example.com"`, "pipeline.yaml:18:52: algorithm.hyperparameters.tensorboard_log: looks like a secret"},
		"nested":           {"n_steps: 256", `n_steps: 256, policy_kwargs: {password: hunter2}`, "pipeline.yaml:18:61: algorithm.hyperparameters.policy_kwargs.password: looks like a secret"},
		"flag":             {"[python, deploy.py, --to, production]", "[python, deploy.py, --password=hunter2]", "pipeline.yaml:31:32: deploy.command[2]: looks like a secret"},
		"flag before":      {"[python, deploy.py, --to, production]", "[python, deploy.py, --password, hunter2]", "deploy.command[3]: looks like a secret"},
		"variable":         {"[python, deploy.py, --to, production]", "[sh, -c, 'PASSWORD=hunter2 ./deploy']", "deploy.command[2]: looks like a secret"},
		"in URL with port": {"https://rewardwatch.example.com", "https://me:hunter2@rewardwatch.example.com:99999", "monitoring.service: looks like a secret"},
		"owner":            {"owner: control@example.com", "owner: hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "owner: looks like a secret"},
	} {
		_, err := run(t, test.old, test.now)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "train.py") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestSecretsBetweenKeepMarks(t *testing.T) {
	w, dir := mustRun(t), t.TempDir()
	if changes, err := Changes(w, dir); err != nil || Write(changes, dir) != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pipeline/train.py")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(text), "rewardwatch:end")
	if !found {
		t.Fatal("there are no marks")
	}
	start := strings.LastIndex(before, "\n") + 1
	if err := os.WriteFile(file, []byte(before[:start]+"TOKEN = \"sk-proj-0123456789abcdefghij\"\n"+before[start:]+"rewardwatch:end"+after), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Changes(w, dir)
	if err == nil || !strings.HasPrefix(err.Error(), file+":") || !strings.Contains(err.Error(), ":1: looks like a secret") || strings.HasPrefix(err.Error(), file+":1:") {
		t.Error(err)
	}
}

// A mistake in a template is reported at its line. No template can write files that Git executes.
func TestPlacesOfTemplates(t *testing.T) {
	for name, test := range map[string]struct{ file, text, want string }{
		"syntax":  {"deep/extra.yaml.tmpl", "# a\n# b\n{{yaml", "deep/extra.yaml.tmpl:3:1: unclosed action"},
		"value":   {"extra.yaml.tmpl", "# a\n{{yaml \"projekt\"}}", "extra.yaml.tmpl:2:1: executing"},
		"Git":     {".git/config.tmpl", "# " + header + "\n", ".git/config.tmpl:1:1: must not generate files in .git"},
		"Git too": {"a/.GIT/hooks/pre-commit.tmpl", "# " + header + "\n", "pre-commit.tmpl:1:1: must not generate files in .git"},
		"twice":   {"pipeline/train.py.tmpl", "# " + header + "\n", "pipeline/train.py.tmpl:1:1: generates pipeline/train.py, which"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, test.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := run(t, "project: cartpole", "project: cartpole\ntemplates: ["+dir+"]"); err == nil || !strings.HasPrefix(err.Error(), dir) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// A fault in the output of a team's own template names the template, where it must be corrected.
func TestFaultsOfTemplatesNameThem(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "extra.yaml.tmpl"), []byte("# "+header+"\na: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "project: cartpole", "project: cartpole\ntemplates: ["+dir+"]"); err == nil || !strings.Contains(err.Error(), "extra.yaml:") || !strings.Contains(err.Error(), "(generated from "+filepath.Join(dir, "extra.yaml.tmpl")+")") {
		t.Error(err)
	}
}

// Misspelled hyperparameters are reported. Otherwise, the training would fail only after the image is built.
func TestArgumentsThatTheClassDoesNotTake(t *testing.T) {
	for name, test := range map[string]struct {
		replaced []string
		want     string
	}{
		"misspelled":          {[]string{"n_steps: 256", "n_step: 256"}, "pipeline.yaml:18:21: algorithm.hyperparameters.n_step: is not an argument of PPO (did you mean \"n_steps\"?)"},
		"unknown":             {[]string{"n_steps: 256", "zzz: 256"}, "algorithm.hyperparameters.zzz: is not an argument of PPO in Stable-Baselines3 2.0 to 2.9"},
		"of RLlib":            {append([]string{"n_steps: 256, learning_rate: 3e-4", "lr: 3e-4, num_epoch: 4"}, rllibOf...), "hyperparameters.num_epoch: is not an argument of PPO (did you mean \"num_epochs\"?)"},
		"of a newer version":  {[]string{"n_steps: 256", "zzz: 256", "stable-baselines3==2.9.2", "stable-baselines3==2.10.0"}, ""},
		"in their own script": {[]string{"n_steps: 256", "zzz: 256", "training: {steps: 100000,", "training: {command: [python, a.py],", "simulation:\n  - {name: gravity, low: 9.3, high: 10.3}\n  - {name: length, low: 0.45, high: 0.55}\n", ""}, "pipeline.yaml:18:20: algorithm.hyperparameters: has no effect with training.command"},
	} {
		if _, err := run(t, test.replaced...); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
