package saves

import (
	"slices"
	"testing"
)

func TestNothing(t *testing.T) {
	const fit = "loss.backward()\n"
	for name, test := range map[string]struct {
		texts []string
		want  bool
	}{
		"a call":                       {[]string{fit, "torch.save(net.state_dict(), 'net.pt')\n"}, false},
		"no call":                      {[]string{fit}, true},
		"a method that nothing calls":  {[]string{fit, "class Net:\n    def save(self, path):\n        torch.save(self.state_dict(), path)\n\n    def forward(self, x):\n        return x\n"}, true},
		"a method in another file":     {[]string{fit + "net.save(path)\n", "class Net:\n    def save(self, path):\n        torch.save(self.state_dict(), path)\n"}, false},
		"a function that is passed on": {[]string{fit + "train(callbacks=[save_model])\n", "def save_model(agent):\n    agent.model.save(path)\n"}, false},
		"a method of several lines":    {[]string{fit, "class Net:\n    def save(\n        self, path=f(1)\n    ):\n        torch.save(self.state_dict(), path)\n"}, true},
		"what an agent remembers":      {[]string{fit + "self._replay_memory.save(state, action)\n", "class ReplayMemory:\n    def save(self, state):\n        self.all.append(state)\n"}, true},
		"pictures":                     {[]string{fit + "plt.savefig('a.png')\nsave_plots(x)\n"}, true},
		"a library":                    {[]string{fit + "Trainer(max_epochs=3).fit(net)\n"}, false},
		"hyperparameters":              {[]string{fit + "self.save_hyperparameters()\n"}, true},
		"fields":                       {[]string{fit + "class Args:\n    save: bool = False\n    save_checkpoint_dir: str = None\n    checkpoint_interval: int = 25000\n"}, true},
		"a state":                      {[]string{fit + "save_state(net, path)\n"}, false},
		"a state of the training":      {[]string{fit + "utils.save_training_state(path)\n"}, false},
		"a state of a logger":          {[]string{fit + "logger.save_state({'env': env}, None)\n"}, false},
		"a state that is defined":      {[]string{fit, "def save_state_dict(net):\n    torch.save(net.state_dict(), path)\n"}, true},
		"with the configuration":       {[]string{fit + "save_config_and_model(c, net)\n"}, false},
		"with logs":                    {[]string{fit + "save_weights_and_logs(net)\n"}, false},
		"statistics":                   {[]string{fit + "save_stats(x)\nsave_stats_of_run(x)\nsave_statistics(x)\nsave_run_stat(x)\n"}, true},
		"a hub":                        {[]string{fit + "model.push_to_hub('a/b')\n"}, false},
		"bytes":                        {[]string{fit + "f.write(flax.serialization.to_bytes(p))\n"}, false},
		"a checkpoint":                 {[]string{fit + "self.checkpoint(net)\n"}, false},
	} {
		if got := Nothing(test.texts); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestFits(t *testing.T) {
	const rllib = "from ray.rllib.algorithms.ppo import PPOConfig\n"
	for code, want := range map[string]bool{
		rllib + "algo.train()\n":                true,
		rllib + "model.train()\nmodel.eval()\n": false, // sets the mode of a network
		rllib + "algo.train()\nmodel.eval()\n":  true,
		"import torch\nmodel.train()\n":         false,
		"import torch\nloss.backward()\n":       true,
	} {
		if got := Fits(code); got != want {
			t.Errorf("%q: %v", code, got)
		}
	}
}

func TestOff(t *testing.T) {
	const loop = "load_checkpoint = True\nif load_checkpoint:\n    agent.load_models()\nfor i in range(9):\n    agent.remember(obs)\n    if not load_checkpoint:\n        agent.learn()\n"
	for code, want := range map[string]string{
		loop:                               "load_checkpoint",
		loop + "agent.learn()\n":           "",
		loop + "load_checkpoint = False\n": "",
		"load_checkpoint = False\nif not load_checkpoint:\n    agent.learn()\n":                             "",
		"do_train = False\nif do_train:\n    model.fit(x)\nplay()\n":                                        "do_train",
		"do_eval = True\nif not do_eval:\n    stats.update(a)\nfor x in y:\n    loss.backward()\n":          "",
		"load_model = True\nif not load_model:\n    buffer.update(x)\noptimizer.step()\n":                   "",
		"load_model = True\nif not load_model:\n    agent.train(x)\nloss.backward()\n":                      "",
		"load_model = True\nif not load_model:\n    buffer.update(x)\nplay()\n":                             "",
		"load_model = True\nif not load_model:\n    agent.update_model(x)\nplay()\n":                        "load_model",
		"load_model = True\nif not load_model:\n    agent.learn()\n    loss.backward()\nbuffer.update(x)\n": "load_model",
		"train_it = False\nmodel.fit(x)\n":                                                                  "",
		"":                                                                                                  "",
	} {
		if got := Off(code); got != want {
			t.Errorf("%q: %q, want %q", code, got, want)
		}
	}
}

func TestLoaded(t *testing.T) {
	for code, want := range map[string][]string{
		"model = PPO.load('models/a.zip')\n":                  {"models/a.zip"},
		"path = f'models/a'\nmodel = PPO.load(path, env)\n":   {"models/a"},
		"path = f'models/{x}'\nmodel = PPO.load(path, env)\n": nil,
		"path = 'a/1'\npath = 'a/2'\nPPO.load(path)\n":        nil,
	} {
		if got := Loaded(code); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", code, got, want)
		}
	}
}

func TestDirectories(t *testing.T) {
	for code, want := range map[string][]string{
		"figure = 'plots/' + name\nplot_curve(x, figure)\n":                                    {"plots"},
		"figure = f'plots/a/{name}.png'\nplot_curve(x, figure)\n":                              {"plots/a"},
		"def __init__(self, chkpt_dir='tmp/sac'):\n    T.save(self.state_dict(), self.file)\n": {"tmp/sac"},
		"def __init__(self, log_dir: str = './logs'):\n    self.save(x)\n":                     {"logs"},
		"def __init__(self, log_dir='/var/log'):\n    self.save(x)\n":                          nil,
		"levels = 'levels/' + name\nself.save(x)\n":                                            nil,
		"figure = 'results/' + name\n":                                                         nil,
	} {
		if got := Directories(code); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", code, got, want)
		}
	}
}

func TestElsewhere(t *testing.T) {
	for code, want := range map[string]string{"a = '/Users/x/data'\n": "/Users/x/data", "a = r'C:\\data\\x'\n": "C:\\data\\x", "a = 'data/x'\n": "", "a = '/tmp/x'\n": ""} {
		if got := Elsewhere(code); got != want {
			t.Errorf("%q: %q, want %q", code, got, want)
		}
	}
}

func TestUses(t *testing.T) {
	for code, want := range map[string]bool{
		"if args.save:\n": true, "if not save:\n": true, "x = args['save']\n": true, "main(**vars(args))\n": true, "run(**args)\n": true, "y = args.save": true,
		"torch.save(net)\n": false, "    save: bool = False\n": false, "p.add_argument('--save')\n": false, "args.save_dir\n": false, "x = y ** 2\n": false,
	} {
		if got := Uses([]string{"", code}, "save"); got != want {
			t.Errorf("%q: %v", code, got)
		}
	}
}
