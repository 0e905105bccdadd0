package machines

import (
	"strings"
	"testing"
)

func TestHostsInsideNetworks(t *testing.T) {
	for host, want := range map[string]struct {
		where   string
		certain bool
	}{
		"localhost": {"machine", true}, "127.0.0.1": {"machine", true}, "::1": {"machine", true}, "[::1]": {"machine", true}, "0.0.0.0": {"machine", true}, "::ffff:127.0.0.1": {"machine", true},
		"rewardwatch.ml.svc": {"Kubernetes", true}, "rewardwatch.ml.svc.cluster.local": {"Kubernetes", true}, "Kafka-0.kafka.data.SVC.corp.example.": {"Kubernetes", true},
		"10.0.0.7": {"address", false}, "192.168.1.4": {"address", false}, "fd00::1": {"address", false}, "169.254.0.1": {"address", false},
		"kafka": {"name", false}, "host.docker.internal": {"name", false}, "nas.local": {"name", false},
		"example.com": {"", false}, "svc.example.com": {"", false}, "8.8.8.8": {"", false}, "2001:db8::1": {"", false}, "": {"", false},
	} {
		where, certain := Inside(host)
		if (where == "") != (want.where == "") || !strings.Contains(where, want.where) || certain != want.certain {
			t.Errorf("%s: %q, %v", host, where, certain)
		}
	}
}

func TestSharedMachines(t *testing.T) {
	for _, test := range []struct {
		stage Stage
		api   string
		want  bool
	}{
		{Stage{GitLab: true}, "", true},
		{Stage{GitLab: true, Runner: []string{"saas-linux-small-amd64"}}, "https://gitlab.com", true},
		{Stage{GitLab: true, Runner: []string{"gpu"}}, "", false},
		{Stage{GitLab: true}, "https://gitlab.example.com", false},
		{Stage{GitHub: true}, "", false},
	} {
		if got := test.stage.MayBeShared(test.api); got != test.want {
			t.Errorf("%+v at %q: %v", test.stage, test.api, got)
		}
	}
}

func TestRegistriesOfImages(t *testing.T) {
	for image, want := range map[string]string{
		"ghcr.io/acme/lander": "ghcr.io", "localhost:5000/x": "localhost:5000", "localhost/x": "localhost", "acme/lander": "", "python:3.11.15-slim": "",
		"registry.example.com:5000/python@sha256:0": "registry.example.com:5000",
	} {
		if host, named := Registry(image); named != (want != "") || named && host != want {
			t.Errorf("%s: %q, %v", image, host, named)
		}
	}
}
