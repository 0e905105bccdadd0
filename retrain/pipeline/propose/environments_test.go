package propose

import (
	"strings"
	"testing"
)

// sb3Program returns a training program with additional imports, a default environment id, and code after the
// environment is made.
func sb3Program(imports, id, more string) string {
	const main = "if __name__ == '__main__':\n    main()\n"
	const program = "import argparse\nimport gymnasium as gym\nIMPORTS\nfrom stable_baselines3 import SAC\n\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--env', default='ID')\n    p.add_argument('--out', default='logs/sac')\n    a = p.parse_args()\n    model = SAC('MultiInputPolicy', gym.make(a.env))\n    model.learn(total_timesteps=25000)\n    model.save(a.out)\n\n" + main
	return strings.NewReplacer("IMPORTS", imports, "'ID'", "'"+id+"'", "gym.make(a.env))", "gym.make(a.env)"+more+")").Replace(program)
}

// An environment that a module registers is proposed with its module.
func TestProposedEnvironmentsOfModules(t *testing.T) {
	const requirements = "stable-baselines3==2.7.0\ngymnasium==1.2.2\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a module that registers environments": {
			map[string]string{"requirements.txt": requirements + "panda-gym==3.0.7\n", "train.py": sb3Program("import panda_gym", "PandaReach-v3", "")},
			[]string{`- {id: "panda_gym:PandaReach-v3"}`},
			nil,
		},
		"a module that registers by a call": {
			map[string]string{"requirements.txt": requirements, "train.py": sb3Program("import flappy_bird_gymnasium\ngym.register_envs(flappy_bird_gymnasium)", "FlappyBird-v0", "")},
			[]string{`- {id: "flappy_bird_gymnasium:FlappyBird-v0"}`},
			nil,
		},
		"modules that are used": {
			map[string]string{"requirements.txt": requirements, "train.py": sb3Program("import torch\nimport env_tools\nenv_tools.start()", "Lobby-v3", "")},
			[]string{`- {id: "Lobby-v3"}`},
			nil,
		},
		"environments of Gymnasium": {
			map[string]string{"requirements.txt": requirements, "train.py": sb3Program("import panda_gym", "Hopper-v5", "")},
			[]string{`- {id: "Hopper-v5"}`},
			nil,
		},
		"several modules": {
			map[string]string{"requirements.txt": requirements, "train.py": sb3Program("import a_gym\nimport b_gym", "Lobby-v3", "")},
			[]string{`- {id: "Lobby-v3"}`},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// A composed id is not proposed.
func TestProposedComposedIds(t *testing.T) {
	const train = "import gym\nimport torch\nimport argparse\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    ARGS\n    train(p.parse_args())\n"
	with := func(args, more string) string { return strings.Replace(train, "ARGS", args, 1) + more }
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"an id that the program composes": {
			map[string]string{"requirements.txt": "gym\n", "train.py": with("pass", "env = gym.make(\"SuperMarioBros-{}-{}-v0\".format(1, 2))\nb = gym.make(\"Level-%d-v0\" % 3)\n")},
			[]string{"no Gymnasium environment id was found"},
			[]string{"{}", "%d"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Classes of the repository are not ids, so the project's own programs make them.
func TestProposedEnvironmentsOfTheRepository(t *testing.T) {
	const guard = "if __name__ == '__main__':\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"environments of the repository": {
			map[string]string{
				"requirements.txt": "torch\nstable-baselines3\n", "envs/__init__.py": "from .hover import Hover\n",
				"envs/base.py":  "import gymnasium as gym\nID = 'PyFlyt/QuadX-Hover-v3'\nclass Base(gym.Env):\n    def __init__(self, render_mode=None):\n        self.inner = gym.make(ID, render_mode=render_mode)\n",
				"envs/hover.py": "from .base import Base\nclass Hover(Base):\n    pass\n",
				"train.py":      "from stable_baselines3 import PPO\nfrom envs import Hover\nMODELS = './models/'\nPROFILE = {'env_id': 'PyFlyt/QuadX-Hover-v3'}\ndef train(task):\n    env = Hover(render_mode=None)\n    model = PPO('MlpPolicy', env)\n    model.learn(total_timesteps=200_000)\n    model.save(path)\ndef play(task):\n    model = PPO.load(path)\n    env = Hover(render_mode=\"human\")\n    env.step(model.predict(obs))\n" + guard + "    p.add_argument('--task', choices=['hover'], default='hover')\n    p.add_argument('--mode', choices=['train', 'play'], default='train')\n    args = p.parse_args()\n    if args.mode == 'train':\n        train(args.task)\n    else:\n        play(args.task)\n",
			},
			[]string{"library: custom", `cd "$WORK" && exec python "$OLDPWD/train.py" --mode train`, "command: [python, CHANGE-ME.py]"},
			[]string{"policy:", "--mode play"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// The generated scripts cannot make environments that are registered in Gym.
func TestProposedEnvironmentsOfGym(t *testing.T) {
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"environments of Gym that a loop registers": {
			map[string]string{
				"setup.py":         "setup(name='wind', python_requires='>=3.7, <3.8', install_requires=[\n    'numpy>=1.19.2,<1.20',\n    'gym',\n    'stable-baselines3[extra]',\n    ]  # and others\n)\n",
				"wind/__init__.py": "from gym.envs.registration import register\n\nSCENARIOS = {\n    'Steady-v26': {   \n        'entry_point': 'wind.envs:Steady',\n    },\n    'Gusts-v26': {'entry_point': 'wind.envs:Gusts'}\n}\nfor s in SCENARIOS:\n    register(id=s, entry_point=SCENARIOS[s]['entry_point'])\n",
				"wind/envs.py":     "import gym\nclass Steady(gym.Env):\n    pass\nclass Gusts(gym.Env):\n    pass\n",
				"train.py":         "import wind\nimport argparse\nfrom stable_baselines3 import PPO\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--env', type=str, required=True, choices=wind.SCENARIOS.keys())\n    args = p.parse_args()\n    agents_dir = os.path.join('logs', args.env)\n    model = PPO('MlpPolicy', args.env)\n    model.learn(total_timesteps=2000000)\n    model.save(os.path.join(agents_dir, 'last_' + args.env))\n",
				"run.py":           "import gym\nimport argparse\nfrom stable_baselines3 import PPO\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--env', type=str, required=True)\n    p.add_argument('--agent')\n    args = p.parse_args()\n    evaluate(PPO.load(args.agent), gym.make(args.env))\n",
			},
			[]string{`- {id: "wind:Steady-v26"}`, `- {id: "wind:Gusts-v26"}`, "- stable-baselines3[extra]==", "- numpy==1.19.", "library: custom", `"$OLDPWD/train.py" --env Steady-v26`, `python run.py --agent "$(find "$WORK" -name "*.zip"`},
			[]string{"CHANGE-ME"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Atari games need the package that registers them, unless their preprocessing imports it.
func TestProposedGames(t *testing.T) {
	const pong = "from ray import air, tune\nfrom ray.rllib.algorithms.dqn import DQNConfig\nif __name__ == '__main__':\n    config = (\n        DQNConfig()\n        .environment('ALE/Pong-v5')\n        .training(model={'dim': SIZE}, lr=1e-4)\n    )\n    config.n_step = 5\n    config.v_min = -21\n    config.num_gpus = 1\n    other.gamma = 0.5\n    tune.Tuner(trainable='DQN', param_space=config).fit()\n"
	const lander = "stable-baselines3==2.7.0\ngymnasium==1.2.2\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"programs to try things out, and attributes": {
			map[string]string{"debug/train_pong.py": pong, "executables/train.py": pong, "executables/retraining.py": "import ray\nif __name__ == '__main__':\n    tune.Tuner.restore('x').fit()\n"},
			[]string{"name: DQN # \"executables/train.py\"\n  hyperparameters: # \"executables/train.py\"\n    # model={'dim': SIZE}\n    lr: 1e-4\n    n_step: 5\n    v_min: -21\ntraining:", `- {id: "ale_py:ALE/Pong-v5"} # "executables/train.py"`, "- ale-py=="},
			[]string{"num_gpus", "gamma"},
		},
		"games of Stable-Baselines3": {
			map[string]string{"requirements.txt": lander, "train.py": "import gymnasium as gym\nfrom stable_baselines3 import PPO\nPPO('CnnPolicy', gym.make('ALE/Pong-v5')).learn(25000)\n"},
			[]string{`- {id: "ale_py:ALE/Pong-v5"}`, "- ale-py=="},
			nil,
		},
		"games with their preprocessing": {
			map[string]string{"requirements.txt": lander, "train.py": "from stable_baselines3 import PPO\nfrom stable_baselines3.common.env_util import make_atari_env\nPPO('CnnPolicy', make_atari_env('PongNoFrameskip-v4')).learn(25000)\n"},
			[]string{`- {id: "PongNoFrameskip-v4"}`},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// The generated scripts make environments only by their id. A program that passes arguments which change the
// environment is run as it is.
func TestProposedArgumentsOfEnvironments(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const sb3 = "stable-baselines3==2.7.0\ngymnasium==1.2.2\nhighway-env==1.10.1\n"
	const world = "import gymnasium as gym\nimport highway_env  # noqa: F401\ndef make_env(env_id, config=None):\n    return gym.make(env_id, render_mode=None)\n"
	const settings = "from dataclasses import dataclass\n@dataclass\nclass Config:\n    env_id: str = 'highway-fast-v0'\n    lanes: int = 4\n    learning_rate: float = 5e-4\n"
	const train = "import yaml\nfrom stable_baselines3 import PPO\nfrom src.settings import Config\nfrom src.world import make_env\ndef main():\n    cfg = Config()\n    env = make_env(cfg.env_id)\n    policy = 'MultiInputPolicy' if isinstance(env.observation_space, Dict) else 'MlpPolicy'\n    PPO(policy, env, learning_rate=cfg.learning_rate).learn(1000)\n" + guard
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"an environment of an import in another module, and a policy of a condition": {
			map[string]string{"requirements.txt": sb3, "src/__init__.py": "", "src/settings.py": settings, "src/world.py": world, "src/train.py": train},
			[]string{
				`- {id: "highway_env:highway-fast-v0"} # "src/settings.py"`, "    learning_rate: 5e-4\n",
				"  # policy: the program chooses MultiInputPolicy or MlpPolicy conditionally; the default is MlpPolicy\n",
			},
			[]string{"\n  policy:", "pyyaml"},
		},
		"an argument of the environment": {
			map[string]string{
				"requirements.txt": sb3, "src/__init__.py": "", "src/settings.py": settings, "src/train.py": train,
				"src/world.py": strings.Replace(world, "render_mode=None", "config={'lanes_count': 3}", 1),
			},
			[]string{`library: custom # src/world.py makes the environment with config={'lanes_count': 3}, which the generated scripts do not`, "src.train", "- pyyaml=="},
			nil,
		},
		"arguments of several environments": {
			map[string]string{"requirements.txt": sb3, "train.py": "from stable_baselines3 import PPO\nfrom stable_baselines3.common.env_util import make_vec_env\nenv = make_vec_env('FrozenLake-v1', n_envs=4, env_kwargs={'is_slippery': False})\nPPO('MlpPolicy', env).learn(1000)\n"},
			[]string{"library: custom # train.py makes the environment with env_kwargs={'is_slippery': False}, which"},
			nil,
		},
		"arguments that change nothing": {
			map[string]string{"requirements.txt": sb3, "train.py": "import gymnasium as gym\nfrom stable_baselines3 import PPO\nKWARGS = {}\nenv = gym.make('CartPole-v1', render_mode='rgb_array', **KWARGS)\ngym.make('LunarLander-v3', continuous=True)\nPPO('MlpPolicy', env).learn(1000)\n"},
			[]string{"library: stable-baselines3\n"},
			nil,
		},
		"a field that a function may change": {
			map[string]string{
				"requirements.txt": sb3, "src/__init__.py": "", "src/world.py": world,
				"src/settings.py": settings + "    @classmethod\n    def of(cls, env_id):\n        return replace(cls(env_id), learning_rate=RATES[env_id])\n",
				"src/train.py":    strings.Replace(train, "Config()", "Config.of('highway-fast-v0')", 1),
			},
			[]string{"    # learning_rate=cfg.learning_rate (5e-4 in src/settings.py)\n"},
			[]string{"\n    learning_rate:"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// The environment depends on the defaults of arguments, and comments name the file that sets a value.
func TestProposedChoicesOfArguments(t *testing.T) {
	const head = "import argparse, os\nimport gymnasium as gym\nimport torch\np = argparse.ArgumentParser()\np.add_argument('--task', default='lander')\nargs = p.parse_args()\n"
	const tail = "\nif __name__ == '__main__':\n    train(env)\n    torch.save(net, 'models/best.pt')\n"
	const chosen = `  - {id: "LunarLander-v3"} # "train.py"`
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
		never []string
	}{
		"a branch":              {map[string]string{"train.py": head + "if args.task == 'pole':\n    env = gym.make('CartPole-v1')\nelif args.task == 'lander':\n    env = gym.make('LunarLander-v3')\nelse:\n    env = gym.make('Acrobot-v1')\n" + tail}, []string{chosen, `  # - {id: "CartPole-v1"}`}, nil},
		"a function":            {map[string]string{"train.py": head + "def make(task):\n    if task == 'pole':\n        name = 'CartPole-v1'\n    else:\n        name = 'LunarLander-v3'\n    return gym.make(name)\nenv = make(args.task)\n" + tail}, []string{chosen}, nil},
		"a table":               {map[string]string{"train.py": head + "TASKS = {'pole': 'CartPole-v1', 'lander': 'LunarLander-v3'}\nenv = gym.make(TASKS[args.task])\n" + tail}, []string{chosen}, nil},
		"what only running can": {map[string]string{"train.py": head + "if os.environ['T']:\n    env = gym.make('CartPole-v1')\nelse:\n    env = gym.make('Acrobot-v1')\n" + tail}, []string{`  - {id: "CartPole-v1"}`, `  # - {id: "Acrobot-v1"}`}, nil},
		"another file": {
			map[string]string{"config.py": "ENV = 'LunarLander-v3'\nTOTAL = 70_000\n", "train.py": "from config import ENV, TOTAL\nimport gymnasium as gym\nfrom stable_baselines3 import PPO\nif __name__ == '__main__':\n    PPO('MlpPolicy', gym.make(ENV)).learn(TOTAL)\n"},
			[]string{`  - {id: "LunarLander-v3"} # "config.py"`, `  steps: 70000 # "config.py"`},
			nil,
		},
		"a page": {
			map[string]string{"README.md": "    python train.py --steps 9000\n", "train.py": head + "p.add_argument('--steps', type=int, default=5000)\nenv = gym.make('LunarLander-v3')\n" + tail},
			[]string{`  steps: 9000 # "README.md"`, `# "train.py"; arguments: README.md`},
			nil,
		},
		"a page for Windows": {
			map[string]string{"README.md": "    py -m tools.train --steps 9000\n", "tools/__init__.py": "", "tools/train.py": head + "p.add_argument('--steps', type=int, default=5000)\nenv = gym.make('LunarLander-v3')\n" + tail},
			[]string{`  steps: 9000 # "README.md"`},
			nil,
		},
		"a page for uv": {
			map[string]string{"README.md": "    uv run train.py --steps 9000\n", "train.py": head + "p.add_argument('--steps', type=int, default=5000)\nenv = gym.make('LunarLander-v3')\n" + tail},
			[]string{`  steps: 9000 # "README.md"`},
			nil,
		},
		"a GPU": {
			map[string]string{"train.py": head + "p.add_argument('--device', default='cuda')\nenv = gym.make('LunarLander-v3')\n" + tail},
			[]string{`--device cpu'] # "train.py"; --device is cuda in the project, which requires training.gpu`},
			nil,
		},
		"settings that a function reads": {
			map[string]string{
				"config.yaml": "env: {id: LunarLander-v3}\nppo: {gamma: 0.9, n_steps: 64}\n",
				"train.py":    "import yaml\nimport gymnasium as gym\nfrom stable_baselines3 import PPO\nCONFIG = 'config.yaml'\ndef read():\n    with open(CONFIG) as f:\n        settings = yaml.safe_load(f)\n    return settings\nif __name__ == '__main__':\n    cfg = read()\n    p = cfg['ppo']\n    PPO('MlpPolicy', gym.make(cfg['env']['id']), gamma=p['gamma'], n_steps=p['n_steps']).learn(30_000)\n",
			},
			[]string{"  hyperparameters: # \"train.py\", \"config.yaml\"\n    gamma: 0.9\n    n_steps: 64\n", `  - {id: "LunarLander-v3"} # "config.yaml"`},
			nil,
		},
		"an index": {
			map[string]string{"train.py": head + "p.add_argument('--EnvIndex', type=int, default=1)\nopt = p.parse_args()\nNAMES = ['CartPole-v1', 'LunarLander-v3']\nenv = gym.make(NAMES[opt.EnvIndex])\n" + tail},
			[]string{chosen},
			nil,
		},
		"settings that arguments change, and a class of a table": {
			map[string]string{
				"conf/ppo.yaml": "env_id: LunarLander-v3\npolicy: MlpPolicy\nhyperparams: {gamma: 0.9, n_steps: 64}\n",
				"tools.py":      "import yaml\nfrom pathlib import Path\nfrom stable_baselines3 import PPO\nCLASSES = {'PPO': PPO}\ndef load_config(path):\n    with Path(path).open() as f:\n        data = yaml.safe_load(f)\n    return data\n",
				"train.py":      "import argparse\nimport gymnasium as gym\nfrom tools import CLASSES, load_config\ndef apply_arguments(config, args):\n    return config\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--config', default='conf/ppo.yaml')\n    args = p.parse_args()\n    config = apply_arguments(load_config(args.config), args)\n    make = CLASSES['PPO']\n    model = make(\n        policy=str(config.get('policy', 'MlpPolicy')),\n        env=gym.make(str(config.get('env_id', 'A-v1'))),\n        **dict(config.get('hyperparams', {})),\n    )\n    model.learn(30_000)\nif __name__ == '__main__':\n    main()\n",
			},
			[]string{"  hyperparameters: # \"train.py\", \"conf/ppo.yaml\"\n    gamma: 0.9\n    n_steps: 64\n", "library: stable-baselines3\n"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Ids that Gymnasium 1.0 removed require earlier versions, and the generated scripts do not need Gym.
func TestProposedEnvironmentsBeforeGymnasium1(t *testing.T) {
	const train = "import gym\nfrom stable_baselines3 import PPO\nif __name__ == '__main__':\n    PPO('MlpPolicy', gym.make('ID')).learn(30000)\n"
	with := func(id string) string { return strings.Replace(train, "ID", id, 1) }
	proposes(t, "an old one", map[string]string{"train.py": with("LunarLander-v2")},
		[]string{`- {id: "LunarLander-v2"}`, "library: stable-baselines3\n", "- gymnasium==0.29.1 ", "- stable-baselines3==2.3.2 "}, []string{"- gym==", "shimmy"})
	proposes(t, "a new one", map[string]string{"train.py": with("CartPole-v1")}, []string{"- gymnasium==1.2.2 ", "- stable-baselines3==2.9.2 "}, []string{"- gym==", "shimmy"})
	proposes(t, "what is declared", map[string]string{"requirements.txt": "gymnasium==1.2.2\n", "train.py": with("LunarLander-v2")}, []string{"- gymnasium==1.2.2\n", "- stable-baselines3==2.9.2 "}, nil)
}

// Arguments with the default values of an environment change nothing.
func TestProposedUsualArgumentsOfEnvironments(t *testing.T) {
	const train = "import gymnasium as gym\nfrom stable_baselines3 import PPO\nenv = gym.make('CarRacing-v3', continuous=VALUE, domain_randomize=False)\nPPO('CnnPolicy', env).learn(30000)\n"
	with := func(value string) map[string]string {
		return map[string]string{"requirements.txt": "stable-baselines3==2.7.0\ngymnasium==1.2.2\n", "train.py": strings.Replace(train, "VALUE", value, 1)}
	}
	proposes(t, "usual", with("True"), []string{"library: stable-baselines3\n"}, nil)
	proposes(t, "unusual", with("False"), []string{"library: custom # train.py makes the environment with continuous=False, which the generated scripts do not\n"}, nil)
}
