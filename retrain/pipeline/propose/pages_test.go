package propose

import "testing"

// Commands of a page may start a script directly, and contain names that stand for values which the page lists.
func TestProposedCommandsOfPages(t *testing.T) {
	const sacred = "import sys, torch\nfrom sacred import Experiment\ndef main():\n    ex = Experiment('x')\n    loss.backward()\n    torch.save(net, 'net.pt')\n    ex.run_commandline(sys.argv)\n" + guard
	const page = "`<algo>` is one of:\n- \"coma\"\n- \"qmix\"\n\n```sh\npython lib/main.py --config=<algo> with env_args.time_limit=25 env_args.key=<scenario>\n```\nThe `<scenario>` can be:\n- \"lbforaging:Foraging-8x8-2p-1f-v3\"\n- \"rware:rware-tiny-2ag-v2\"\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"settings of Sacred": {
			map[string]string{"requirements.txt": "torch==2.4.0\nsacred==0.8.5\n", "README.md": page, "lib/main.py": sacred, "other.py": "make('Hopper-v4')\n"},
			[]string{`main.py" --config=coma with env_args.time_limit=25 env_args.key=lbforaging:Foraging-8x8-2p-1f-v3'`, `{id: "lbforaging:Foraging-8x8-2p-1f-v3"}`, "- lbforaging=="},
			[]string{"<", "\n  - {id: \"Hopper-v4\"}"},
		},
		"a placeholder that nothing explains": {
			map[string]string{"requirements.txt": "torch==2.4.0\nsacred==0.8.5\n", "README.md": "`python lib/main.py --config=<algo>`\n", "lib/main.py": sacred},
			[]string{`main.py"'`},
			[]string{"<algo>", "--config"},
		},
		"a script that is started directly": {
			map[string]string{"requirements.txt": "torch==2.4.0\n", "README.md": "Just run\n\n    ./start-training.py my-run\n\nor play with `game play puzzles`.\n", "setup.py": "setup(name='game', entry_points={'console_scripts': ['game = game.__main__:run']})\n", "game/__init__.py": "", "game/__main__.py": "import argparse\ndef run():\n    p = argparse.ArgumentParser()\n    s = p.add_subparsers()\n    a = s.add_parser('play')\n    b = s.add_parser('new')\n    show(input())\nrun()\n"},
			[]string{"start-training.py\" my-run'"},
			[]string{"game new"},
		},
		"a script that is there": {
			map[string]string{"requirements.txt": "torch==2.4.0\n", "README.md": "    ./run.py --steps 5000\n", "run.py": "import torch\ndef main():\n    loss.backward()\n    torch.save(net, 'net.pt')\n" + guard},
			[]string{`python "$OLDPWD/run.py" --steps 5000'`},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}
