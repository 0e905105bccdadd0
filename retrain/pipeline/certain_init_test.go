package pipeline

import "testing"

// What a value may be, but need not, is never proposed as a fact.
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
