package pipeline

import (
	"strings"
	"testing"
)

// Mistakes that can only fail later are reported at their place, with one message that says what would be correct.
func TestFilesThatCanOnlyFail(t *testing.T) {
	const (
		deploy = "[python, deploy.py, --to, production]"
		id     = "{id: CartPole-v1, env: lab}"
		train  = "timeout: 2h"
		bound  = "{metric: return, at_least: 300}"
		kwargs = "{n_steps: 256, learning_rate: 3e-4}"
		base   = "project: cartpole"
	)
	for name, test := range map[string]struct {
		replaced []string
		want     string
	}{
		"script without -c":     {[]string{deploy, "[bash, 'make ship && make check']"}, `pipeline.yaml:31:19: deploy.command[1]: must be the file of a script, not "make ship && make check", because bash reads commands only after -c`},
		"script after options":  {[]string{deploy, "[env, A=1, sh, -x, './ship --now']"}, "deploy.command[4]: must be the file of a script"},
		"loop without do":       {[]string{deploy, "[bash, -c, 'for x in a b; ./ship $x; done']"}, "pipeline.yaml:31:23: deploy.command[2]: must be a script that bash can read: `for foo [in words]` must be followed by `do`, at \"for x in a b; ./ship...\""},
		"arrays in sh":          {[]string{deploy, "[sh, -c, 'a=(1 2); ./ship \"$a\"']"}, "pipeline.yaml:31:21: deploy.command[2]: must be a script that sh can read: only bash knows"},
		"Python in a script":    {[]string{deploy, "[sh, -c, './ship && python -c \"print(1\"']"}, "pipeline.yaml:31:21: deploy.command[2]: must be valid Python: ( is not closed"},
		"Python 2":              {[]string{deploy, "[python, -c, 'print 1']"}, "pipeline.yaml:31:25: deploy.command[2]: must be valid Python: no operator is between print and 1"},
		"words after a script":  {[]string{deploy, "[sh, -c, ./ship, --now]"}, `deploy.command[3]: must be part of the script, not "--now"`},
		"variable of a script":  {[]string{deploy, "[sh, -c, './ship \"$1\"', sh, $VERSION]"}, "deploy.command[4]: must not contain $VERSION"},
		"other variable":        {[]string{deploy, "[./ship, --user=$SHIP_USER]\n  secrets: [SHIP_USER]"}, "deploy.command[1]: must not contain $SHIP_USER, because no shell expands it in a list"},
		"home directory":        {[]string{deploy, "[./ship, \"${HOME}/models\"]"}, "deploy.command[1]: must not contain ${HOME}"},
		"variable over there":   {[]string{deploy, "[ssh, robots, ./ship, $VERSION]"}, "deploy.command[3]: must not contain $VERSION, which the other machine does not have"},
		"misspelled variable":   {[]string{deploy, "[sh, -c, './ship \"$VERISON\"']"}, "deploy.command[2]: must not contain $VERISON, which nothing sets (did you mean $VERSION?)"},
		"hosted memory":         {[]string{"memory: 4Gi", "memory: 17Gi"}, "pipeline.yaml:24:43: training.memory: must be at most 16Gi on GitHub-hosted runners"},
		"label of hosted":       {[]string{train, "timeout: 9h, runner: [ubuntu-24.04]"}, "training.timeout: must be at most 6h on GitHub-hosted runners"},
		"hosted processors":     {[]string{"cpu: 2", "cpu: 8", train, "timeout: 2h, runner: [Ubuntu-Latest]"}, "training.cpu: must be at most 4 on GitHub-hosted runners"},
		"empty episodes":        {[]string{bound, "{metric: episode_length, at_most: 0.5}"}, "evaluation.constraints[0].at_most: must be at least 1, because every episode has a step"},
		"longer than it lasts":  {[]string{bound, "{metric: episode_length, at_least: 501}"}, "evaluation.constraints[0].at_least: must be at most 500, the longest episode of CartPole-v1"},
		"never so low":          {[]string{bound, "{metric: return, at_most: 0}"}, "evaluation.constraints[0].at_most: must be at least 1, the lowest return of CartPole-v1"},
		"share above 1":         {[]string{bound, "{metric: TimeLimit.truncated, at_least: 90}"}, "evaluation.constraints[0].at_least: must be at most 1"},
		"old Python":            {[]string{base, base + "\nbase: python:2.7.18-slim"}, "pipeline.yaml:3:7: base: must have Python 3.7 or later, not 2.7"},
		"other language":        {[]string{base, base + "\nbase: golang:1.26.1-bookworm"}, "base: must be an image that contains Python, such as"},
		"other system":          {[]string{base, base + "\nbase: mcr.microsoft.com/windows/nanoserver:ltsc2025"}, "base: must be a Linux image"},
		"pin before Python":     {[]string{"numpy==2.4.6", "numpy==1.20.3"}, "requirements[1]: must be at least 1.23.2 with Python 3.11, because version 1.20.3 has no files for it; or set base: python:3.9."},
		"imitated package":      {[]string{"  - numpy==2.4.6\n", "", "scipy==1.17.1", "scipy==1.17.1\n  - numyp==2.4.6"}, "must be numpy, not numyp, which is a different package"},
		"word of Python":        {[]string{"name: gravity", "name: yield"}, "simulation[0].name: must not be yield, which is a Python keyword"},
		"own object":            {[]string{"name: gravity", "name: self"}, "simulation[0].name: must not be self"},
		"one group of two":      {[]string{id, id + "\n  - {id: CartPole-v0, env: lab}", "at_least: 300", "at_least: 100"}, "pipeline.yaml:15:28: environments[1].env: must differ from that of another environment"},
		"nearly an environment": {[]string{id, "{id: CartPloe-v1}"}, "environments[0].id: must be CartPole-v1, not CartPloe-v1"},
		"without its version":   {[]string{id, "{id: CartPole}"}, "environments[0].id: must include a version, as in CartPole-v1"},
		"network of a policy":   {[]string{kwargs, "{policy_kwargs: {n_critics: 2}}"}, "algorithm.hyperparameters.policy_kwargs.n_critics: is not an argument of the policies of PPO"},
		"size of a buffer":      {append([]string{"name: PPO", "name: DQN", kwargs, "{replay_buffer_config: {capacity: 0}}"}, rllibOf...), "replay_buffer_config.capacity: must be a whole number of at least 1, not 0"},
		"webhook":               {[]string{deploy, "[curl, -d, done, 'https://hooks.slack.com/services/T01ABCDEF/B01ABCDEF/aBcDeFgHiJkLmNoPqRsTuVwX']"}, "deploy.command[3]: looks like a secret"},
		"password of MySQL":     {[]string{deploy, "[mysql, -u, ship, -pWinter2027]"}, "deploy.command[3]: looks like a secret"},
		"page of GitHub":        {[]string{"  approval: true", "  url: https://tea.ghe.com"}, "trigger.url: must be the URL of the API, https://api.tea.ghe.com"},
		"API of Airflow":        {[]string{trigger, "trigger: {target: airflow, url: \"https://flow.example.com/api/v1/\", token_file: /t}\n"}, "trigger.url: must not end with /api/v1, which is added automatically"},
		"clone of a repository": {[]string{"repository: example/cartpole", "repository: example/cartpole.git"}, "trigger.repository: must be without .git"},
		"every minute":          {[]string{`"0 3 * * 1"`, `"* 2-4 * * *"`}, "schedule: must leave enough time for training and evaluation"},
		"memory of a number":    {[]string{"memory: 4Gi", "memory: 4"}, "training.memory: must be a size such as 4Gi, not the number 4"},
		"time of a number":      {[]string{train, "timeout: 120"}, "training.timeout: must be a duration such as 90m, 6h or 2d, not the number 120"},
		"release of a number":   {[]string{"release: v0.1.0", "release: 0.1"}, "release: must be a tag such as v0.1.0, or a commit, not the number 0.1"},
		"unquoted stars":        {[]string{`"0 3 * * 1"`, "* 3 * * 1"}, "schedule: unknown anchor \"3 * * 1\": put a text that begins with * in quotes"},
		"unknown target":        {[]string{"github-actions, gitlab-ci, argo, kubernetes, kubeflow, airflow, make", "github-acitons"}, "targets[0]: must be one of"},
		"no algorithm":          {[]string{"  name: PPO\n", ""}, "algorithm.name: must be one of"},
		"no project":            {[]string{base + "\n", ""}, "project: must be at most 40"},
	} {
		_, err := run(t, test.replaced...)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Count(err.Error(), "pipeline.yaml:") != 1 || strings.HasSuffix(err.Error(), "put it in quotes") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// Values that resemble these mistakes but work are accepted.
func TestFilesThatMayWork(t *testing.T) {
	const deploy, id, base = "[python, deploy.py, --to, production]", "{id: CartPole-v1, env: lab}", "project: cartpole"
	for name, replaced := range map[string][]string{
		"arrays in bash":        {deploy, "[bash, -c, 'a=(1 2); ./ship \"${a[0]}\"']"},
		"other sh":              {deploy, "[sh, -c, '[[ -f a ]] && ./ship &> log']", base, base + "\nbase: python:3.11.15-alpine3.22"},
		"program of Python":     {deploy, "[python, -c, 'import a; a.b(\"c\")']"},
		"file of a script":      {deploy, "[bash, -euo, pipefail, ./tools of ours/ship.sh]"},
		"arguments of a script": {deploy, "[sh, -c, './ship \"$@\"', sh, --now]"},
		"here and there":        {deploy, "[sh, -c, 'ssh robots ./ship \"$VERSION\"']"},
		"own variable":          {deploy, "[sh, -c, 'VERISON=1; ./ship \"$VERISON\"']"},
		"variable of elsewhere": {deploy, "[sh, -c, './ship \"$ROBOT_HOST\" \"$HOME\"']"},
		"dollars":               {deploy, "[./ship, '^a$', 'cost $9', 'of $(VERSION)', 'a$b']"},
		"shell as an argument":  {deploy, "[./ship, bash, a long name]"},
		"variable sent along":   {deploy, "[ssh, -o, SendEnv=VERSION, robots, 'ship $VERSION']"},
		"template of variables": {deploy, "[envsubst, $VERSION]"},
		"variable over there":   {deploy, "[ssh, robots, $HOME/ship.sh]"},
		"variable of a program": {deploy, "[./ship, '--lr=${lr}', $ENV]"},
		"other user":            {deploy, "[su, ship, -c, './ship $VERSION']"},
		"larger machines":       {"memory: 4Gi, timeout: 2h", "memory: 24Gi, timeout: 9h, runner: [ubuntu-latest-8-cores]"},
		"all that a host has":   {"memory: 4Gi, timeout: 2h", "memory: 16Gi, timeout: 5h, runner: [ubuntu-latest]"},
		"API of Enterprise":     {"  approval: true", "  url: https://git.example.com/api/v3"},
		"API at a root":         {"  approval: true", "  url: https://gh.internal:8443/"},
		"label of Enterprise":   {"  approval: true", "  url: https://git.example.com/api/v3", "memory: 4Gi, timeout: 2h", "memory: 24Gi, timeout: 9h, runner: [ubuntu-22.04]"},
		"later Python":          {base, base + "\nbase: python:3.15.0-slim-bookworm"},
		"port of a registry":    {base, base + "\nbase: registry:5000/acme/python-train:3.11.15"},
		"API of a tenant":       {"  approval: true", "  url: https://api.tea.ghe.com"},
		"same world elsewhere":  {id, id + "\n  - {id: CartPole-v1, env: field}"},
		"own world":             {id, "{id: \"world:CartPloe-v1\"}"},
		"own image of Python":   {base, base + "\nbase: registry.example.com/ml/python:3.13.1-slim"},
		"image of CUDA":         {base, base + "\nbase: nvidia/cuda:12.6.3-cudnn-runtime-ubuntu24.04"},
		"image of a team":       {base, base + "\nbase: registry.example.com/node:22.1.0"},
		"policy of PPO":         {"{n_steps: 256, learning_rate: 3e-4}", "{policy_kwargs: {net_arch: [8], log_std_init: -1, ortho_init: false}}"},
		"option of MySQL":       {deploy, "[mysql, -P, \"3306\", -u, ship, --protocol=tcp]"},
		"port of MySQL":         {deploy, "[ssh, robots, docker, run, --name, mysql, '-p3306:3306', ship]"},
		"limits of an episode":  {"{metric: return, at_least: 300}", "{metric: episode_length, at_least: 500, at_most: 500}"},
	} {
		if _, err := run(t, replaced...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An empty file has a single fault.
func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "\n", "# project: a\n", "---\n"} {
		if _, err := runText(t, text); err == nil || !strings.HasSuffix(err.Error(), "pipeline.yaml:1:1: is empty: rewardwatch pipeline init proposes a first version") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A secret in the list of names is not repeated in the message.
func TestCredentialsInsteadOfNamesAreNotShown(t *testing.T) {
	_, err := run(t, "production]\n", "production]\n  secrets: [Blue-Whale-77]\n")
	if err == nil || !strings.Contains(err.Error(), "deploy.secrets[0]: must be a name of capital letters") || strings.Contains(err.Error(), "Whale") {
		t.Error(err)
	}
}
