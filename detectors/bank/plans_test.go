package bank

import (
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/gate"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// The parts of a bank are decoded by plans, with the same result as by the general decoder.
func TestPartsAreReadByPlans(t *testing.T) {
	for name, make := range savedCases() {
		t.Run(name, func(t *testing.T) {
			c := make()
			p := newBank(c.cfg)
			c.feed(p, c.cut)
			parts, _, err := p.Changes()
			if err != nil {
				t.Fatal(err)
			}
			for part, data := range parts {
				switch {
				case part == policyPart:
					isPlanned[policyWire](t, part, data)
				case part == usedPart:
					isPlanned[usedWire](t, part, data)
				case strings.HasSuffix(part, runningPart):
					isPlanned[groupWire](t, part, data)
				case strings.HasSuffix(part, frozenPart):
					isPlanned[frozenWire](t, part, data)
				case strings.HasSuffix(part, gatesPart):
					isPlanned[gate.Wire](t, part, data)
				default:
					t.Errorf("part %s", part)
				}
			}
		})
	}
}

func isPlanned[Wire any](t *testing.T, part string, data []byte) {
	t.Helper()
	got, whole := saved.Planned[Wire](data[1:])
	want, err := saved.General[Wire](data[1:])
	if err != nil {
		t.Fatalf("%s: %v", part, err)
	}
	if !whole {
		t.Errorf("%s is left to the general decoder", part)
	} else if got, want := ingesttest.Text(got), ingesttest.Text(want); got != want {
		t.Errorf("%s is read as\n%s\nand not as\n%s", part, got, want)
	}
}
