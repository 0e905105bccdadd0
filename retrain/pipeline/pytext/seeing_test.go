package pytext

import (
	"slices"
	"testing"
)

func TestSeeingOf(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want Seeing
	}{
		"vectors":              {`model = PPO("MlpPolicy", env)`, Seeing{Policy: "MlpPolicy"}},
		"images":               {`model = PPO(policy='CnnPolicy', env=env)`, Seeing{Policy: "CnnPolicy"}},
		"dictionaries":         {`SAC("MultiInputPolicy", env, replay_buffer_class=HerReplayBuffer)`, Seeing{Policy: "MultiInputPolicy"}},
		"a class":              {"from stable_baselines3.ppo import CnnPolicy\nPPO(CnnPolicy, env)", Seeing{Policy: "CnnPolicy"}},
		"its long name":        {"PPO(ActorCriticCnnPolicy, env)", Seeing{Policy: "CnnPolicy"}},
		"a class of its own":   {"class GraphPolicy(ActorCriticPolicy): pass\nPPO(GraphPolicy, env)", Seeing{Own: "GraphPolicy"}},
		"default of several":   {`p.add_argument("--policy", choices=["MlpPolicy", "CnnPolicy"], default="CnnPolicy")`, Seeing{Policy: "CnnPolicy"}},
		"frames by name":       {`env = VecFrameStack(make_vec_env("CarRacing-v3"), n_stack=3)`, Seeing{Frames: 3}},
		"frames by position":   {`env = VecFrameStack(env, 2)`, Seeing{Frames: 2}},
		"frames of an option":  {"p.add_argument('--n-stack', type=int, default=6)\nVecFrameStack(env, n_stack=args.n_stack)", Seeing{Frames: 6}},
		"frames not said":      {"VecFrameStack(env, stack)", Seeing{Frames: 4}},
		"games":                {"env = make_atari_env('PongNoFrameskip-v4', n_envs=4)\nenv = VecFrameStack(env, n_stack=4)\nA2C('CnnPolicy', env)", Seeing{Policy: "CnnPolicy", Frames: 4, Atari: true}},
		"imported and unused":  {"from stable_baselines3.common.vec_env import VecFrameStack\nfrom stable_baselines3.common.env_util import make_atari_env", Seeing{}},
		"wrappers of settings": {"policy: 'CnnPolicy'\nframe_stack: 4\nenv_wrapper:\n  - stable_baselines3.common.atari_wrappers.AtariWrapper\n", Seeing{Policy: "CnnPolicy", Frames: 4, Atari: true}},
		"too many frames":      {"VecFrameStack(env, n_stack=400)", Seeing{Frames: 4}},
		"a policy of others":   {"name = 'PrivacyPolicy'", Seeing{}},
	} {
		if got := SeeingOf([]byte(test.text)); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestAgreedSeeing(t *testing.T) {
	cnn, mlp, games := Seeing{Policy: "CnnPolicy"}, Seeing{Policy: "MlpPolicy", Frames: 2}, Seeing{Frames: 4, Atari: true}
	for name, test := range map[string]struct {
		all  []Seeing
		want Seeing
	}{
		"parts":               {[]Seeing{games, cnn}, Seeing{Policy: "CnnPolicy", Frames: 4, Atari: true}},
		"the other way round": {[]Seeing{cnn, games}, Seeing{Policy: "CnnPolicy", Frames: 4, Atari: true}},
		"a contradiction":     {[]Seeing{cnn, mlp}, Seeing{Frames: 2}},
		"two":                 {[]Seeing{games, mlp}, Seeing{Policy: "MlpPolicy", Atari: true}},
		"nothing":             {nil, Seeing{}},
	} {
		if got := Agreed(slices.Values(test.all)); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
