package pins

import (
	_ "embed"
	"strings"
	"sync"
)

// sets.tsv is what testdata/tables.py makes of PyPI, without pre-releases and odd old versions, which were taken out by
// hand, and with nes-py and jax for Python 3.8, which have no wheels. ranges.tsv is what `pip index versions` prints, newest.tsv
// an extract of PyPI's list, and needs.tsv is by hand.
var (
	//go:embed sets.tsv
	setsTable string
	//go:embed ranges.tsv
	rangesTable string
	//go:embed needs.tsv
	needsTable string
	//go:embed newest.tsv
	newestTable string
)

// set is what pip chose for a version of Python from what was published before a month.
type set struct {
	python string // such as 3.11
	month  string // such as 2026-11
	of     map[string]string
}

// sets returns the sets for a version of Python, the newest first.
func sets(python string) []set {
	all := allSets()
	switch {
	case len(all[python]) > 0:
		return all[python]
	case python == "3.14": // of which the newest versions have files too
		return all["3.13"]
	}
	return all[Default] // better than the lowest versions
}

var allSets = sync.OnceValue(func() map[string][]set {
	lines := strings.Split(strings.TrimSpace(setsTable), "\n")
	var columns []set
	for _, head := range strings.Split(lines[0], "\t")[1:] {
		version, month, _ := strings.Cut(head, " ")
		columns = append(columns, set{python: version, month: month, of: map[string]string{}})
	}
	for _, line := range lines[1:] {
		cells := strings.Split(line, "\t")
		for i, cell := range cells[1:] {
			if cell != "" {
				columns[i].of[cells[0]] = cell
			}
		}
	}
	out := map[string][]set{}
	for _, c := range columns {
		out[c.python] = append(out[c.python], c)
	}
	return out
})

// Known reports whether a set for a version of Python has a package.
func Known(python, name string) bool {
	for _, s := range sets(python) {
		if s.of[name] != "" {
			return true
		}
	}
	return false
}

// window is the lowest and the highest version of a package that has files for a version of Python on Linux.
type window struct{ low, high string }

// has reports whether a version is between the two. The zero window has none.
func (w window) has(version string) bool {
	return w.low != "" && Compare(version, w.low) >= 0 && Compare(version, w.high) <= 0
}

// windows returns those of a package by version of Python. A package that is in no line installs with any.
// The builds of TensorFlow for one kind of machine have those of TensorFlow.
func windows(name string) map[string]window {
	if name == "tensorflow-gpu" || name == "tensorflow-cpu" {
		name = "tensorflow"
	}
	return allWindows()[name]
}

var allWindows = sync.OnceValue(func() map[string]map[string]window {
	out := map[string]map[string]window{}
	for line := range strings.Lines(rangesTable) {
		cells := strings.Fields(line)
		if len(cells) != 4 {
			continue
		}
		if out[cells[0]] == nil {
			out[cells[0]] = map[string]window{}
		}
		out[cells[0]][cells[1]] = window{cells[2], cells[3]}
	}
	return out
})

// needs returns what a version of a package needs of others, as far as the newest versions of these do not suit it.
func needs(name, version string) []Package {
	var out []Package
	for _, beside := range []string{"torchaudio", "torchvision"} {
		if v := besideTorch(beside, version); name == "torch" && v != "" {
			out = append(out, Package{Name: beside, Wanted: "==" + v})
		}
	}
	for _, n := range allNeeds()[name] {
		if version != "" && Allowed(n.of, version) {
			out = append(out, n.Package)
		}
	}
	return out
}

// need is what versions of a package need of another.
type need struct {
	of string // which versions
	Package
	alone bool // also where nothing else names the package, because the metadata of its versions allow later ones
}

var allNeeds = sync.OnceValue(func() map[string][]need {
	out := map[string][]need{}
	for line := range strings.Lines(needsTable) {
		if cells := strings.Split(strings.TrimSpace(line), "\t"); len(cells) == 4 || len(cells) == 5 && cells[4] == "alone" {
			out[cells[0]] = append(out[cells[0]], need{cells[1], Package{Name: cells[2], Wanted: cells[3]}, len(cells) == 5})
		}
	}
	return out
})

// OfExtra returns what a version of a package with an extra needs of others.
func OfExtra(name, extra, version string) []Package {
	return needs(name+"["+extra+"]", version)
}

// ForExact returns which versions of a package with an extra go with the exact versions of others, as far as it needs exact
// ones; "" for any, or if none is known to.
func ForExact(name, extra string, exact func(name string) string) string {
	for _, n := range allNeeds()[name+"["+extra+"]"] {
		if v := exact(n.Name); v != "" && Exact(n.Wanted) == v {
			return n.of
		}
	}
	return ""
}

// upTo is the last month from which the newest version of most packages has files for a version of Python.
var upTo = map[string]string{"3.7": "2023-01", "3.8": "2024-06", "3.9": "2025-06", "3.10": "2026-03"}

// Newest returns the newest known version of a package that no set has, by its normalized name, if a specification and a
// version of Python allow it, and "" else. Nothing is known of how it fits to others.
func Newest(python string, p Package) string {
	version, month, found := strings.Cut(allNewest()[p.Name], "\t")
	high := windows(p.Name)[python].high
	if high != "" && (!found || Compare(version, high) > 0) {
		if Allowed(p.Wanted, high) {
			return high
		}
		return ""
	}
	if last, ok := upTo[python]; !Allowed(p.Wanted, version) || ok && high == "" && month > last {
		return ""
	}
	return version
}

// allNewest has a version and its month, by package.
var allNewest = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(newestTable) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), "\t")
		out[name] = rest
	}
	return out
})
