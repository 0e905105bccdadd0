package pins

import "testing"

func TestGone(t *testing.T) {
	for name, test := range map[string]struct {
		p        Package
		imported string
		want     bool
	}{
		"a package of Conda":                 {Package{"mkl-fft", "==1.0.15"}, "", true},
		"a package of Conda that is used":    {Package{"mkl-service", "==2.3.0"}, "mkl", false},
		"a package of Conda, of any version": {Package{"mkl-fft", ""}, "", false},
		"a nightly build":                    {Package{"tb-nightly", "==2.3.0a20200422"}, "", true},
		"a nightly build of TensorFlow":      {Package{"tf-nightly", "==2.2.0.dev20200422"}, "", true},
		"any nightly build":                  {Package{"tf-nightly", ""}, "", false},
		"another package":                    {Package{"numpy", "==1.19.5"}, "", false},
	} {
		if got := Gone(test.p, func(module string) bool { return module == test.imported }); (got != "") != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
