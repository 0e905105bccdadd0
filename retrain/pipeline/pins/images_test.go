package pins

import (
	"strings"
	"testing"
)

func TestImagesThatCannotBeTheBase(t *testing.T) {
	for image, want := range map[string]string{
		"python:2.7.18-slim": "not 2.7", "docker.io/library/python:3.6.15": "not 3.6", "python:3.5@sha256:0": "not 3.5", "python:4-slim": "not 4",
		"node:22.1.0": "unlike node", "docker.io/library/ruby:3.4.1": "unlike ruby", "golang@sha256:" + strings.Repeat("a", 64): "unlike golang",
		"python:3.13.1-windowsservercore-ltsc2022": "must be a Linux image", "mcr.microsoft.com/windows:10.1": "must be a Linux image",
		"python:3.12.4-slim": "", "python@sha256:" + strings.Repeat("a", 64): "", "acme/node:1.0": "", "registry.example/golang:1.26": "",
		"ubuntu:24.04": "", "nvidia/cuda:12.8.1-runtime-ubuntu24.04": "", "python:slim": "",
		"python:3.15.0-slim-bookworm": "", "registry.acme.io/python:2024.1": "", "acme/python:2.7": "", "registry:5000/acme/python-train:3.11.15": "",
		"docker:5000/acme/train:1.0": "", "vault:8200/train@sha256:" + strings.Repeat("a", 64): "", "docker:27.1": "unlike docker", "vault@sha256:0": "unlike vault",
		"acme/time-windows:1.2.3": "", "windows-sim/acme:1.0": "", "windows:5000/acme/train:1.0": "", "acme/sim:1.0-windowsize": "",
		"windows/servercore:ltsc2022": "must be a Linux image", "mcr.microsoft.com/windows/server:1.0": "must be a Linux image",
		"acme/python:3.12.1-nanoserver": "must be a Linux image", "python:windowsservercore-ltsc2022@sha256:0": "must be a Linux image",
	} {
		if got := NoPython(image); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}
