package pipeline

import "testing"

// What was wrong in the proposals for repositories of the sixteenth trial: an RLlib that the generated script cannot use.
func TestProposalsForTheSixteenthTrial(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const cartpole = "import ray\nfrom ray.rllib.algorithms.ppo import PPOConfig\ndef main():\n    algo = PPOConfig().environment('CartPole-v1').training(lr=1e-4).build()\n    algo.train()\n    algo.save('model')\n" + guard
	const enjoy = "from ray.rllib.algorithms.algorithm import Algorithm\ndef main():\n    evaluate(Algorithm.from_checkpoint('model'))\n" + guard
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"an RLlib that is too old": {
			map[string]string{"requirements.txt": "ray[rllib]==2.3.0\ntorch==2.0.1\n", "train.py": cartpole, "evaluate.py": enjoy},
			[]string{
				"library: custom # requirements.txt requires ray[rllib]==2.3.0, but it must be 2.41.0 or later because the generated scripts need build_algo() of a config\n",
				"python \"$OLDPWD/train.py\"", "python \"$OLDPWD/evaluate.py\"", "- ray[rllib]==2.3.0",
			},
			[]string{"name: PPO"},
		},
		"an RLlib that is new enough": {
			map[string]string{"requirements.txt": "ray[rllib]>=2.3.0\ntorch\n", "train.py": cartpole, "evaluate.py": enjoy},
			[]string{"library: rllib\n", "- ray[rllib]==2.60.0"},
			nil,
		},
		"a Stable-Baselines3 for Gym": {
			map[string]string{"requirements.txt": "stable-baselines3<2\ngym==0.21.0\n", "train.py": "import gym\nfrom stable_baselines3 import PPO\nPPO('MlpPolicy', gym.make('CartPole-v1')).learn(1000)\n"},
			[]string{"library: custom # requirements.txt requires stable-baselines3<2, but it must be 2.0.0 or later"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}
