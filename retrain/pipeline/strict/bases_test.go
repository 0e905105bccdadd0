package strict

import "testing"

func TestImagesOfDebian(t *testing.T) {
	for base, want := range map[string]bool{
		"python:3.12.3-slim": true, "python:3.12.3-alpine3.22": false, "debian:12.11-slim": true, "ubuntu:24.04": true,
		"nvidia/cuda:12.8.1-runtime-ubuntu24.04": true, "oraclelinux:9-slim": false, "node:22.1.0-bookworm-slim": true, "ghcr.io/acme/train:1.2-slim": false,
	} {
		if got := IsDebian(base); got != want {
			t.Errorf("%s: %v", base, got)
		}
	}
}
