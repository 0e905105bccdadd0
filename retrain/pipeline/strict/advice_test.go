package strict

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

func TestProblemsThatFollowFromOthersAreLeftOut(t *testing.T) {
	at := yamlfile.Place{File: "f", Line: 4, Column: 2}
	cause := yamlfile.Problem{Place: at, Path: "targets[1]", Message: "must be one of make, argo, not \"mkae\""}
	follows := yamlfile.Problem{Place: at, Path: "training.timeout", Message: "has no effect with the targets mkae: omit it"}
	other := yamlfile.Problem{Place: at, Path: "training.steps", Message: "must be from 1 to 9, not 0"}
	if got := Causes([]yamlfile.Problem{follows, cause, other}); len(got) != 2 || got[0] != cause || got[1] != other {
		t.Errorf("%v remain", got)
	}
	if got := Causes([]yamlfile.Problem{follows, other}); len(got) != 2 {
		t.Errorf("%v remain without their cause", got)
	}
	twice := yamlfile.Problem{Place: at, Path: "targets[1]", Message: "is listed twice"}
	if got := Causes([]yamlfile.Problem{follows, twice}); len(got) != 2 {
		t.Errorf("%v remain although the targets are known", got)
	}
}

func TestAdviceOfUnits(t *testing.T) {
	all := []yamlfile.Problem{
		{Path: "gate.every", Message: "must be a string, not the number 30; put it in quotes"},
		{Path: "owner", Message: "must be a string, not the number 30; put it in quotes"},
		{Path: "gate.every", Message: "must be a string, not a list"},
	}
	advised := Advised(all)
	for i, want := range []string{
		"must be a duration such as 5m or 1h, not the number 30", "must be a string, not the number 30; put it in quotes", "must be a string, not a list",
	} {
		if advised[i].Message != want {
			t.Errorf("%q, want %q", advised[i].Message, want)
		}
	}
}
