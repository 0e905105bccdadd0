package propose

import (
	"strings"
	"testing"
	"testing/fstest"
)

// The proposal has the policy and preprocessing of the training program.
func TestProposedPolicy(t *testing.T) {
	const start, guard = "import gymnasium as gym\nfrom stable_baselines3 import PPO\n", "\nmodel.learn(1_000_000)\nif __name__ == '__main__':\n    pass\n"
	for name, test := range map[string]struct {
		files     map[string]string
		want, not []string
	}{
		"games": {
			map[string]string{
				"requirements.txt": "stable-baselines3[extra]==2.9.2\n",
				"train.py":         start + "env = make_atari_env('PongNoFrameskip-v4', n_envs=8)\nenv = VecFrameStack(env, n_stack=4)\nmodel = PPO('CnnPolicy', env)" + guard,
				"enjoy.py":         start + "model = PPO.load('x')\nenv = VecFrameStack(env, n_stack=2)\nif __name__ == '__main__':\n    pass\n",
			},
			[]string{`{id: "PongNoFrameskip-v4"}`, "  policy: CnnPolicy\n  frame_stack: 4\n  atari: true\n", "- stable-baselines3==2.9.2", "- ale-py==", "- opencv-python-headless=="},
			nil,
		},
		"images of a module": {
			map[string]string{
				"train.py":      start + "from lib.worlds import make\nmodel = PPO('CnnPolicy', make('CarRacing-v3'))" + guard,
				"lib/worlds.py": "import gymnasium as gym\ndef make(id):\n    return VecFrameStack(DummyVecEnv([lambda: gym.make(id)]), 3)\n",
			},
			[]string{"  policy: CnnPolicy\n  frame_stack: 3\n"},
			[]string{"atari"},
		},
		"settings": {
			map[string]string{
				"train.py":        start + "model = PPO(cfg.policy, gym.make('CarRacing-v3'))" + guard,
				"conf/agent.yaml": "policy: CnnPolicy\n",
			},
			[]string{"  policy: CnnPolicy\n"},
			[]string{"frame_stack"},
		},
		"settings of many": {
			map[string]string{
				"train.py":         start + "model = PPO(cfg.policy, gym.make('CartPole-v1'))" + guard,
				"conf/agent.yaml":  "policy: CnnPolicy\nframe_stack: 4\n",
				"conf/vector.yaml": "policy: MlpPolicy\nframe_stack: 2\n",
			},
			[]string{"name: PPO"},
			[]string{"policy:", "frame_stack"},
		},
		"a class of its own in a notebook": {
			map[string]string{"train.ipynb": `{"cells": [{"cell_type": "code", "source": "import gymnasium as gym\nfrom stable_baselines3 import PPO\nclass GraphPolicy(ActorCriticPolicy):\n    pass\nmodel = PPO(GraphPolicy, gym.make('CartPole-v1'))\nmodel.learn(30000)"}]}`},
			[]string{"  # policy: GraphPolicy is a class defined in the program: set it between the markers in pipeline/train.py\n"},
			nil,
		},
		"a notebook": {
			map[string]string{
				"requirements.txt": "gymnasium==1.0.0\nstable-baselines3==2.4.0\nopencv-python\n",
				"race.ipynb": `{"nbformat": 4, "cells": [{"cell_type": "markdown", "source": "PPO('MlpPolicy', gym.make('Wrong-v1'))"},
					{"cell_type": "code", "source": ["%pip install x\n", "import gymnasium as gym\n", "from stable_baselines3 import SAC"]},
					{"cell_type": "code", "source": "model = SAC('CnnPolicy', gym.make('CarRacing-v3'))\nmodel.learn(total_timesteps=250_000)"}]}`,
				"broken.ipynb": `{"cells": [{"cell_type": "code", "source": 7}, 3]}`,
			},
			[]string{"name: SAC", "  policy: CnnPolicy\n", `{id: "CarRacing-v3"} # "race.ipynb"`, "steps: 250000", "- opencv-python-headless==", "- gymnasium==1.0.0\n"},
			[]string{"Wrong", "CHANGE-ME"},
		},
		"offline": {
			map[string]string{
				"requirements.txt": "d3rlpy==2.6.0\n",
				"train_cql.py":     "import d3rlpy\ndef main():\n    p.add_argument('--out', default='cql.d3')\n    cql.fit(dataset)\n    cql.save(a.out)\nif __name__ == '__main__':\n    main()\n",
				"ope_fqe.py":       "import d3rlpy\ndef main():\n    p.add_argument('--model', required=True)\n    cql = d3rlpy.load_learnable(a.model)\n    fqe = d3rlpy.ope.FQE(algo=cql)\nif __name__ == '__main__':\n    main()\n",
			},
			[]string{"ope_fqe.py --model", "train_cql.py --out"},
			[]string{"CHANGE-ME"},
		},
		"dictionaries": {
			map[string]string{"train.py": start + "model = PPO('MultiInputPolicy', gym.make('FetchReach-v4'))" + guard},
			[]string{"  policy: MultiInputPolicy\n"},
			nil,
		},
	} {
		repository := fstest.MapFS{}
		for file, text := range test.files {
			repository[file] = &fstest.MapFile{Data: []byte(text)}
		}
		p, err := Repository("x", repository)
		if err != nil {
			t.Fatal(err)
		}
		text, err := p.Text()
		if err != nil {
			t.Fatal(err)
		}
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
		if _, err := runText(t, strings.Replace(text, "targets: [make]", "targets: [make]\nrelease: v0.1.0", 1)); err != nil {
			t.Errorf("%s: the proposed file is not valid: %v\n%s", name, err, text)
		}
	}
}
