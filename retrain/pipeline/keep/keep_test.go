package keep

import (
	"strings"
	"testing"
)

// Regenerating a file, whatever it contains, loses nothing between markers, or returns an error.
func FuzzKept(f *testing.F) {
	f.Add("# rewardwatch:keep a\nmine\n# rewardwatch:end\n")
	f.Add("x # rewardwatch:keep b # rewardwatch:end\n# rewardwatch:keep a\r\n\r\n# rewardwatch:end")
	f.Fuzz(func(t *testing.T, before string) {
		const fresh = "1\n# rewardwatch:keep a\ndefault\n# rewardwatch:end\n2\n# rewardwatch:keep b\n# rewardwatch:end\n3\n"
		now, err := Merged(fresh, before)
		if err != nil {
			return
		}
		was, err := Parts(before)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := Parts(now)
		if err != nil {
			t.Fatalf("%v in %q", err, now)
		}
		for name, body := range was {
			if parts[name] != body {
				t.Errorf("the part %s has %q, want %q", name, parts[name], body)
			}
		}
		if again, err := Merged(fresh, now); err != nil || again != now {
			t.Errorf("%q becomes %q, %v", now, again, err)
		}
	})
}

func TestParts(t *testing.T) {
	const text = "a\n# rewardwatch:keep x\none\n# rewardwatch:end\n  # rewardwatch:keep y\n# rewardwatch:end\nb\n"
	if body, line, err := Part(text, "x"); body != "one\n" || line != 2 || err != nil {
		t.Errorf("%q, %d, %v", body, line, err)
	}
	if body, line, err := Part(text, "z"); body != "" || line != 0 || err != nil {
		t.Errorf("%q, %d, %v", body, line, err)
	}
	for name, want := range map[string]string{
		"x": strings.Replace(text, "one\n", "two\nthree\n", 1), "y": strings.Replace(text, "keep y\n", "keep y\ntwo\nthree\n", 1),
	} {
		if got, err := WithPart(text, name, "two\nthree\n"); got != want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := WithPart(text, "z", ""); err == nil {
		t.Error("a part that is not there was replaced")
	}
}
