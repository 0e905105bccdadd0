package recipe

import (
	"reflect"
	"testing"
)

// The order differs, be it in a recipe or in a request. A retraining is what every recipe orders that does not name it.
func TestOrdersDiffer(t *testing.T) {
	retraining := testRecipes(t)["ranker"]
	freeze := *retraining
	freeze.Kind = Freeze
	want := []Difference{{Path: "order", New: &Leaf{Path: "order", Value: `"freeze"`}}}
	if got := Differences(retraining.Leaves(), freeze.Leaves()); !reflect.DeepEqual(got, want) {
		t.Errorf("recipes: %+v", got)
	}
	data := `{"contract": {"expected": {}}, "config": {}`
	old, err := LeavesOfOrder([]byte(data + "}"))
	check(t, err)
	now, err := LeavesOfOrder([]byte(data + `, "order": "freeze"}`))
	check(t, err)
	if got := Differences(old, now); !reflect.DeepEqual(got, want) {
		t.Errorf("requests: %+v", got)
	}
}
