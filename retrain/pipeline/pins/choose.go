package pins

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Package is a package with its normalized name and a specification of the wanted version, "" for any version.
type Package struct{ Name, Wanted string }

// Choice is the version that is proposed for a package.
type Choice struct {
	Version string
	Month   string // month in which it was the newest suitable version, such as 2026-11
}

// coupled are packages that others are built for. If a project fixes the version of one, the versions of the other
// packages should be from the same time.
var coupled = []string{"ale-py", "chex", "distrax", "flax", "gym", "gymnasium", "jax", "keras", "numpy", "optax", "orbax-checkpoint", "pandas", "pettingzoo", "protobuf", "ray", "scipy", "stable-baselines3", "tensorflow", "torch"}

// Choose returns versions for the packages that leave it open and are known, for a Python version such as 3.11. Unless
// a specification requires otherwise, they are from a single set, whose time fits the versions that the packages fix.
func Choose(python string, packages []Package) map[string]Choice {
	known := slices.Clone(sets(python))
	slices.SortStableFunc(known, func(a, b set) int { return strings.Compare(b.month, a.month) })
	best := slices.Clone(known)
	slices.SortStableFunc(best, func(a, b set) int { return misfits(a, known, packages) - misfits(b, known, packages) })
	best = append(best[:min(1, len(best))], known...)
	chosen := choose(best, packages)
	for range 3 { // packages chosen for a requirement may have requirements of their own
		wanted := tightened(python, packages, chosen)
		chosen = choose(best, wanted)
		for i, p := range wanted { // requirements for an exact version
			switch v := Exact(p.Wanted); {
			case v != "" && Exact(packages[i].Wanted) == "":
				chosen[p.Name] = Choice{Version: v}
			case v == "" && p.Wanted != packages[i].Wanted && chosen[p.Name].Version == "":
				if v := between(python, p); v != LowestWithFiles(python, packages[i]) { // the caller chooses the lowest version by itself
					chosen[p.Name] = Choice{Version: v}
				}
			}
		}
	}
	return chosen
}

// between returns the newest version in the tables for any Python that a package may have. Requirements can be for a
// time from which this Python has no set. If there is none, it returns the lowest version.
func between(python string, p Package) string {
	best := ""
	for _, v := range published(p.Name) {
		if Allowed(p.Wanted, v) && (best == "" || Compare(v, best) > 0) && Available(python, p.Name, v) {
			best = v
		}
	}
	if low := LowestWithFiles(python, p); best == "" && Allowed(p.Wanted, low) {
		return low
	}
	return best
}

// choose takes the version of each package from the first set that has a suitable one.
func choose(from []set, packages []Package) map[string]Choice {
	out := map[string]Choice{}
	for _, p := range packages {
		if Exact(p.Wanted) != "" {
			continue
		}
		if version := paired(p, packages); version != "" {
			out[p.Name] = Choice{Version: version}
			continue
		}
		for _, s := range from {
			if v := s.of[p.Name]; v != "" && Allowed(p.Wanted, v) {
				out[p.Name] = Choice{Version: v, Month: s.month}
				break
			}
		}
		for part := range strings.SplitSeq(p.Wanted, ",") { // a requirement for an exact version
			if v := Exact(part); v != "" && out[p.Name].Version == "" && Allowed(p.Wanted, v) {
				out[p.Name] = Choice{Version: v}
			}
		}
	}
	return out
}

// tightened returns the packages with the requirements of the chosen and exact versions of the others added. For a
// package without either, the caller chooses the lowest version.
func tightened(python string, packages []Package, chosen map[string]Choice) []Package {
	out := slices.Clone(packages)
	for _, p := range packages {
		version := cmp.Or(Exact(p.Wanted), chosen[p.Name].Version, LowestWithFiles(python, p))
		for _, n := range needs(p.Name, version) {
			for i := range out {
				if out[i].Name == n.Name && Exact(out[i].Wanted) == "" {
					out[i].Wanted = strings.Trim(out[i].Wanted+","+n.Wanted, ",")
				}
			}
		}
	}
	return out
}

// misfits counts the packages whose versions do not fit the time of a set.
func misfits(s set, known []set, packages []Package) int {
	n := 0
	for _, p := range packages {
		v, exact := s.of[p.Name], Exact(p.Wanted)
		switch {
		case v == "":
		case exact != "" && slices.Contains(coupled, p.Name):
			n += boolean(era(p.Name, exact, known) != s.month && Compare(v, exact) != 0)
		case exact == "":
			n += boolean(!Allowed(p.Wanted, v))
		}
	}
	return n
}

// era returns the month of the oldest set that was made after a version of a package was published.
func era(name, version string, known []set) string {
	month := known[0].month
	for _, s := range known {
		if v := s.of[name]; v != "" && Compare(v, version) >= 0 {
			month = s.month
		}
	}
	return month
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// paired returns the version of a package that belongs to exactly one version of another, if that version is fixed.
func paired(p Package, packages []Package) string {
	exact := func(name string) string {
		for _, q := range packages {
			if q.Name == name {
				return Exact(q.Wanted)
			}
		}
		return ""
	}
	version := ""
	switch p.Name {
	case "jaxlib":
		version = exact("jax")
	case "torchvision", "torchaudio":
		version = besideTorch(p.Name, exact("torch"))
	case "torchrl", "tensordict":
		if n := numbers(exact("torch")); len(n) > 1 && n[0] == 2 {
			version = torchRL[n[1]][boolean(p.Name == "tensordict")]
		}
	}
	if version == "" || !Allowed(p.Wanted, version) {
		return ""
	}
	return version
}

// torchRL are the versions of torchrl and tensordict that were built for torch 2.x, by x.
var torchRL = map[int][2]string{
	1: {"0.2.1", "0.2.1"}, 2: {"0.3.1", "0.3.2"}, 3: {"0.4.0", "0.4.0"}, 4: {"0.5.0", "0.5.0"}, 5: {"0.6.0", "0.6.2"}, 6: {"0.7.2", "0.7.2"}, 7: {"0.8.1", "0.8.3"}, 8: {"0.9.2", "0.9.1"},
	9: {"0.10.1", "0.10.0"},
}

// besideTorch returns the version of torchvision or torchaudio that was built for a version of torch.
func besideTorch(name, torch string) string {
	torch, _, _ = strings.Cut(torch, "+")
	n := numbers(torch)
	switch {
	case len(n) < 3 || n[0] > 2 || n[0] == 1 && n[1] < 8:
		return ""
	case name == "torchaudio" && n[0] == 2:
		return torch
	case name == "torchaudio":
		return "0." + strconv.Itoa(n[1]) + "." + strconv.Itoa(n[2])
	case n[0] == 1:
		return "0." + strconv.Itoa(n[1]+1) + "." + strconv.Itoa(n[2])
	case n[1] == 0:
		return "0.15." + strconv.Itoa(n[2]+1)
	}
	return "0." + strconv.Itoa(n[1]+15) + "." + strconv.Itoa(n[2])
}

// bases are existing Python images, in order of preference.
var bases = []struct{ python, image string }{
	{"3.11", "python:3.11.15-slim-bookworm"}, // the default of the pipeline's base
	{"3.12", "python:3.12.13-slim-bookworm"},
	{"3.10", "python:3.10.20-slim-bookworm"},
	{"3.9", "python:3.9.25-slim-bookworm"},
	{"3.8", "python:3.8.20-slim-bookworm"},
	{"3.7", "python:3.7.17-slim-bookworm"},
	{"3.13", "python:3.13.13-slim-bookworm"},
	{"3.14", "python:3.14.4-slim-bookworm"},
}

// Default is the Python version that is chosen if nothing requires another one.
const Default = "3.11"

// Base returns the image of a Python version, or "" if none is known.
func Base(python string) string {
	for _, b := range bases {
		if b.python == python {
			return b.image
		}
	}
	return ""
}

// Python returns the most suitable Python version. In order of importance, it satisfies as many specifications and has
// files for as many packages as possible, is one of preferred, such as 3.8, and is the default. because is a package
// that requires another version than the default, or "".
func Python(wanted []string, packages []Package, preferred []string) (python string, because string) {
	cost := func(python string) int {
		n := 0
		for _, w := range wanted {
			n += boolean(!Suits(w, python)) * (100_000 + 1000*apart(w, python))
		}
		for _, p := range packages {
			n += 100 * boolean(!hasFiles(p, python))
		}
		return n + 10*boolean(len(preferred) > 0 && !slices.Contains(preferred, python))
	}
	best := slices.Clone(bases)
	slices.SortStableFunc(best, func(a, b struct{ python, image string }) int { return cmp.Compare(cost(a.python), cost(b.python)) })
	python = best[0].python
	for _, p := range packages {
		if hasFiles(p, python) && !hasFiles(p, Default) {
			because = p.Name
		}
	}
	return python, because
}

// apart returns the number of minor versions between a Python version and the only one that a specification such as
// ==3.6.* allows.
func apart(wanted, python string) int {
	a, b := numbers(Exact(strings.TrimSuffix(wanted, ".*"))), numbers(python)
	if len(a) < 2 || len(b) < 2 {
		return 0
	}
	return max(a[1]-b[1], b[1]-a[1])
}

// Suits reports whether a specification allows a Python version such as 3.11, or any of its patch releases.
func Suits(wanted, python string) bool {
	return Allowed(wanted, python+".99") || Allowed(wanted, python)
}

// hasFiles reports whether a wanted version of a package has files for a Python version, as far as is known.
func hasFiles(p Package, python string) bool {
	all := windows(p.Name)
	w, ok := all[python]
	if len(all) == 0 || ok && p.Wanted == "" {
		return true
	}
	if !ok {
		return false
	}
	for _, v := range []string{Exact(p.Wanted), Lowest(p.Wanted)} {
		if v != "" && Allowed(p.Wanted, v) && w.has(v) {
			return true
		}
	}
	if Exact(p.Wanted) != "" {
		return false
	}
	return Allowed(p.Wanted, w.high) || Allowed(p.Wanted, w.low)
}

// ofOpenCV are the versions of opencv-python in ascending order. They have a fourth number, which declarations omit.
var ofOpenCV = strings.Fields("4.3.0.38 4.4.0.46 4.5.1.48 4.5.3.56 4.5.4.60 4.5.5.64 4.6.0.66 4.7.0.72 4.8.0.76 4.8.1.78 4.9.0.80 4.10.0.84 4.11.0.86 4.12.0.88 4.13.0.92 4.14.0.94 5.0.0.93")

// LowestWithFiles returns the lowest version that a specification allows, or the lowest version after it that is known
// to have files for a Python version. It returns "" if the specification has no lower bound.
func LowestWithFiles(python string, p Package) string {
	low := Lowest(p.Wanted)
	if strings.HasPrefix(p.Name, "opencv-") && len(numbers(low)) < 4 {
		if i := slices.IndexFunc(ofOpenCV, func(v string) bool { return Allowed(p.Wanted, v) }); i >= 0 {
			return ofOpenCV[i]
		}
	}
	if w, ok := windows(p.Name)[python]; ok && low != "" && Compare(low, w.low) < 0 && Allowed(p.Wanted, w.low) {
		return w.low
	}
	return low
}
