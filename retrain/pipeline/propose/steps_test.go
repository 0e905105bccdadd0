package propose

import (
	"testing"
)

// Steps come from the help of an argument, from products and from constants.
func TestProposedSteps(t *testing.T) {
	const guard = "if __name__ == '__main__':\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"steps by their help": {
			map[string]string{"requirements.txt": "torch\n", "main.py": "p.add_argument('--T-max', type=int, default=int(50e6), metavar='STEPS', help='Number of training steps (4x number of frames)')\np.add_argument('--learn-start', type=int, default=int(20e3), help='Number of steps before starting training')\np.add_argument('--evaluation-interval', type=int, default=100000, help='Number of training steps between evaluations')\n" + guard + "    train()\n"},
			[]string{"steps: 50000000 "},
			nil,
		},
		"steps that the program multiplies": {
			map[string]string{"requirements.txt": "torch\n", "train.py": guard + "    ep_length = 2048 * 10\n    num_cpu = 16  # cores\n    model.learn(\n        total_timesteps=(ep_length) * num_cpu * 1000,\n        callback=x,\n    )\n", "other.py": guard + "    model.learn(total_timesteps=480000)\n"},
			[]string{"steps: 327680000 "},
			nil,
		},
		"steps of a constant": {
			map[string]string{"requirements.txt": "torch\n", "train.py": "D = dict(\n    n_steps        = 1024,\n)\nDEFAULT_TIMESTEPS = 200_000\ndef train(total):\n    model.learn(\n        total_timesteps     = total,\n    )\n" + guard + "    p.add_argument(\n        \"--timesteps\",\n        type=int,\n        default=DEFAULT_TIMESTEPS,\n    )\n    train(p.parse_args().timesteps)\n"},
			[]string{"steps: 200000 "},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// The command on a page determines the number of steps.
func TestProposedStepsOfThePage(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"steps of the page": {
			map[string]string{"requirements.txt": "torch==2.4.0\n", "README.md": "```\npython train.py --agent cql --steps 100000\n```\n", "train.py": "import torch, argparse\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--agent', default='cql')\n    p.add_argument('--steps', type=int, default=300_000, help='Training steps')\n    train(p.parse_args())\n" + guard},
			[]string{"steps: 100000 ", "python \"$OLDPWD/train.py\" --agent cql --steps 100000"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Values in settings files count, except those that the program sets.
func TestProposedStepsOfSettings(t *testing.T) {
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"settings that the program fills in": {
			map[string]string{"requirements.txt": "hydra-core==1.1.0\n", "cfgs/config.yaml": "defaults:\n  - _self_\n  - task@_global_: walk\n\nagent:\n  obs_shape: ??? # later\n", "cfgs/task/walk.yaml": "defaults:\n  - medium\n  - _self_\n\ntask_name: walk\n", "cfgs/task/medium.yaml": "num_train_frames: 3100000\n", "cfgs/task/easy.yaml": "num_train_frames: 1100000\n", "train.py": "import hydra\n\ndef make_agent(spec, cfg):\n    cfg.obs_shape = spec.shape\n    return hydra.utils.instantiate(cfg)\n\n@hydra.main(config_path='cfgs', config_name='config')\ndef main(cfg):\n    train(cfg)\n\nif __name__ == '__main__':\n    main()\n"},
			[]string{`steps: 3100000 # "cfgs/task/medium.yaml"`},
			[]string{"obs_shape"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}
