package telemetry

import (
	"encoding/json"
	"os"
	"testing"
)

// TestPythonPackageKnowsWhatIsRefused reads the events with which the checks of the Python package are tested.
func TestPythonPackageKnowsWhatIsRefused(t *testing.T) {
	text, err := os.ReadFile("../emitters/python/tests/events.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Event   json.RawMessage `json:"event"`
		Refused string          `json:"refused"` // what the package says
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("no events")
	}
	for _, c := range cases {
		if _, refused := decodeAll(string(c.Event)); (len(refused) > 0) != (c.Refused != "") {
			t.Errorf("%s: the package says %q, the service %v", c.Event, c.Refused, refused)
		}
	}
}
