package strict

import "testing"

func TestNamesOfAttributes(t *testing.T) {
	for name, good := range map[string]bool{"gravity": true, "größe": true, "_m2": true, "2m": false, "wind-power": false, "lambda": false, "self": false, "__dict__": false, "": false} {
		if fault := Attribute(name); (fault == "") != good {
			t.Errorf("%q: %q", name, fault)
		}
	}
}
