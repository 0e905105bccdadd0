package propose

import (
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline"
)

// Hyperparameters are the arguments of the class, whatever variables their values come from.
func TestProposedHyperparameters(t *testing.T) {
	const requirements = "stable-baselines3==2.7.0\ngymnasium==1.2.2\n"
	const top = "import gymnasium as gym\nfrom stable_baselines3 import PPO\n"
	const guard = "if __name__ == '__main__':\n    main()\n"
	const learn = "    model.learn(total_timesteps=25000)\n\n" + guard
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"literals": {
			map[string]string{"train.py": top + "def main():\n    model = PPO(\n        'MlpPolicy',\n        gym.make('Pendulum-v1'),\n        learning_rate=3e-4,  # Adam\n        n_steps=2_048,\n        ent_coef=0.,\n        use_sde=True,\n        target_kl=None,\n        policy_kwargs=dict(net_arch=dict(pi=[64, 64], vf=[64, 64])),\n        verbose=1,\n        tensorboard_log='./tb',\n        device='cuda',\n        batch_size=2 ** 6,\n    )\n" + learn},
			[]string{
				"  hyperparameters: # \"train.py\"\n    learning_rate: 3e-4\n    n_steps: 2048\n    ent_coef: 0.0\n    use_sde: true\n    target_kl: null\n" +
					"    policy_kwargs: {\"net_arch\": {\"pi\": [64, 64], \"vf\": [64, 64]}}\n    # device='cuda' requires training.gpu\n    batch_size: 64\n",
			},
			[]string{"verbose", "tensorboard_log", "device:"},
		},
		"constants of other modules": {
			map[string]string{
				"config.py": "ENV_ID = 'CartPole-v1'\nLEARNING_RATE: float = 1e-4\nSTEPS = 512\nTOTAL_TIMESTEPS = 50 * STEPS * 10\n",
				"other.py":  "ENV_ID = 'Acrobot-v1'\nTOTAL_TIMESTEPS = 1_000\n",
				"train.py":  top + "import config as c\nfrom config import ENV_ID, TOTAL_TIMESTEPS, LEARNING_RATE as LR\ndef main():\n    env = gym.make(ENV_ID)\n    model = PPO('MlpPolicy', env, learning_rate=LR, n_steps=c.STEPS * 2)\n    model.learn(total_timesteps=TOTAL_TIMESTEPS)\n\n" + guard,
			},
			[]string{"  hyperparameters: # \"train.py\", \"config.py\"\n    learning_rate: 1e-4\n", "n_steps: 1024\n", `  - {id: "CartPole-v1"} # "config.py"`, "steps: 256000 # \"config.py\""},
			[]string{`  - {id: "Acrobot-v1"}`},
		},
		"a class of settings": {
			map[string]string{
				"src/settings.py": "from dataclasses import dataclass\n@dataclass\nclass Settings:\n    env: str = 'Acrobot-v1'\n    gamma: float = 0.98\n    total: int = 70_000\n",
				"src/train.py":    top + "from settings import Settings\ncfg = Settings()\ndef main():\n    model = PPO('MlpPolicy', gym.make(cfg.env), gamma=cfg.gamma)\n    model.learn(cfg.total)\n\n" + guard,
			},
			[]string{"gamma: 0.98\n", `  - {id: "Acrobot-v1"}`, "steps: 70000 "},
			nil,
		},
		"a dictionary": {
			map[string]string{"train.py": top + "PARAMS = {\n    'n_steps': 1024,\n    'net': {'gamma': 0.9},\n}\nkwargs = dict(n_epochs=4, batch_size=PARAMS['n_steps'] // 8)\ndef main():\n    model = PPO('MlpPolicy', gym.make('CartPole-v1'), gamma=PARAMS['net']['gamma'], **kwargs)\n" + learn},
			[]string{"gamma: 0.9\n", "n_epochs: 4\n", "batch_size: 128\n"},
			[]string{"n_steps"},
		},
		"arguments of the program": {
			map[string]string{
				"README.md": "```\npython train.py --gamma 0.95\n```\n",
				"train.py":  "import argparse\n" + top + "BATCH = 32\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--learning-rate', type=float, default=1e-3)\n    p.add_argument('--gamma', type=float, default=0.99)\n    p.add_argument('--batch', type=int, default=2 * BATCH)\n    p.add_argument('--later', type=int)\n    args = p.parse_args()\n    model = PPO('MlpPolicy', gym.make('CartPole-v1'), learning_rate=args.learning_rate, gamma=args.gamma, batch_size=args.batch, n_steps=args.later)\n" + learn,
			},
			[]string{"learning_rate: 1e-3\n", "  hyperparameters: # \"train.py\", \"README.md\"\n", "gamma: 0.95\n", "batch_size: 64\n", "    # n_steps=args.later\n"},
			nil,
		},
		"a function's own values": {
			map[string]string{"train.py": top + "from stable_baselines3 import SAC\ndef other(lr=9e-1, size=1):\n    batch = 7\n    SAC('MlpPolicy', env, learning_rate=lr)\ndef main(lr: float = 5e-4, size=256):\n    batch = size\n    model = PPO('MlpPolicy', gym.make('CartPole-v1'), learning_rate=lr, batch_size=batch)\n" + learn},
			[]string{"learning_rate: 5e-4\n", "batch_size: 256\n"},
			nil,
		},
		"what no file can have": {
			map[string]string{"train.py": top + "def main():\n    model = PPO('MlpPolicy', gym.make('CartPole-v1'), learning_rate=rates[0], policy_kwargs=dict(net_arch=sizes()), **found())\n" + learn},
			[]string{"  hyperparameters: # \"train.py\"\n    # learning_rate=rates[0]\n    # policy_kwargs=dict(net_arch=sizes())\n    # **found()\ntraining:"},
			nil,
		},
		"what an own buffer has": {
			map[string]string{"train.py": top + "def main():\n    model = PPO('MlpPolicy', gym.make('CartPole-v1'), gamma=0.9, replay_buffer_class=HerReplayBuffer)\n" + learn},
			nil,
			[]string{"hyperparameters"},
		},
		"no arguments": {
			map[string]string{"train.py": top + "def main():\n    model = PPO('MlpPolicy', gym.make('CartPole-v1'), verbose=1)\n" + learn},
			nil,
			[]string{"hyperparameters"},
		},
		"constants that name each other": {
			map[string]string{"a.py": "from b import X\nY = X\n", "b.py": "from a import Y\nX = Y\n", "train.py": top + "from a import Y\nZ = Z + 1\ndef main():\n    model = PPO('MlpPolicy', gym.make('CartPole-v1'), gamma=Y, n_steps=Z)\n" + learn},
			[]string{"    # gamma=Y\n    # n_steps=Z\n"},
			nil,
		},
	} {
		test.files["requirements.txt"] = requirements
		proposes(t, name, test.files, test.want, test.never)
		if name == "literals" {
			generates(t, test.files, `learning_rate=0.0003, n_steps=2048, policy_kwargs={"net_arch": {"pi": [64, 64], "vf": [64, 64]}}, target_kl=None, use_sde=True)`)
		}
	}
	const rllib = "from ray.rllib.algorithms.ppo import PPOConfig\nfrom settings import BATCH\nconfig = (\n    PPOConfig()\n    .environment('CartPole-v1')\n    .training(lr=5e-5, train_batch_size_per_learner=BATCH, model={'fcnet_hiddens': [64, 64]})\n)\nconfig.training(gamma=0.97, lr=1e-4)\nalgo = config.build_algo()\nfor _ in range(10):\n    algo.train()\n"
	files := map[string]string{"requirements.txt": "ray[rllib]==2.49.0\ntorch==2.8.0\n", "settings.py": "BATCH = 4000\n", "train.py": rllib}
	proposes(t, "RLlib", files,
		[]string{"  hyperparameters: # \"train.py\", \"settings.py\"\n    lr: 1e-4\n    train_batch_size_per_learner: 4000\n    model: {\"fcnet_hiddens\": [64, 64]}\n    gamma: 0.97\n"}, nil)
	generates(t, files, ".training(gamma=0.97, lr=0.0001, train_batch_size_per_learner=4000)\n        .rl_module(model_config={\"fcnet_hiddens\": [64, 64]})\n    )\n")
}

// Values in settings files count like constants if the program reads the file.
func TestHyperparametersOfSettings(t *testing.T) {
	const top = "import argparse, json, yaml\nimport gymnasium as gym\nfrom stable_baselines3 import PPO\n"
	const guard = "if __name__ == '__main__':\n    main()\n"
	const settings = "env: {name: CartPole-v1}\ntotal_timesteps: 40_000\nppo:\n  learning_rate: 3e-4\n  n_steps: 512\n  net: [64, 64]\n  use_sde: false\n  target_kl: null\n"
	want := []string{"learning_rate: 0.0003\n", "n_steps: 512\n", "use_sde: false\n", `policy_kwargs: {"net_arch": [64, 64]}`, `- {id: "CartPole-v1"}`, "steps: 40000 "}
	const model = "    ppo = config['ppo']\n    env = gym.make(config['env']['name'])\n    model = PPO('MlpPolicy', env, learning_rate=float(ppo['learning_rate']), n_steps=int(config['ppo']['n_steps']), use_sde=bool(ppo.get('use_sde', True)), gamma=ppo.get('gamma', 0.98), policy_kwargs=dict(net_arch=ppo['net']))\n    model.learn(total_timesteps=int(config['total_timesteps']))\n\n"
	for name, test := range map[string]struct {
		code        string
		want, never []string
	}{
		"opened before":            {"def main():\n    with open('configs/normal.yaml') as f:\n        config = yaml.safe_load(f)\n" + model, append([]string{"gamma: 0.98\n"}, want...), nil},
		"opened there":             {"config = yaml.safe_load(open('configs/normal.yaml'))\ndef main():\n" + model, want, nil},
		"by the default of a flag": {"def load_config(path):\n    return yaml.safe_load(open(path))\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--config', default='configs/normal.yaml')\n    config = load_config(p.parse_args().config)\n" + model, want, nil},
		"by attributes":            {"from omegaconf import OmegaConf\ncfg = OmegaConf.load('configs/normal.yaml')\ndef main():\n    PPO('MlpPolicy', gym.make(cfg.env.name), learning_rate=cfg.ppo.learning_rate, n_steps=cfg.ppo.missing).learn(cfg.total_timesteps)\n\n", []string{"learning_rate: 0.0003\n", "# n_steps=cfg.ppo.missing\n", `- {id: "CartPole-v1"}`, "steps: 40000 "}, nil},
		"all of them":              {"def main():\n    with open('configs/normal.yaml') as f:\n        config = yaml.safe_load(f)\n    PPO('MlpPolicy', gym.make(config['env']['name']), **config['ppo']).learn(config['total_timesteps'])\n\n", []string{"learning_rate: 0.0003\n", "net: [64, 64]\n", "target_kl: null\n"}, nil},
		"a file that is not there": {"config = yaml.safe_load(open('configs/other.yaml'))\ndef main():\n" + strings.ReplaceAll(model, "config['env']['name']", "'CartPole-v1'"), []string{"# learning_rate=float(ppo['learning_rate'])\n"}, []string{"gamma: 0.98"}},
	} {
		files := map[string]string{"requirements.txt": "stable-baselines3==2.7.0\ngymnasium==1.2.2\n", "configs/normal.yaml": settings, "configs/broken.yaml": "a: [\n", "train.py": top + test.code + guard}
		proposes(t, name, files, test.want, test.never)
	}
}

// generates checks that the training that is generated from a proposal contains a text.
func generates(t *testing.T, files map[string]string, want string) {
	t.Helper()
	w, err := runText(t, strings.Replace(proposalOf(t, files), "targets: [make]", "targets: [make]\nrelease: v0.1.0", 1))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(w.Artefacts, func(a pipeline.Artefact) bool { return a.Path == "pipeline/train.py" })
	if i < 0 || !strings.Contains(w.Artefacts[i].Text, want) {
		t.Errorf("no %s in the training of %+v", want, w.Artefacts)
	}
}

// A possible but uncertain value is never proposed as a fact.
func TestProposedHyperparametersAreCertain(t *testing.T) {
	const top = "import sys, os\nimport gymnasium as gym\nfrom stable_baselines3 import PPO\n"
	const end = "env = gym.make('CartPole-v1')\n"
	const made = "model = PPO('MlpPolicy', env, learning_rate=lr)\n"
	for name, test := range map[string]struct{ code, want, never string }{
		"for an argument":           {"lr = 3e-4\nif '--fast' in sys.argv:\n    lr = 1e-2\n" + made, "    learning_rate: 3e-4\n", "1e-2"},
		"for an option":             {"import argparse\np = argparse.ArgumentParser()\np.add_argument('--fast', action='store_true')\nargs = p.parse_args()\nlr = 3e-4\nif args.fast:\n    lr = 1e-2\n" + made, "    learning_rate: 3e-4\n", "1e-2"},
		"on one line":               {"lr = 3e-4; x = 1\nif '--fast' in sys.argv: x = 2; lr = 1e-2\n" + made, "    learning_rate: 3e-4\n", "1e-2"},
		"never":                     {"DEBUG = False\nlr = 3e-4\nif DEBUG:\n    lr = 1e-2\n" + made, "    learning_rate: 3e-4\n", "1e-2"},
		"always":                    {"FAST = True\nlr = 3e-4\nif FAST:\n    lr = 1e-2\nelse:\n    lr = 1e-3\n" + made, "    learning_rate: 1e-2\n", "1e-3"},
		"perhaps":                   {"DEBUG = os.environ.get('DEBUG')\nlr = 3e-4\nif DEBUG:\n    lr = 1e-2\n" + made, "    # learning_rate=lr\n", "learning_rate: "},
		"either":                    {"if os.cpu_count() > 2:\n    lr = 1e-2\nelse:\n    lr = 1e-3\n" + made, "    # learning_rate=lr\n", "learning_rate: "},
		"either the same":           {"if os.cpu_count() > 2:\n    lr = 1e-2\nelse:\n    lr = 1e-2\n" + made, "    learning_rate: 1e-2\n", "#  learning_rate"},
		"in the same branch":        {"if os.cpu_count() > 2:\n    lr = 1e-3\nelse:\n    lr = 1e-2\n    model = PPO('MlpPolicy', env, learning_rate=lr)\n", "    learning_rate: 1e-2\n", "1e-3"},
		"if it failed":              {"try:\n    lr = 1e-3\nexcept ImportError:\n    lr = 1e-2\n" + made, "    learning_rate: 1e-3\n", "1e-2"},
		"a later one":               {"lr = 1e-3\nlr = 1e-2\n" + made + "lr = 1\n", "    learning_rate: 1e-2\n", "1e-3"},
		"an argument of a call":     {"lr = 0.99\nmake_other(\n    lr=0.5\n)\n" + made, "    learning_rate: 0.99\n", "0.5"},
		"an argument after text":    {"lr = 0.99\nmake_other(\n    ''' ) ''',\n    lr=0.5\n)\n" + made, "    learning_rate: 0.99\n", "0.5"},
		"computed":                  {"lr = 64\nlr *= 2\n" + made, "    # learning_rate=lr\n", "learning_rate: "},
		"made of its old value":     {"lr = 64\nlr = lr * 2\n" + made, "    learning_rate: 128\n", "64"},
		"one of several":            {"lr = 64\nlr, x = found()\n" + made, "    # learning_rate=lr\n", "learning_rate: "},
		"of a loop":                 {"lr = 64\nfor lr in rates():\n    model = PPO('MlpPolicy', env, learning_rate=lr)\n", "    # learning_rate=lr\n", "learning_rate: "},
		"set by a function":         {"lr = 64\ndef fast():\n    global lr\n    lr = 1\nfast()\n" + made, "    # learning_rate=lr\n", "learning_rate: "},
		"an item":                   {"cfg = dict(lr=1e-3)\ncfg['lr'] = 5e-5\nmodel = PPO('MlpPolicy', env, learning_rate=cfg['lr'], **cfg)\n", "    # learning_rate=cfg['lr']\n    # **cfg\n", "1e-3"},
		"an item in a function":     {"cfg = dict(lr=1e-3)\ndef main():\n    cfg['lr'] = 5e-5\n    model = PPO('MlpPolicy', env, learning_rate=cfg['lr'])\nmain()\n", "    # learning_rate=cfg['lr']\n", "1e-3"},
		"updated":                   {"cfg = dict(lr=1e-3)\ncfg.update(lr=5e-5)\nmodel = PPO('MlpPolicy', env, **cfg)\n", "    # **cfg\n", "1e-3"},
		"a parameter":               {"lr = 0.5\ndef go(lr):\n    model = PPO('MlpPolicy', env, learning_rate=lr)\ngo(1e-4)\n", "    learning_rate: 1e-4\n", "0.5"},
		"one of two calls":          {"def go(lr):\n    model = PPO('MlpPolicy', env, learning_rate=lr)\ngo(1e-4)\ngo(1e-3)\n", "    # learning_rate=lr\n", "learning_rate: "},
		"passed on as it is":        {"def go(lr):\n    model = PPO('MlpPolicy', env, learning_rate=lr)\n    go(lr)\n", "    # learning_rate=lr\n", "learning_rate: "},
		"of a function before":      {"def other(lr):\n    return lr\nlr = 0.5\n" + made, "    learning_rate: 0.5\n", ""},
		"a default":                 {"lr = 0.5\ndef go(a, lr: float = 2e-4):\n    model = PPO('MlpPolicy', env, learning_rate=lr)\ngo(1)\n", "    learning_rate: 2e-4\n", "0.5"},
		"a default that is not":     {"def go(a, lr=2e-4):\n    model = PPO('MlpPolicy', env, learning_rate=lr)\ngo(1, 1e-4)\n", "    learning_rate: 1e-4\n", "2e-4"},
		"a default of an object":    {"class Agent:\n    def __init__(self, env, lr=2e-4):\n        self.lr = lr\n    def train(self):\n        model = PPO('MlpPolicy', env, learning_rate=self.lr)\nAgent(env).train()\n", "    learning_rate: 2e-4\n", ""},
		"an argument of an object":  {"class Agent:\n    def __init__(self, env, lr=2e-4):\n        self.lr = lr\n    def train(self):\n        model = PPO('MlpPolicy', env, learning_rate=self.lr)\nAgent(env, lr=1).train()\n", "    learning_rate: 1\n", "2e-4"},
		"an attribute that is not":  {"class Settings:\n    lr: float = 1e-3\n    gamma: float = 0.9\ncfg = Settings(lr=5e-5)\nmodel = PPO('MlpPolicy', env, learning_rate=cfg.lr, gamma=cfg.gamma)\n", "    learning_rate: 5e-5\n    gamma: 0.9\n", "1e-3"},
		"a changed attribute":       {"class Settings:\n    lr: float = 1e-3\ncfg = Settings()\nif os.environ:\n    cfg.lr = 1\nmodel = PPO('MlpPolicy', env, learning_rate=cfg.lr)\n", "    # learning_rate=cfg.lr (1e-3 in train.py)\n", "1e-3"},
		"of another call":           {"if '--test' in sys.argv:\n    model = PPO('MlpPolicy', env, n_steps=16)\nelse:\n    model = PPO('MlpPolicy', env, n_steps=2048)\n", "    n_steps: 2048\n", "16"},
		"of one call or another":    {"if os.environ.get('T'):\n    model = PPO('MlpPolicy', env, n_steps=16, gamma=0.9, vf_coef=1)\nelse:\n    model = PPO('MlpPolicy', env, n_steps=2048, gamma=0.9)\n", "    # n_steps=16\n    gamma: 0.9\n    # vf_coef=1\n", "n_steps: "},
		"of a function that starts": {"def tune():\n    model = PPO('MlpPolicy', env, n_steps=16)\ndef run():\n    model = PPO('MlpPolicy', env, n_steps=2048)\nrun()\n", "    n_steps: 2048\n", "16"},
	} {
		files := map[string]string{"requirements.txt": "stable-baselines3==2.7.0\ngymnasium==1.2.2\n", "train.py": top + end + test.code + "model.learn(25000)\n"}
		var never []string
		if test.never != "" {
			never = append(never, " "+test.never+"\n")
		}
		if test.never == "learning_rate: " || test.never == "n_steps: " {
			never = []string{test.never}
		}
		proposes(t, name, files, []string{test.want}, never)
	}
	const rllib = "import os\nfrom ray.rllib.algorithms.ppo import PPOConfig\nconfig = PPOConfig().environment('CartPole-v1').training(lr=5e-5, gamma=0.9)\nconfig = config.env_runners(num_env_runners=1)\nif os.environ.get('T'):\n    config.training(lr=1e-4)\nconfig.clip_param = 0.2\nif 0:\n    config.clip_param = 0.3\nalgo = config.build_algo()\nalgo.train()\n"
	proposes(t, "RLlib", map[string]string{"requirements.txt": "ray[rllib]==2.49.0\ntorch==2.8.0\n", "train.py": rllib}, []string{"    # lr=1e-4\n    gamma: 0.9\n    clip_param: 0.2\n"}, nil)
}
