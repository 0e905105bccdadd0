package recipe

import (
	"reflect"
	"testing"
)

// A difference in the order is found, in a recipe or in a request. A recipe that names no order requests a
// retraining.
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
