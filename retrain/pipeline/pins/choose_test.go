package pins

import (
	"strings"
	"testing"
)

// The chosen versions are from one set, unless a project requires otherwise.
func TestVersionsOfASetGoTogether(t *testing.T) {
	for name, test := range map[string]struct {
		python, wanted string // names and specifications, separated by spaces
		want           string
	}{
		"lower bounds beside what is built for the newest": {"3.11", "torch>=2.1 torchrl>=0.2.0 tensordict>=0.2.0 lightning>=2.0.0", "torch==2.15.0 torchrl==0.14.1 tensordict==0.14.3 lightning==2.6.6"},
		"what another package needs":                       {"3.11", "tianshou==2.0.1 pandas", "pandas==2."},
		"an exact version has others beside it":            {"3.11", "torch==2.5.1 torchvision torchaudio jax==0.4.30 jaxlib", "torchvision==0.20.1 torchaudio==2.5.1 jaxlib==0.4.30"},
		"the library of an old torch":                      {"3.11", "torch==2.5.1 torchrl tensordict>=0.1", "torchrl==0.6.0 tensordict==0.6.2"},
		"a need for exactly one version":                   {"3.11", "safety-gymnasium==1.0.0 gymnasium>=0.26", "gymnasium==0.28.1"},
		"a need of what is chosen itself":                  {"3.11", "stable-baselines3==2.2.1 gymnasium numpy opencv-python", "gymnasium==0.29.1 numpy==1.26."},
		"a need of a time without a set":                   {"3.11", "tianshou==1.1.0 gymnasium numpy torch", "gymnasium==0.28.1 numpy==1.26."},
		"a need that no set has":                           {"3.11", "tianshou==1.1.0 gymnasium<0.28.1", "gymnasium==0.28.0"},
		"nothing that is forbidden":                        {"3.11", "numpy>=99 odd", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var packages []Package
			for _, field := range strings.Fields(test.wanted) {
				i := strings.IndexAny(field+"=", "<>=~")
				packages = append(packages, Package{field[:i], field[i:]})
			}
			got := Choose(test.python, packages)
			for _, want := range strings.Fields(test.want) {
				name, version, _ := strings.Cut(want, "==")
				if !strings.HasPrefix(got[name].Version, version) {
					t.Errorf("%s is %q, want %s", name, got[name].Version, version)
				}
			}
			if test.want == "" && len(got) > 0 {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestPythonOfWhatIsWanted(t *testing.T) {
	for name, test := range map[string]struct {
		wanted    []string
		packages  []Package
		preferred []string
		want      string
	}{
		"nothing":                       {nil, nil, nil, "3.11"},
		"a range around the default":    {[]string{">=3.8,<3.13"}, nil, nil, "3.11"},
		"a newer one":                   {[]string{">=3.12,<3.13"}, nil, nil, "3.12"},
		"an older one":                  {[]string{">=3.7,<=3.9"}, nil, nil, "3.9"},
		"exactly one":                   {[]string{"==3.8.*", ">=3.7"}, nil, nil, "3.8"},
		"Poetry":                        {[]string{"^3.12"}, nil, nil, "3.12"},
		"an old exact version":          {nil, []Package{{"tensorflow", "==1.15.0"}, {"numpy", ""}}, nil, "3.7"},
		"a version without a wheel":     {nil, []Package{{"torch", "==1.12.1"}}, nil, "3.10"},
		"an upper bound":                {nil, []Package{{"numpy", "<1.23"}}, nil, "3.10"},
		"classifiers":                   {nil, nil, []string{"3.8", "3.9"}, "3.9"},
		"classifiers with the default":  {nil, nil, []string{"3.9", "3.11", "3.12"}, "3.11"},
		"one without an image":          {[]string{"==3.6.*"}, nil, nil, "3.7"},
		"later ones without an image":   {[]string{">=3.15"}, nil, nil, "3.11"},
		"a package that nothing is for": {nil, []Package{{"numpy", "==99.0"}}, nil, "3.11"},
	} {
		if got, _ := Python(test.wanted, test.packages, test.preferred); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	for _, b := range bases {
		if Base(b.python) == "" || len(sets(b.python)) == 0 {
			t.Errorf("Python %s has no image or no set", b.python)
		}
	}
}

// The tables parse, and have enough packages.
func TestTablesAreReadable(t *testing.T) {
	for _, b := range bases {
		for _, s := range sets(b.python) {
			if len(s.of) < 80 {
				t.Errorf("the set of %s for Python %s has only %d packages", s.month, s.python, len(s.of))
			}
			for name, version := range s.of {
				if len(numbers(version)) == 0 || strings.ContainsAny(name, " _.") {
					t.Errorf("%s %s", name, version)
				}
			}
		}
	}
	for line := range strings.Lines(newestTable) {
		if cells := strings.Split(strings.TrimSpace(line), "\t"); len(cells) != 3 || len(numbers(cells[1])) == 0 || len(cells[2]) != 7 {
			t.Fatalf("%q", line)
		}
	}
	if v := Newest("3.11", Package{"onnx", ">=1"}); v == "" || Newest("3.7", Package{"onnx", ""}) != "" || Newest("3.11", Package{"onnx", "<1"}) != "" || Newest("3.11", Package{"no-such", ""}) != "" {
		t.Error(v)
	}
}

// The newest version of a package may have no files for an older Python.
func TestNewestForAPython(t *testing.T) {
	for python, want := range map[string]string{"3.9": "3.4.3", "3.11": "3.9.2", "3.12": "3.10.1", "3.13": "3.10.1"} {
		if v := Newest(python, Package{Name: "bokeh", Wanted: ">=2"}); v != want {
			t.Errorf("%s: %q, want %q", python, v, want)
		}
	}
	if v := Newest("3.11", Package{Name: "bokeh", Wanted: ">=3.10"}); v != "" {
		t.Error(v)
	}
}

// If a package needs an earlier version of another one, that version is added, unless it is declared or no version has
// files.
func TestPackagesThatNothingNames(t *testing.T) {
	for name, test := range map[string]struct{ python, packages, want string }{
		"an old Ray":           {"3.9", "ray==1.9.0", "numpy of ray, protobuf of ray"},
		"a later one":          {"3.9", "ray==2.2.0", "numpy of ray"},
		"one that is named":    {"3.9", "ray==1.9.0 numpy protobuf==3.19.0", ""},
		"without files":        {"3.12", "gym==0.21.0", ""},
		"a need of newer ones": {"3.11", "numpy==1.26.4", ""},
	} {
		var packages []Package
		for _, field := range strings.Fields(test.packages) {
			i := strings.IndexAny(field+"=", "<>=~")
			packages = append(packages, Package{field[:i], field[i:]})
		}
		var got []string
		for _, m := range MissingFrom(test.python, packages) {
			got = append(got, m.Name+" of "+m.By)
		}
		if all := strings.Join(got, ", "); all != test.want {
			t.Errorf("%s: %q, want %q", name, all, test.want)
		}
	}
}
