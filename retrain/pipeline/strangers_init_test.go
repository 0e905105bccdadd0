package pipeline

import (
	"strings"
	"testing"
)

// What was wrong in the proposals for repositories of the fifth trial.
func TestProposalsForRepositoriesOfStrangers(t *testing.T) {
	const train = "import gym\nimport torch\nimport argparse\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    ARGS\n    train(p.parse_args())\n"
	with := func(args, more string) string { return strings.Replace(train, "ARGS", args, 1) + more }
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"the framework of an image": {
			map[string]string{"Dockerfile": "FROM pytorch/pytorch:1.5.1-cuda10.1-cudnn7-devel\nRUN pip install gym-super-mario-bros==7.3.2\n", "train.py": with("pass", "from nes_py.wrappers import JoypadSpace\nstate, reward, done, info = env.step(action)\n")},
			[]string{"base: python:3.8.", "- torch==1.5.1\n", "- nes-py==8.2.1 ", "- gym==0.25.2 # train.py calls what later versions do not have\n"},
			nil,
		},
		"an id that the program composes": {
			map[string]string{"requirements.txt": "gym\n", "train.py": with("pass", "env = gym.make(\"SuperMarioBros-{}-{}-v0\".format(1, 2))\nb = gym.make(\"Level-%d-v0\" % 3)\n")},
			[]string{"no id of Gymnasium was found"},
			[]string{"{}", "%d"},
		},
		"the model before the log": {
			map[string]string{"requirements.txt": "torch\n", "train.py": with("p.add_argument('--log_path', default='tb')\n    p.add_argument('--saved_path', default='trained_models')", ""), "test.py": with("p.add_argument('--saved_path', default='trained_models')\n    p.add_argument('--output_path', default='output')", "evaluate()\n")},
			[]string{`python train.py --saved_path "$WORK/model"`, `python test.py --saved_path "$WORK/model"`},
			[]string{`--log_path "$WORK`},
		},
		"a package from an address": {
			map[string]string{"setup.py": "setup(name='x', install_requires=['numpy >= 1.20', 'd4rl @ git+https://github.com/a/d4rl@master#egg=d4rl'])\n", "train.py": with("pass", "")},
			[]string{"# - d4rl # setup.py names no version"},
			[]string{"# - d #"},
		},
		"packages that were built together": {
			map[string]string{"setup.py": "setup(name='x', python_requires='==3.8.*', install_requires=['jax >= 0.2', 'jaxlib >= 0.1.67', 'flax >= 0.3.4', 'optax >= 0.0.6'])\n", "train.py": with("pass", "")},
			[]string{"- jax==0.4.13 ", "- jaxlib==0.4.13 ", "- flax==0.7.2 ", "- optax==0.1.8 "},
			nil,
		},
		"tensorboard of torch": {
			map[string]string{"requirements.txt": "torch\ntb-nightly\n", "train.py": with("pass", "from torch.utils.tensorboard import SummaryWriter\n")},
			[]string{"- tensorboard==", "# train.py imports it with torch\n"},
			nil,
		},
		"settings that the program fills in": {
			map[string]string{"requirements.txt": "hydra-core==1.1.0\n", "cfgs/config.yaml": "defaults:\n  - _self_\n  - task@_global_: walk\n\nagent:\n  obs_shape: ??? # later\n", "cfgs/task/walk.yaml": "defaults:\n  - medium\n  - _self_\n\ntask_name: walk\n", "cfgs/task/medium.yaml": "num_train_frames: 3100000\n", "cfgs/task/easy.yaml": "num_train_frames: 1100000\n", "train.py": "import hydra\n\ndef make_agent(spec, cfg):\n    cfg.obs_shape = spec.shape\n    return hydra.utils.instantiate(cfg)\n\n@hydra.main(config_path='cfgs', config_name='config')\ndef main(cfg):\n    train(cfg)\n\nif __name__ == '__main__':\n    main()\n"},
			[]string{`steps: 3100000 # "cfgs/task/medium.yaml"`},
			[]string{"obs_shape"},
		},
		"the page beside the program": {
			map[string]string{"requirements.txt": "gym\n", "README.md": "# Troubleshooting\n```\npython train.py --env_name=cheetah-run --save_video\n```\n", "examples/README.md": "```\npython train.py --env_name=HalfCheetah-v2\n```\n", "examples/train.py": with("p.add_argument('--env_name', default='HalfCheetah-v2')\n    p.add_argument('--save_video', action='store_true')", "")},
			[]string{"--env_name=HalfCheetah-v2"},
			[]string{"cheetah-run", "save_video"},
		},
		"files that a module reads": {
			map[string]string{"requirements.txt": "gymnasium\n", "Gates.txt": "1\n", "car.py": "def load():\n    return open('Gates.txt').read()\n", "train.py": "import torch\nfrom car import load\nload()\nmodel.learn(total_timesteps=10000)\n"},
			[]string{"command: [python, \"train.py\"]"},
			[]string{"cd \"$WORK\" && exec python \"$OLDPWD/train.py\""},
		},
	} {
		text := proposalOf(t, test.files)
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
		for _, never := range test.never {
			if strings.Contains(text, never) {
				t.Errorf("%s: %q in\n%s", name, never, text)
			}
		}
	}
}
