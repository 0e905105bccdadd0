package pins

import "testing"

// The use of interfaces that only old versions of a package have decides which version is proposed.
func TestInterfacesOfOldVersions(t *testing.T) {
	for name, test := range map[string]struct {
		text, gym, hydra string
	}{
		"the seed of an environment":     {"env.seed(cfg.seed)\n", "0.25.2", ""},
		"seeds of several":               {"envs.seed(1)\n", "0.25.2", ""},
		"four results of a step":         {"    obs, reward, done, info = self.env.step(action)\n", "0.25.2", ""},
		"without names for two":          {"s, _, done, _ = env.step(a)\n", "0.25.2", ""},
		"an environment of its own":      {"    def step(self, action):\n        return self.state(), reward, self.done, self.info\n", "0.25.2", ""},
		"a new one of its own":           {"        return obs, reward, done, False, {}\n", "", ""},
		"the list of all environments":   {"for e in gym.envs.registry.all():\n", "0.25.2", ""},
		"a window of its own":            {"from gym.envs.classic_control import rendering\n", "0.21.0", ""},
		"the old recorder":               {"env = gym.wrappers.Monitor(env, 'v')\nenv.seed(1)\n", "0.21.0", ""},
		"five results":                   {"obs, reward, done, truncated, info = env.step(action)\n", "", ""},
		"the seed of a space":            {"env.action_space.seed(1)\n", "", ""},
		"Hydra 0.11":                     {"@hydra.main(config_path='config/train.yaml', strict=True)\n", "", "0.11.3"},
		"Hydra 1":                        {"@hydra.main(config_path='cfgs', config_name='config')\n", "", ""},
		"strictness of something else":   {"@hydra.main(config_path='cfgs')\ndef main(cfg):\n    load(strict=True)\n", "", ""},
		"a time step of another library": {"time_step = env.step(action)\n", "", ""},
	} {
		var i Interfaces
		i.Take("train.py", []byte(test.text))
		gym, of := i.Last("gym")
		hydra, _ := i.Last("hydra-core")
		if torch, _ := i.Last("torch"); gym != test.gym || hydra != test.hydra || torch != "" || (of == "") != (gym == "") {
			t.Errorf("%s: gym %q of %q, hydra-core %q", name, gym, of, hydra)
		}
	}
}

func TestOldAgentsOfRay(t *testing.T) {
	var i Interfaces
	i.Take("train.py", []byte("from ray.rllib.agents import ppo\nobs, reward, done, info = env.last()\n_, done, _, _ = parallel.last()\nenv.seed(1)\n"))
	for name, want := range map[string]string{"ray": "2.2.0", "pettingzoo": "1.19.0", "gym": "", "gymnasium": ""} {
		if v, file := i.Last(name); v != want || (file == "") != (want == "") {
			t.Errorf("%s: %q of %q, want %q", name, v, file, want)
		}
	}
	i = Interfaces{}
	i.Take("train.py", []byte("from ray.rllib.algorithms import ppo\nobs, reward, terminated, truncated, info = env.last()\n"))
	if ray, _ := i.Last("ray"); ray != "" {
		t.Error(ray)
	}
	if zoo, _ := i.Last("pettingzoo"); zoo != "" {
		t.Error(zoo)
	}
}

func TestChangedNamesOfRayAndGymnasium(t *testing.T) {
	for text, want := range map[string][2]string{
		"from ray.rllib.core.rl_module.rl_module import SingleAgentRLModuleSpec\n":                                                          {"2.31.0", ""},
		"from ray.rllib.algorithms.ppo import PPOConfig\nc = PPOConfig().rollouts(num_rollout_workers=2)\n":                                 {"2.31.0", ""},
		"from ray.rllib.algorithms.ppo import PPOConfig\nc = PPOConfig().env_runners(num_env_runners=2)\n":                                  {"", ""},
		"import gymnasium as gym\nenvs = gym.vector.make('Ant-v4', num_envs=2)\n":                                                           {"", "0.29.1"},
		"import gymnasium as gym\nreal_next_obs[i] = infos['final_observation'][i]\n":                                                       {"", "0.29.1"},
		"import gym\nenvs = gym.vector.make('Ant-v4', num_envs=2)\n":                                                                        {"", ""},
		"import gymnasium as gym\nx = infos['final_observation']\nenv = gym.wrappers.TransformObservation(env, f, env.observation_space)\n": {"", ""},
		"# rllib\nfrom ray import tune\nx = buffer.rollouts(3)\n":                                                                           {"", ""},
		"from ray.rllib.algorithms.ppo import PPOConfig\nx = f(config, buffer.rollouts(3))\n":                                               {"", ""},
		"from ray import rllib\nconfig.rollouts(num_rollout_workers=2)\n":                                                                   {"2.31.0", ""},
		"import ray.rllib\nc = (\n    PPOConfig()\n    .training(f(1))\n    .rollouts(n=2)\n)\n":                                            {"2.31.0", ""},
		"from ray.rllib.algorithms.ppo import PPOConfig\nc = PPOConfig().environment(f(1)).rollouts(n=2)\n":                                 {"2.31.0", ""},
		"import gymnasium as gym\nclass FrameStack(gym.Wrapper):\n    pass\nFrameStack(e)\n":                                                {"", ""},
		"import gymnasium as gym\nfrom .wrappers import FrameStack\nFrameStack(e)\n":                                                        {"", ""},
		"import gymnasium as gym\nclass LazyFrames:\n    pass\nx = LazyFrames(a)\n":                                                         {"", ""},
		"import gymnasium\nfrom gymnasium.wrappers import FrameStackObservation\nFrameStackObservation(e)\n":                                {"", ""},
		"try:\n    from gymnasium.wrappers import FrameStack\nexcept ImportError:\n    class FrameStack(gym.Wrapper):\n        pass\n":      {"", ""},
		"from gymnasium.wrappers import (\n    A,\n    FrameStack,\n)\n":                                                                    {"", "0.29.1"},
		"from gymnasium.wrappers.frame_stack import LazyFrames\n":                                                                           {"", "0.29.1"},
		"import gymnasium as gym\ne = gym.wrappers.FrameStack(e, 4)\n":                                                                      {"", "0.29.1"},
		"import gymnasium as gym\nclass FrameStack(gym.wrappers.FrameStack):\n    pass\n":                                                   {"", "0.29.1"},
		"from gymnasium import wrappers\ne = wrappers.FrameStack(e, 4)\n":                                                                   {"", "0.29.1"},
		"import gymnasium as gym\nenvs = gym.make_vec('Ant-v4', num_envs=2)\n":                                                              {"", ""},
	} {
		var i Interfaces
		i.Take("train.py", []byte(text))
		ray, _ := i.Last("ray")
		gymnasium, _ := i.Last("gymnasium")
		if ray != want[0] || gymnasium != want[1] {
			t.Errorf("%s: ray %q, gymnasium %q", text, ray, gymnasium)
		}
	}
}

func TestRemovedNamesOfJAX(t *testing.T) {
	for text, want := range map[string]string{
		"def f(key: jax.random.KeyArray):\n":       "0.4.23",
		"from jax.random import KeyArray, split\n": "0.4.23",
		"x = jax.tree_map(f, x)\n":                 "0.4.28",
		"from jax.config import config\n":          "0.4.23",
		"x = jax.tree.map(f, x)\n":                 "",
	} {
		var i Interfaces
		i.Take("train.py", []byte(text))
		if v, _ := i.Last("jax"); v != want {
			t.Errorf("%s: %q, want %q", text, v, want)
		}
	}
}

func TestTensorboardComesWithOthers(t *testing.T) {
	for requirement, want := range map[string]bool{
		"tensorboard": true, "tensorflow": true, "stable-baselines3[extra]": true, "stable_baselines3[extra]": true,
		"stable-baselines3": false, "tensorboardX": false, "tb-nightly": false, "torch": false,
	} {
		if got := HasTensorboard(requirement); got != want {
			t.Errorf("%s: %v", requirement, got)
		}
	}
}

// Interfaces that a library removed, and environments that it leaves to extras.
func TestInterfacesOfLibraries(t *testing.T) {
	for text, want := range map[string]string{
		"result = ts.trainer.OffpolicyTrainer(policy=policy, max_epoch=5).run()\n": "1.2.0",
		"result = offpolicy_trainer(policy, train, test, 5)\n":                     "0.5.1",
		"result = ts.trainer.OffPolicyTrainer(params).run()\n":                     "",
	} {
		var i Interfaces
		i.Take("train.py", []byte(text))
		if got, _ := i.Last("tianshou"); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	var i Interfaces
	i.Take("a.py", []byte("from pettingzoo.mpe import simple_tag_v3\n"))
	i.Take("b.py", []byte("import pettingzoo.sisl\nfrom pettingzoo.mpe import simple_v3\n"))
	if v, file := i.Last("pettingzoo"); v != "1.25.0" || file != "a.py" {
		t.Errorf("%q of %q", v, file)
	}
	if got := i.OfZoo("pettingzoo"); got["pygame"] == "" || got["pymunk"] != "b.py" || got["chess"] != "" {
		t.Error(got)
	}
	if got := i.OfZoo("PettingZoo[mpe,sisl]"); len(got) > 0 {
		t.Error(got)
	}
}

func TestNamesThatNumPyRemoved(t *testing.T) {
	for text, removed := range map[string]bool{
		"x = np.bool\n": true, "x.astype(numpy.int)\n": true, "dtype=np.float)": true, "np.object": true,
		"np.bool_\n": false, "np.bool8\n": false, "np.int64(1)\n": false, "np.float32\n": false, "jnp.float(1)": false, "np.integer": false,
	} {
		var i Interfaces
		i.Take("a.py", []byte(text))
		if v, _ := i.Last("numpy"); (v == "1.23.5") != removed {
			t.Errorf("%q: %q", text, v)
		}
	}
}

// Code that chooses by the version of Python, or handles a missing name, does not limit the version.
func TestLimitsOfPython(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"a removed function":                {"spec = inspect.getargspec(f)\n", "3.10"},
		"a removed name":                    {"if isinstance(x, collections.Mapping):\n    pass\n", "3.9"},
		"the new function first":            {"try:\n    spec = inspect.getfullargspec(f)\nexcept AttributeError:\n    spec = inspect.getargspec(f)\n", ""},
		"a handler":                         {"try:\n    spec = new(f)\nexcept AttributeError:\n    # before\n    spec = inspect.getargspec(f)\n", ""},
		"a handler of something else":       {"try:\n    spec = new(f)\nexcept KeyError:\n    spec = inspect.getargspec(f)\n", "3.10"},
		"the old function first":            {"try:\n    spec = inspect.getargspec(f)\nexcept AttributeError:\n    spec = new(f)\n", ""},
		"a try for something else":          {"try:\n    spec = inspect.getargspec(f)\nfinally:\n    close()\n", "3.10"},
		"a condition":                       {"if sys.version_info[0] < 3:\n    def of(f):\n\n        return inspect.getargspec(f)\n", ""},
		"the other branch":                  {"if sys.version_info[0] >= 3:\n    of = new\nelse:\n    of = inspect.getargspec(f)\n", ""},
		"a branch of another condition":     {"if sys.version_info[0] >= 3:\n    of = new\nif old:\n    of = 1\nelse:\n    of = inspect.getargspec(f)\n", "3.10"},
		"code after a condition":            {"if sys.version_info[0] < 3:\n    old = True\nspec = inspect.getargspec(f)\n", "3.10"},
		"a conditional expression":          {"Map = collections.Mapping if sys.version_info < (3, 3) else abc.Mapping\n", ""},
		"one use with, one without a guard": {"Map = collections.Mapping if sys.version_info < (3, 3) else abc.Mapping\nisinstance(x, collections.Sized)\n", "3.9"},
		"a coroutine":                       {"inspect.signature(f)\n@asyncio.coroutine\ndef run():\n    pass\n", "3.10"},
	} {
		var i Interfaces
		i.Take("train.py", []byte(test.text))
		if got, file := i.PythonBelow(); got != test.want || (file == "") != (got == "") {
			t.Errorf("%s: %q of %q, want %q", name, got, file, test.want)
		}
	}
}
