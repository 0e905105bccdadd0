package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The binary contains neither the demo's broker nor test helpers.
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

// Test code is only linked because a package of River imports its own test helpers.
func TestOnlyRiverLinksTestCode(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", `{{$by := .ImportPath}}{{range .Imports}}{{$by}} {{.}}{{"\n"}}{{end}}`, ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	imports := 0
	for line := range strings.Lines(string(out)) {
		by, name, is := strings.Cut(strings.TrimSpace(line), " ")
		if !is {
			continue
		}
		imports++
		if isTestCode(name) && !isTestCode(by) && by != "github.com/riverqueue/river/rivershared/testsignal" {
			t.Errorf("%s links %s", by, name)
		}
	}
	if imports < 1000 {
		t.Errorf("only %d imports", imports)
	}
}

// isTestCode reports whether a package is only useful in tests.
func isTestCode(name string) bool {
	for _, prefix := range []string{
		"testing", "net/http/httptest", "github.com/stretchr/testify", "go.uber.org/goleak", "github.com/riverqueue/river/rivershared/riversharedtest",
	} {
		if name == prefix || strings.HasPrefix(name, prefix+"/") {
			return true
		}
	}
	return false
}
