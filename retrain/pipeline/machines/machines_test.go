package machines

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestLimitsOfMachines(t *testing.T) {
	for name, test := range map[string]struct {
		stage Stage
		want  string // the keys with faults
	}{
		"all":          {Stage{GitHub: true, Name: "training", CPU: 5, GPU: 1, Memory: "16385Mi", Limit: "361m"}, "cpu gpu memory timeout"},
		"none":         {Stage{GitHub: true, Name: "training", CPU: 4, Memory: "16Gi", Limit: "6h"}, ""},
		"label":        {Stage{GitHub: true, Name: "training", Runner: []string{"ubuntu-slim"}, CPU: 5}, "cpu"},
		"Arm":          {Stage{GitHub: true, Name: "gate", Runner: []string{"ubuntu-22.04-arm"}, Limit: "301m"}, "within"},
		"larger":       {Stage{GitHub: true, Name: "training", Runner: []string{"ubuntu-latest-16-cores"}, CPU: 16, Memory: "64Gi", Limit: "4d"}, ""},
		"own":          {Stage{GitHub: true, Name: "training", Runner: []string{"self-hosted", "ubuntu-latest"}, CPU: 16, Limit: "5d"}, "timeout"},
		"Enterprise":   {Stage{GitHub: true, Enterprise: true, Name: "training", Runner: []string{"ubuntu-22.04"}, CPU: 16, GPU: 1, Memory: "64Gi", Limit: "4d"}, ""},
		"its jobs":     {Stage{GitHub: true, Enterprise: true, Name: "gate", Runner: []string{"ubuntu-22.04"}, Limit: "5d"}, "within"},
		"other target": {Stage{Name: "training", CPU: 64, Memory: "1Gi", Limit: "90d"}, ""},
		"GitLab":       {Stage{GitLab: true, Name: "gate", Limit: "31d"}, "within"},
		"month":        {Stage{GitLab: true, Name: "gate", Limit: "30d"}, ""},
		"no duration":  {Stage{GitHub: true, GitLab: true, Name: "gate", Limit: "long"}, ""},
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(test.stage.Faults())), " "); got != test.want {
			t.Errorf("%s: faults of %q, want %q", name, got, test.want)
		}
	}
	if TooLarge("32768Gi") || !TooLarge("32769Gi") || TooLarge("much") {
		t.Error("32768Gi is not the limit")
	}
}
