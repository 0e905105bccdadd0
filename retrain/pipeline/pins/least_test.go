package pins

import "testing"

func TestVersionsThatGeneratedScriptsCannotUse(t *testing.T) {
	for _, test := range []struct {
		library, name, wanted string
		old                   bool
	}{
		{"rllib", "ray", "==2.3.0", true},
		{"rllib", "ray", "==2.40.0", true},
		{"rllib", "ray", "==2.41.0", false},
		{"rllib", "ray", ">=2.3", false},
		{"rllib", "ray", ">=2.3,<2.10", true},
		{"rllib", "ray", ">=2.45,<2.50", false},
		{"rllib", "ray", "", false},
		{"rllib", "ray", "<2.5", true},
		{"rllib", "torch", "==1.0", false},
		{"stable-baselines3", "stable-baselines3", "^1.8", true},
		{"stable-baselines3", "stable-baselines3", "~=2.1", false},
		{"custom", "ray", "==2.3.0", false},
		{"cleanrl", "gymnasium", "==0.29.1", true},
		{"stable-baselines3", "stable-baselines3", "nonsense", false},
	} {
		if got := TooOld(test.library, Package{test.name, test.wanted}, "2.60.0"); (got != "") != test.old {
			t.Errorf("%s %s for %s: %q", test.name, test.wanted, test.library, got)
		}
	}
}
