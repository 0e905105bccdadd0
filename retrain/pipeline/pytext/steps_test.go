package pytext

import (
	"strings"
	"testing"
)

// Numbers that may be the steps of a whole training are found, however a program or its settings name them.
func TestStepsOfAText(t *testing.T) {
	for text, want := range map[string]string{
		"flags.DEFINE_integer('max_steps', int(1e6), 'x')":                  "1000000",
		"collector:\n  total_frames: 1_000_000\n  frames_per_batch: 2048\n": "1000000 clearly",
		"num_train_steps: 1e6":                                               "1000000",
		"model.learn(total_timesteps=25_000)":                                "25000 clearly",
		"max_frames_per_traj: 5000, n_frames: 4":                             "",
		"p.add_argument('--total-env-steps', type=int, default=2e6)":         "2000000 clearly",
		"a = b\nb = a * 2\nmodel.learn(a)":                                   "",
		"maddpg.learn(args.batch_size, args.gamma)\nbatch_size = 1024":       "",
		"MAX = 100\nPER = 10000\nTrainer(max_epoch=MAX, step_per_epoch=PER)": "1000000 clearly",
		"n = 4 ** 5 * (10 - 2) // 2\nmodel.learn(n * 10)":                    "40960 clearly",
	} {
		var got []string
		for _, x := range StepsOf([]byte(text)) {
			line := x.Number
			if x.Clearly {
				line += " clearly"
			}
			got = append(got, line)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
