package pins

import (
	"strings"
	"testing"
)

func TestImagesThatCannotBeTheBase(t *testing.T) {
	for image, want := range map[string]string{
		"python:2.7.18-slim": "not 2.7", "docker.io/library/python:3.6.15": "not 3.6", "python:3.5@sha256:0": "not 3.5", "python:4-slim": "not 4",
		"node:22.1.0": "which node is not", "docker.io/library/ruby:3.4.1": "which ruby is not", "golang@sha256:" + strings.Repeat("a", 64): "which golang is not",
		"python:3.13.1-windowsservercore-ltsc2022": "must be an image of Linux", "mcr.microsoft.com/windows:10.1": "must be an image of Linux",
		"python:3.12.4-slim": "", "python@sha256:" + strings.Repeat("a", 64): "", "acme/node:1.0": "", "registry.example/golang:1.26": "",
		"ubuntu:24.04": "", "nvidia/cuda:12.8.1-runtime-ubuntu24.04": "", "python:slim": "",
		"python:3.15.0-slim-bookworm": "", "registry.acme.io/python:2024.1": "", "acme/python:2.7": "", "registry:5000/acme/python-train:3.11.15": "",
		"docker:5000/acme/train:1.0": "", "vault:8200/train@sha256:" + strings.Repeat("a", 64): "", "docker:27.1": "which docker is not", "vault@sha256:0": "which vault is not",
		"acme/time-windows:1.2.3": "", "windows-sim/acme:1.0": "", "windows:5000/acme/train:1.0": "", "acme/sim:1.0-windowsize": "",
		"windows/servercore:ltsc2022": "must be an image of Linux", "mcr.microsoft.com/windows/server:1.0": "must be an image of Linux",
		"acme/python:3.12.1-nanoserver": "must be an image of Linux", "python:windowsservercore-ltsc2022@sha256:0": "must be an image of Linux",
	} {
		if got := NoPython(image); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}

func TestPinsThatAreTooOldOrMisspelled(t *testing.T) {
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
