package propose

import (
	"strings"
	"testing"
)

// The environment and steps are found in settings that hydra composes for the training.
func TestSettingsOfHydra(t *testing.T) {
	const program = "import hydra\nimport torchrl\n@hydra.main(config_path='', config_name='config_walk', version_base='1.1')\ndef main(cfg):\n    train(cfg)" + guard
	for name, test := range map[string]struct {
		files     map[string]string
		want, not []string
	}{
		"a block for the environment": {
			map[string]string{
				"requirements.txt":  "torchrl==0.9.2\nhydra-core\n",
				"ppo/train_walk.py": program,
				"ppo/config_walk.yaml": "# task\nenv:\n  # of Gymnasium\n  name: Walker2d-v5 # here\n  task: \"\"\n  library: gymnasium\ncollector:\n  total_frames: 1_000_000\n  frames_per_batch: 2048\n" +
					"optim: {lr: 3e-4}\n",
				"ppo/config_pong.yaml": "env:\n  env_name: PongNoFrameskip-v4\ncollector:\n  total_frames: 40_000_000\n",
			},
			[]string{`  - {id: "Walker2d-v5"} # "ppo/config_walk.yaml"`, `steps: 1000000 # "ppo/config_walk.yaml"`, "- mujoco=="},
			[]string{"\n  - {id: \"PongNoFrameskip-v4\"}"},
		},
		"a group": {
			map[string]string{
				"train_walk.py":         strings.Replace(program, "config_path=''", "config_path='conf'", 1),
				"conf/config_walk.yaml": "defaults:\n- task: walk\n- override hydra/launcher: none\n- missing\n\ntask: x\n",
				"conf/task/walk.yaml":   "name: Walker2d-v5\nmax_frames: 3e6\n",
				"conf/task/hop.yaml":    "name: Hopper-v5\nmax_frames: 1e6\n",
			},
			[]string{`  - {id: "Walker2d-v5"} # "conf/task/walk.yaml"`, `  # - {id: "Hopper-v5"}`, `steps: 3000000 # "conf/task/walk.yaml"`},
			[]string{"\n  - {id: \"Hopper-v5\"}"},
		},
		"groups in the command": {
			map[string]string{
				"README.md": "`python scripts/train_walk.py agent=ppo env=brax/ant`\n", "scripts/train_walk.py": strings.Replace(program, "config_path=''", "config_path='../configs'", 1) + "torch.save(net, name)\n",
				"configs/config_walk.yaml": "defaults:\n  - env: null\n  - agent: null\ncheckpoint:\n  enable: false\n", "configs/agent/ppo.yaml": "# @package _global_\ntotal_timesteps: 700000\n", "configs/agent/sac.yaml": "total_timesteps: 900000\n",
			},
			[]string{"steps: 700000 # \"configs/agent/ppo.yaml\"", "agent=ppo env=brax/ant checkpoint.enable=true hydra.run.dir="},
			nil,
		},
		"settings that lead out of the repository": {
			map[string]string{
				"train_walk.py": strings.Replace(program, "config_path=''", "config_path='../../etc'", 1),
				"run.py":        "gym.make('Hopper-v5')\n",
			},
			[]string{`  - {id: "Hopper-v5"}`},
			nil,
		},
	} {
		text := proposalOf(t, test.files)
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
		for _, not := range test.not {
			if strings.Contains(text, not) {
				t.Errorf("%s: %q in\n%s", name, not, text)
			}
		}
	}
}
