package pipeline

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// inPython runs a program next to generated scripts, with mocks for the modules of the libraries.
func inPython(t *testing.T, program string, replaced ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := Write(newFiles(mustRun(t, replaced...).Artefacts), dir); err != nil {
		t.Fatal(err)
	}
	const mocks = "import sys\nfrom unittest import mock\nfor name in ('gymnasium', 'numpy', 'scipy', 'scipy.stats', 'stable_baselines3', 'rewardwatch'):\n" +
		"    sys.modules[name] = mock.MagicMock()\nimport gymnasium\n" +
		"class Plain:\n    pass\nfor kind in ('Box', 'Dict', 'Tuple', 'Discrete', 'MultiBinary', 'MultiDiscrete'):\n    setattr(gymnasium.spaces, kind, type(kind, (), {}))\n" +
		"gymnasium.ObservationWrapper = gymnasium.Wrapper = Plain\n"
	cmd := exec.Command("python3", "-c", mocks+program)
	cmd.Dir = filepath.Join(dir, "pipeline")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+cmd.Dir, "WORK="+dir, "VERSION=v1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out) + err.Error()
	}
	return strings.TrimSpace(string(out))
}

// Environments use a Discrete action as an index or key, so it must not be a zero-dimensional array. Observations that
// the networks do not accept are flattened, as in the training.
func TestAgentActsInEachSpace(t *testing.T) {
	const program = `
import pathlib
import stable_baselines3
import agent
import world
model = stable_baselines3.PPO.load.return_value
parts = type("Pair", (gymnasium.spaces.Tuple, list), {})([gymnasium.spaces.Discrete()])
for space in (gymnasium.spaces.Discrete(), parts):
    gymnasium.make.return_value.observation_space = space
    act = agent.load(pathlib.Path("."))
    for ndim in (0, 1):
        action = mock.MagicMock(ndim=ndim)
        action.item.return_value = 3
        model.predict.return_value = (action, None)
        print(act("seen") if ndim == 0 else act("seen") is action, model.predict.call_args.args[0] == "seen")
`
	if got, want := inPython(t, program), "3 True\nTrue True\n3 False\nTrue False"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Networks process the numbers of a dictionary but not its texts, such as the mission of MiniGrid.
func TestTextsOfObservationsAreLeftOut(t *testing.T) {
	const program = `
import world
class Dict(gymnasium.spaces.Dict, dict):
    pass
class Wrapper:
    def __init__(self, environment):
        self.env = environment
world.Numeric.__bases__ = (Wrapper,)
gymnasium.spaces.Dict = Dict
def made(space):
    gymnasium.make.return_value.observation_space = space
    try:
        return world.make("Grid-v0", varied=False)
    except TypeError as error:
        return str(error)
box, text = gymnasium.spaces.Box(), object()
grid = made(Dict(image=box, mission=text, nested=Dict(note=text), other=Dict(speed=box)))
print(sorted(grid.observation_space), sorted(grid.observation({"image": 1, "mission": "go", "nested": {}, "other": 2})))
print(made(text))
print(made(Dict(mission=text)) == made(text))
print(made(box) is gymnasium.make.return_value)
`
	want := "['image', 'other'] ['image', 'other']\nthe observations of Grid-v0 are not numbers: define features above, or wrap the environment\nTrue\nTrue"
	if got := inPython(t, program); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	dictionaries := "    gymnasium.spaces.Box,\n    gymnasium.spaces.Dict,\n"
	for policy, taken := range map[string]bool{"MlpPolicy": false, "MultiInputPolicy": true} {
		w := mustRun(t, "id: CartPole-v1", "id: \"lab:Grid-v0\"", "name: PPO\n", "name: PPO\n  policy: "+policy+"\n")
		if strings.Contains(artefact(t, w, "pipeline/world.py"), dictionaries) != taken {
			t.Errorf("%s takes dictionaries: %v", policy, !taken)
		}
	}
}

// An agent has only one network, so all environments must have the same spaces.
func TestTrainingRefusesOtherSpaces(t *testing.T) {
	const program = `
import world
def box(*shape):
    space = gymnasium.spaces.Box()
    space.shape, space.dtype = shape, "float32"
    return space
def same(*observed):
    made = iter([mock.MagicMock(observation_space=o, action_space=a) for o, a in observed])
    gymnasium.make.side_effect = lambda id: next(made)
    try:
        world.check()
        return True
    except TypeError as error:
        return str(error).split(":")[0]
print(same((box(4), 2), (box(4), 2)))
print(same((box(4), 2), (box(3), 2)))
print(same((box(4), 2), (box(4), 6)))
`
	want := "True\nOther-v1 has different spaces from Cart-v1\nOther-v1 has different spaces from Cart-v1"
	if got := inPython(t, program, "environments:\n", "environments:\n  - id: Cart-v1\n  - id: Other-v1\n", "  - {id: CartPole-v1, env: lab}\n", ""); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for library, replaced := range map[string][]string{"Stable-Baselines3": nil, "CleanRL": cleanRL, "RLlib": rllib} {
		if !strings.Contains(artefact(t, mustRun(t, replaced...), "pipeline/train.py"), "    world.check()\n") {
			t.Errorf("the training with %s does not check the spaces", library)
		}
	}
}

// The training of CleanRL imports its networks from agent.py, even if a command replaces the generated evaluation.
func TestNetworksAreThereForTheTraining(t *testing.T) {
	w := mustRun(t, append([]string{"evaluation:\n  telemetry: true\n  constraints:\n    - {metric: return, at_least: 300}\n", "evaluation:\n  command: [python, test.py]\n"}, cleanRL...)...)
	if !strings.Contains(artefact(t, w, "pipeline/train.py"), "from agent import Agent") || artefact(t, w, "pipeline/agent.py") == "" {
		t.Error("the training lacks agent.py")
	}
}

// A request without an incident has no drifted data, which only retrainings for an incident use. If a command always
// reads the data, the run ends at once.
func TestExportOfARequestWithoutAnIncident(t *testing.T) {
	stage := staged(t, "", "data:\n", "data:\n  export: true\n")
	for _, test := range []struct {
		exported string
		want     int
		failed   bool
	}{{"0", 0, false}, {"3", 0, false}, {"2", 2, true}} {
		code, calls := stage("export", "REQUEST=rr_1", "EXPORTED="+test.exported)
		if code != test.want || strings.Contains(calls, "retrain status rr_1 failed") != test.failed {
			t.Errorf("export ends with %s: exit code %d, want %d\n%s", test.exported, code, test.want, calls)
		}
	}
	stage = staged(t, "", "data:\n", "data:\n  export: true\n", "deploy.py, --to, production]", "deploy.py, --data, /work/experience.parquet]")
	code, calls := stage("export", "REQUEST=rr_1", "EXPORTED=3")
	if code != 1 || !strings.Contains(calls, "retrain status rr_1 failed") {
		t.Errorf("a command reads the data that the export lacks: exit code %d\n%s", code, calls)
	}
}
