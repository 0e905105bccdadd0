package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The binary has neither the broker of the demo nor helpers of tests.
func TestBinaryLinksNoBroker(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, "github.com/segmentio/kafka-go") {
		t.Fatal("go list says nothing of the Kafka client")
	}
	for _, name := range packages {
		ours, is := strings.CutPrefix(name, "github.com/rewardwatch/rewardwatch/")
		if name == "github.com/twmb/franz-go/pkg/kfake" || strings.HasPrefix(name, "github.com/compose-spec/") || is && strings.HasSuffix(ours, "test") {
			t.Errorf("the binary links %s", name)
		}
	}
}
