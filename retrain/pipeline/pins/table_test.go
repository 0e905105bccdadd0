package pins

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The parts of testdata/tables.py that do not depend on PyPI agree with sets.tsv: the columns, the packages, and the
// versions of packages that are published as source only. All other versions have files for their Python, and are
// releases.
func TestSetsAreThoseOfTheScript(t *testing.T) {
	text, err := os.ReadFile("testdata/tables.py")
	if err != nil {
		t.Fatal(err)
	}
	script := string(text)
	between := func(from, to string) string {
		_, rest, _ := strings.Cut(script, from)
		part, _, _ := strings.Cut(rest, to)
		return part
	}
	var heads []string
	for _, m := range regexp.MustCompile(`"(3\.\d+)\.\d+": \[(.*)\]`).FindAllStringSubmatch(between("SETS = {", "\n}"), -1) {
		if patch := strings.TrimPrefix(strings.Fields(m[0])[0], `"`); !strings.Contains(Base(m[1]), ":"+strings.TrimSuffix(patch, `":`)+"-") {
			t.Errorf("the sets are for %s, and the image is %s", patch, Base(m[1]))
		}
		for month := range strings.SplitSeq(m[2], ", ") {
			if month = strings.Trim(month, `"`); month == "" {
				month = strings.Trim(strings.TrimSpace(between("NOW = ", "\n")), `"`)
			}
			heads = append(heads, m[1]+" "+month)
		}
	}
	names := strings.Fields(between(`GROUPS = """`, `"""`))
	sources := map[string][][]string{}
	for _, m := range regexp.MustCompile(`(?m)^    "([\w-]+)": \{(.*)\}`).FindAllStringSubmatch(between("SOURCE = {", "\n}"), -1) {
		names = append(names, m[1])
		sources[m[1]] = regexp.MustCompile(`"([\d-]+)": "([\w.]+)"`).FindAllStringSubmatch(m[2], -1)
	}
	if len(names) < 150 || len(sources) < 10 {
		t.Fatalf("%d packages, %d of them as source", len(names), len(sources))
	}

	lines := strings.Split(strings.TrimSpace(setsTable), "\n")
	if got := strings.Split(lines[0], "\t")[1:]; !slices.Equal(got, heads) {
		t.Errorf("the columns are %q, want %q", got, heads)
	}
	var rows []string
	for _, line := range lines[1:] {
		name, cells, _ := strings.Cut(line, "\t")
		rows = append(rows, name)
		for i, version := range strings.Split(cells, "\t") {
			python, month, _ := strings.Cut(heads[i], " ")
			w, known := windows(name)[python]
			switch since := sources[name]; {
			case since != nil:
				if want := ofSource(since, python, month); version != want {
					t.Errorf("%s, %s: %q, want %q", name, heads[i], version, want)
				}
			case version != "" && known && (Compare(version, w.low) < 0 || Compare(version, w.high) > 0):
				t.Errorf("%s, %s: %s has no files", name, heads[i], version)
			case unsettled.MatchString(version):
				t.Errorf("%s, %s: %s is not released", name, heads[i], version)
			}
		}
	}
	if !slices.IsSorted(rows) {
		t.Error("the packages are not sorted")
	}
	// these packages have no files, or none that fit the others
	without := []string{"box2d-py", "ipython", "learn2learn", "minihack", "procgen", "stable-baselines", "tf-agents"}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(n string) bool { return slices.Contains(without, n) })
	if !slices.Equal(rows, names) {
		t.Errorf("the packages are %q, want %q", rows, names)
	}
}

// ofSource returns the version that the script uses for a package that is published as source only.
func ofSource(since [][]string, python, month string) string {
	if python == "3.7" || python == "3.8" {
		month = min(month, "2023-06")
	}
	version := ""
	for _, s := range since {
		if s[1] <= month {
			version = s[2]
		}
	}
	return version
}
