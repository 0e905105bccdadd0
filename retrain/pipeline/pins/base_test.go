package pins

import (
	"strings"
	"testing"
)

// Only a version that needs a later Python than that of an official image is rejected.
func TestBeyondTheBase(t *testing.T) {
	for _, test := range []struct{ base, requirement, want string }{
		{"python:3.9.25-slim-bookworm", "numpy==2.4.6", "must be at most 2.0.2 with Python 3.9, or set base: python:3.11."},
		{"python:3.9.25-slim-bookworm", "numpy==2.2.6", "or set base: python:3.10."},
		{"python:3.11.15@sha256:0", "NumPy[x]==2.5.5", "requires Python 3.12 or later"},
		{"python:3.9.25-slim-bookworm", "numpy==2.0.2", ""},
		{"python:3.9.25", "torch==2.8.0+cu126", ""},
		{"python:3.9.25", "torch==2.9.0+cu126", "must be at most 2.8.0 with Python 3.9"},
		{"python:3.13.1", "numpy==1.21.0", ""}, // pip may build it
		{"python:3.12.1", "numpy==99.0", ""},   // later than the known versions
		{"python:3.6.1", "numpy==2.4.6", ""},
		{"python:3.9.1", "unknown==1.0", ""},
		{"pypy:3.9.1", "numpy==2.4.6", ""},
		{"registry.example.com/python:3.9.1", "numpy==2.4.6", ""},
	} {
		got := Beyond(test.base, test.requirement)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s in %s: %q, want %q", test.requirement, test.base, got, test.want)
		}
	}
}

func TestPinsThatAreTooOld(t *testing.T) {
	for requirement, want := range map[string]string{
		"torch==1.9.1": "must be at least 1.13.0 with Python 3.11", "torch==1.13.0": "", "Torch[x]==1.9.1+cpu": "must be at least",
		"pybullet==0.1": "", "gymnasium==0.21.0": "must be at least 0.26.0, the first release", "unheard-of==0.1": "", "torch": "",
	} {
		if got := Before("python:3.11.2-slim", requirement); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", requirement, got, want)
		}
	}
	for _, test := range [][3]string{
		{"3.10.1", "ipykernel==5.5.6", ""}, {"3.8.20-slim", "nbconvert==6.0.7", ""}, {"3.10.1", "numpy==1.20.3", "must be at least"},
	} {
		if got := Before("python:"+test[0], test[1]); (got == "") != (test[2] == "") || !strings.Contains(got, test[2]) {
			t.Errorf("%s on %s: %q, want %q", test[1], test[0], got, test[2])
		}
	}
}
