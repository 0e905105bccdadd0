package pins

import (
	"strings"
	"testing"
)

func TestMisspelled(t *testing.T) {
	for requirement, want := range map[string]string{
		"torchx==0.7.0": "", "numpy2==1.0": "", "panda==0.3.1": "", "pnadas==0.1": "must be pandas, not pnadas", "toorch==1.0": "must be torch", "nmpyy==1": "", "stable-baselines==2.10.2": "", "matplotlb==1": "must be matplotlib",
		"scpiy==1.17.1": "must be scipy, not scpiy", "pandass==2.3.0": "must be pandas", "Tensor_Flow==2.20.0": "must be tensorflow",
		"numpy==2.4.6": "", "toch==1.0": "", "numba==0.60.0": "", "gym==0.26.2": "", "scikit-learnt==1.0": "",
	} {
		if got := Misspelled(requirement, []string{"scikit-learn==1.7.0", requirement}); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", requirement, got, want)
		}
	}
}

func TestEnvironmentsWithNamesNearOnesOfGymnasium(t *testing.T) {
	for _, id := range strings.Fields("CartPole2-v1 CartPoleX-v0 Walker3d-v0 Walkerd-v0 Humanoid2-v0 Swimmer6-v0 FrozenLake8-v1 FrozenLake8x-v1 Humanoids-v0") {
		if got := Unknown(id, nil); got != "" {
			t.Errorf("%s: %q", id, got)
		}
	}
	for id, want := range map[string]string{"LunarLandr-v3": "LunarLander-v3", "CartPloe-v1": "CartPole-v1", "Hummanoid-v5": "Humanoid-v5", "Walekr2d-v5": "Walker2d-v5"} {
		if got := Unknown(id, nil); !strings.HasPrefix(got, "must be "+want+", not "+id) {
			t.Errorf("%s: %q", id, got)
		}
	}
}
