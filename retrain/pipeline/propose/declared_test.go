package propose

import (
	"strings"
	"testing"
	"testing/fstest"
)

// Proposals for repositories that resemble well-known projects need only few edits, for what the projects' own scripts
// omit.
func TestProposalsForKnownShapes(t *testing.T) {
	for name, test := range map[string]struct {
		files   map[string]string
		want    []string
		not     string
		changes int
	}{
		"a zoo": {
			map[string]string{
				"setup.py":             "setup(name='zoo', install_requires=[\n    \"sb3_contrib>=2.7.0,<3.0\",  # more\n    'gymnasium~=1.2',\n    \"tqdm\",\n    \"odd-thing\",\n],\n  extras_require={'tests': ['pytest']})\n",
				"train.py":             "from zoo.train import train\nif __name__ == \"__main__\":\n    train()\n",
				"zoo/__init__.py":      "",
				"zoo/train.py":         "from zoo.utils import ALGOS\nparser.add_argument(\"--algo\", help=\"RL Algorithm\", default=\"ppo\", type=str)\nparser.add_argument(\"--env\", type=str, default=\"CartPole-v1\", help=\"environment ID\")\n",
				"zoo/utils.py":         "from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3\nALGOS = {'a2c': A2C}\n",
				"zoo/enjoy.py":         "parser.add_argument('-n', '--n-timesteps', default=1000)\nif __name__ == '__main__':\n    pass\n",
				"hyperparams/ppo.yml":  "CartPole-v1:\n  n_envs: 8\n  n_timesteps: !!float 1e5\n\nLunarLander-v3:\n  n_envs: 16\n",
				"tests/test_enjoy.py":  "def test():\n    gym.make('Wrong-v0')\n",
				"requirements-dev.txt": "pytest==8.0.0\n",
			},
			[]string{"- sb3_contrib==2.9.2 # setup.py requires >=2.7.0,<3.0", "- gymnasium==1.2.2", "  # - odd-thing #", "- tqdm==", "- stable-baselines3==2.9.2 # required by the generated scripts", `  - {id: "CartPole-v1"}`, "name: PPO"},
			"pytest", 0,
		},
		"single files": {
			map[string]string{
				"pyproject.toml":              "[project]\nname = \"single\"\ndescription = \"Single files.\"\nrequires-python = \">=3.10\"\ndependencies = [\n    \"gymnasium==0.29.1\",\n    \"torch>=1.12\",\n    \"wandb>=0.13.11\",\n    \"tyro\",\n]\n\n[project.optional-dependencies]\natari = [\"ale-py==0.8.1\"]\n",
				"cleanrl/ppo.py":              "@dataclass\nclass Args:\n    env_id: str = \"CartPole-v1\"\n    total_timesteps: int = 500000\n# training loop\nif __name__ == \"__main__\":\n    args = tyro.cli(Args)\n",
				"cleanrl/ppo_atari.py":        "    env_id: str = \"BreakoutNoFrameskip-v4\"\n    total_timesteps: int = 10000000\n# training loop\nif __name__ == \"__main__\":\n    pass\n",
				"cleanrl_utils/evals/eval.py": "if __name__ == \"__main__\":\n    evaluate()\n",
			},
			[]string{"description: \"Single files.\"", "- gymnasium==0.29.1\n", "- torch==2.3.0 # pyproject.toml requires >=1.12", "  - {id: \"CartPole-v1\"}", "  # - {id: \"BreakoutNoFrameskip-v4\"}", "library: custom", "steps: 500000", `command: [sh, -c, 'cd "$WORK" && exec python "$OLDPWD/cleanrl/ppo.py"'] # "cleanrl/ppo.py"`, `command: [sh, -c, 'cd "$WORK" && exec python "$OLDPWD/cleanrl_utils/evals/eval.py"']`},
			"ale-py", 0,
		},
		"RLlib with settings": {
			map[string]string{
				"environment.yml":   "name: x\nchannels: [conda-forge]\ndependencies:\n  - python=3.11\n  - numpy=1.26.4=py311h64a7726_0\n  - conda-forge::pytorch>=2.1\n  - pip\n  - pip:\n      - ray[rllib]==2.41.0\n      - scipy\n",
				"configs/ppo.yaml":  "cartpole:\n  run: PPO\n  env: CartPole-v1\n  stop:\n    num_timesteps: 200000\n",
				"src/run.py":        "from ray.rllib.algorithms.ppo import PPOConfig\nconfig = PPOConfig().environment(\"CartPole-v1\").training(lr=1e-4)\n# train\nif __name__ == \"__main__\":\n    main()\n",
				"src/envs/other.py": "NAMES = ['Other-v0']\n",
			},
			[]string{"- numpy==1.26.4\n", "- torch==2.15.0", "- ray[rllib]==2.41.0\n", "library: rllib", "name: PPO", `  - {id: "CartPole-v1"}`, "steps: 200000"},
			"Other-v0", 0,
		},
		"an environment of its own": {
			map[string]string{
				"Pipfile":                  "[packages]\nstable-baselines3 = {extras = [\"extra\"], version = \">=2.0\"}\nscipy = \"*\"\nodd = \"*\"\n\n[dev-packages]\nblack = \"*\"\n",
				"Pipfile.lock":             `{"default": {"odd": {"version": "==0.4"}, "stable-baselines3": {"version": "==2.1.0"}}}`,
				"road_env/__init__.py":     "from gymnasium import register\nregister(\n    id=\"fast-road-v0\",\n    entry_point=\"road_env.envs:Road\",\n)\nregister(id='slow-road-v0')\n",
				"scripts/sb3_road_dqn.py":  "import gymnasium as gym\nfrom stable_baselines3 import DQN\nTRAIN = True\nif __name__ == \"__main__\":\n    env = gym.make(\"fast-road-v0\")\n    model = DQN('MlpPolicy', env)\n    model.learn(int(2e4))\n",
				"docs/conf.py":             "gym.make('Wrong-v0')\n",
				"scripts/readme_figure.py": "print('figure')\n",
			},
			[]string{"- stable-baselines3[extra]==2.1.0 # from the lock file", "- odd==0.4 # from the lock file", "name: DQN", `  - {id: "road_env:fast-road-v0"}`, "steps: 20000"},
			"black", 0,
		},
		"locked by poetry": {
			map[string]string{
				"pyproject.toml": "[tool.poetry]\nname = \"x\"\n\n[tool.poetry.dependencies]\npython = \"^3.11\"\nstable-baselines3 = \"^2.0\"\ntorch = {version = \"~2.2\", source = \"cpu\"}\nhydra-core = \"^1.3\"\n\n[tool.poetry.group.dev.dependencies]\nruff = \"*\"\n",
				"poetry.lock":    "[[package]]\nname = \"torch\"\nversion = \"2.2.2\"\n\n[[package]]\nname = \"filelock\"\nversion = \"3.1\"\n",
				"conf/main.yaml": "env_id: Hopper-v5\ntotal_timesteps: 1_000_000\nalgo: sac\n",
				"main.py":        "import stable_baselines3 as sb3\n@hydra.main(config_path='conf')\ndef main(c):\n    model = sb3.SAC('MlpPolicy', c.env_id)\n    model.train()\nif __name__ == '__main__':\n    main()\n",
			},
			[]string{"- stable-baselines3==2.9.2", "- torch==2.2.2 # from the lock file", "- hydra-core==1.3.8", `  - {id: "Hopper-v5"}`, "name: SAC", "steps: 1000000"},
			"filelock", 0,
		},
		"programs beside each other": {
			map[string]string{
				"setup.py":                      "setup(\n    name=\"fast\",\n    install_requires=[\n        \"numpy>=1.18.1,<2.0\",\n        \"gymnasium>=0.27,<1.0\",\n        \"opencv-python\",\n        \"odd>=1.5\",\n    ],\n)\n",
				"pip-report.json":               `{"version": "1", "install": [{"metadata": {"name": "Odd", "version": "1.9"}}, {"metadata": {"name": "other", "version": "3"}}]}`,
				"fast_examples/atari/names.py":  "NAMES = ['A-v4', 'B-v4', 'C-v4', 'D-v4', 'E-v4', 'F-v4', 'G-v4']\n",
				"fast_examples/brax/train_b.py": "# train\nif __name__ == '__main__':\n    main()\n",
				"fast_examples/train_gym.py":    "register_env('CartPole-v1', train)\nif __name__ == '__main__':\n    main()\n",
				"fast_examples/brax/enjoy_b.py": "if __name__ == '__main__':\n    main()\n",
				"fast_examples/enjoy_gym.py":    "if __name__ == '__main__':\n    main()\n",
				"fast_examples/enjoy_multi.py":  "if __name__ == '__main__':\n    main()\n",
			},
			[]string{"- numpy==1.26.4 # setup.py requires >=1.18.1,<2.0", "- gymnasium==0.29.1", "- opencv-python-headless==4.9.0.80 # opencv-python requires display libraries, which the image does not contain", "- odd==1.9 # from the lock file", `  - {id: "CartPole-v1"}`, `exec python "$OLDPWD/fast_examples/train_gym.py"'`, `exec python "$OLDPWD/fast_examples/enjoy_gym.py"'`},
			"other", 0,
		},
		"a catalogue of environments": {
			map[string]string{
				"requirements.txt": "stable-baselines3==2.9.2\ngymnasium==1.2.2\nscipy==1.17.1\n",
				"a/names.py":       "make('A-v4')\nmake('B-v4')\nmake('C-v4')\nmake('D-v4')\nmake('E-v4')\nmake('F-v4')\n",
				"a/main.py":        "from stable_baselines3 import PPO\nPPO('MlpPolicy', env)\n",
			},
			[]string{"  - {id: \"A-v4\"} #", "  # - {id: \"B-v4\"} #", "  # - {id: \"F-v4\"} #"},
			"- {id: \"G", 0,
		},
		"a library": {
			map[string]string{
				"setup.py":              "setup(\n    name=\"a_library\",\n    install_requires=[\n        \"numpy\",\n        \"gym\",\n        \"gym[Box2D]\",\n        \"pybullet\",\n    ],\n)\n",
				"lib/__init__.py":       "",
				"lib/net.py":            "import torch\nfrom torch import nn\n",
				"lib/hub.py":            "def download(name):\n    \"\"\"Downloads a model.\n\n    >>> download(\"wrong/Wrong-v1\")\n    \"\"\"\n    return name.replace(\"WrongSuffix-v4\", \"-v5\")  # not 'Wrong-v2'\n",
				"lib/envs/simulator.py": "\"\"\"Made for training.\"\"\"\nNAMES = ['Ant-v3', 'Hopper-v3']\nmake('Ant-v3')\nif __name__ == '__main__':\n    check()\n",
				"examples/demo_ppo.py":  "# train\nENV = ['Pendulum-v1', 'Hopper-v3'][0]\nif __name__ == '__main__':\n    run()\n",
				"tests/evaluate.py":     "if __name__ == '__main__':\n    run()\n",
			},
			[]string{"project: a-library\n", "- gym==0.26.2", "- box2d==2.3.10", "- pybullet==3.2.7", "- torch==2.15.0 # imported by the programs", "environments:\n  - {id: \"Pendulum-v1\"} # \"examples/demo_ppo.py\"\n  # -", `exec python "$OLDPWD/examples/demo_ppo.py"'`},
			"- gym[", 1,
		},
		"extras of poetry": {
			map[string]string{
				"pyproject.toml": "[tool.poetry]\nname = \"poet\"\n\n[tool.poetry.dependencies]\npython = \"^3.11\"\ntorch = \"^2.0.0, !=2.0.1\"\nnumpy = \"2.*\"\nscipy = \"1.16.0\"\nexact = {version = \"1.2.0\"}\nsplit = [\n    # odd\n    { version = \"^20.4.3\" },\n    { version = \"<20.16.4\", markers = \"sys_platform == 'win32'\" },\n]\nextra = { version = \"4.*\", optional = true }\nmore = {optional = true, version=\"1.2.0\"}\n",
				"train.py":       "env_id = 'CartPole-v1'\ntrain()\nif __name__ == '__main__':\n    pass\n",
				"evaluate.py":    "if __name__ == '__main__':\n    pass\n",
			},
			[]string{"project: poet\n", "- torch==2.15.0", "- numpy==2.4.6", "- scipy==1.16.0\n", "- exact==1.2.0\n", "- split==20.4.3 #"},
			"more", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			repository := fstest.MapFS{}
			for file, text := range test.files {
				repository[file] = &fstest.MapFile{Data: []byte(text)}
			}
			p, err := Repository("repository", repository)
			if err != nil {
				t.Fatal(err)
			}
			text, err := p.Text()
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			if strings.Contains(text, test.not) || strings.Contains(text, "Wrong") {
				t.Errorf("%q is in\n%s", test.not, text)
			}
			if n := strings.Count(text, "CHANGE-ME"); n != test.changes {
				t.Errorf("%d changes, want %d, in\n%s", n, test.changes, text)
			}
			filled := strings.NewReplacer("targets: [make]", "targets: [make]\nrelease: v0.1.0", "CHANGE-ME", "deploy").Replace(text)
			if _, err := runText(t, filled); err != nil {
				t.Errorf("the proposed file is not valid: %v\n%s", err, text)
			}
		})
	}
}
