package pins

import (
	"strings"
	"testing"
)

func TestImagesThatCannotBeTheBase(t *testing.T) {
	for image, want := range map[string]string{
		"python:2.7.18-slim": "not 2.7", "registry.example/python:3.6.15": "not 3.6", "python:3.99.1": "not 3.99", "python:4-slim": "not 4",
		"node:22.1.0": "which node is not", "docker.io/library/ruby:3.4.1": "which ruby is not", "golang@sha256:" + strings.Repeat("a", 64): "which golang is not",
		"python:3.13.1-windowsservercore-ltsc2022": "must be an image of Linux", "mcr.microsoft.com/windows:10.1": "must be an image of Linux",
		"python:3.12.4-slim": "", "python@sha256:" + strings.Repeat("a", 64): "", "acme/node:1.0": "", "registry.example/golang:1.26": "",
		"ubuntu:24.04": "", "nvidia/cuda:12.8.1-runtime-ubuntu24.04": "", "python:slim": "",
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
	for requirement, want := range map[string]string{
		"scpiy==1.17.1": "must be scipy==1.17.1, not scpiy", "pandass==2.3.0": "must be pandas", "Tensor_Flow==2.20.0": "must be tensorflow",
		"numpy==2.4.6": "", "toch==1.0": "", "numba==0.60.0": "", "gym==0.26.2": "", "scikit-learnt==1.0": "",
	} {
		if got := Misspelled(requirement, []string{"scikit-learn==1.7.0", requirement}); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", requirement, got, want)
		}
	}
}
