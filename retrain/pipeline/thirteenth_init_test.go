package pipeline

import "testing"

// What was wrong in the proposals for repositories of the thirteenth trial: a package that is called src, and settings of
// which one file is the default.
func TestProposalsForTheThirteenthTrial(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const train = "import argparse, yaml\nfrom pathlib import Path\nfrom stable_baselines3 import PPO\nfrom .environment import World\nROOT = Path(__file__).resolve().parents[1]\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--preset', choices=['quick', 'normal', 'long'], default='normal')\n    p.add_argument('--output-dir', type=Path, default=Path('results'))\n    args = p.parse_args()\n    config = yaml.safe_load((ROOT / 'configs' / f'{args.preset}.yaml').read_text())\n    model = PPO('MlpPolicy', World())\n    model.learn(total_timesteps=int(config['total_timesteps']))\n    model.save(args.output_dir / 'final.zip')\n" + guard
	const evaluate = "import argparse\nfrom stable_baselines3 import PPO\nfrom .environment import World\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('model')\n    args = p.parse_args()\n    evaluate(PPO.load(args.model), World())\n" + guard
	const world = "import gymnasium as gym\nclass World(gym.Env):\n    pass\n"
	const own = "import argparse, torch, yaml\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--config', type=str, required=True)\n    args = p.parse_args()\n    config = yaml.safe_load(open(args.config))\n    env = gym.make(config['env_id'])\n    train(env, config['total_steps'])\n    torch.save(net, 'net.pth')\n" + guard
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a package that is called src": {
			map[string]string{
				"requirements.txt": "stable-baselines3==2.9.0\n", "src/__init__.py": "", "src/train.py": train, "src/evaluate.py": evaluate, "src/environment.py": world,
				".github/workflows/ci.yml": "      - run: python -m src.train --preset quick --output-dir ci-results\n",
				"configs/quick.yaml":       "total_timesteps: 20000\n", "configs/normal.yaml": "total_timesteps: 100000\n", "configs/long.yaml": "total_timesteps: 300000\n",
			},
			[]string{`'exec python -m src.train --output-dir "$WORK/model"'`, `'exec python -m src.evaluate "$(find `, `steps: 100000 # "configs/normal.yaml"`},
			nil,
		},
		"programs in src": {
			map[string]string{"requirements.txt": "stable-baselines3==2.9.0\n", "src/pack/__init__.py": "", "src/pack/train.py": train, "src/pack/environment.py": world},
			[]string{`'exec python -m pack.train --output-dir "$WORK/model"'`},
			nil,
		},
		"settings of the command": {
			map[string]string{
				"requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\n", "train.py": own,
				"configs/a_racing.yaml": "env_id: CarRacing-v3\ntotal_steps: 2000000\n", "configs/b_train_lander.yaml": "env_id: LunarLander-v3\ntotal_steps: 1500000\n",
			},
			[]string{`--config "$OLDPWD/configs/b_train_lander.yaml"`, `  - {id: "LunarLander-v3"}`, `  # - {id: "CarRacing-v3"}`, "steps: 1500000 "},
			nil,
		},
		"settings of the page": {
			map[string]string{
				"requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\n", "train.py": own, "README.md": "```\npython train.py --config configs/a_racing.yaml\n```\n",
				"configs/a_racing.yaml": "env_id: CarRacing-v3\ntotal_steps: 2000000\n", "configs/b_train_lander.yaml": "env_id: LunarLander-v3\ntotal_steps: 1500000\n",
			},
			[]string{`--config "$OLDPWD/configs/a_racing.yaml"`, `  - {id: "CarRacing-v3"}`, `  # - {id: "LunarLander-v3"}`, "steps: 2000000 "},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}
