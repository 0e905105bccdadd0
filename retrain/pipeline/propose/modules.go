package propose

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keywords"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/programs"
)

// maxUnknown bounds the modules without a known package in a proposal.
const maxUnknown = 10

// undeclared adds the packages of modules that programs import when they start and no file declares. Packages without a
// known version are left to the user.
func (p *dependencies) undeclared(imports []programs.Import, own func(module string) bool) {
	unknown := 0
	for _, x := range imports {
		name := pins.Distribution(x.Module)
		if own(x.Module) || pins.Standard(x.Module) || name == "setuptools" || p.provides(x.Module, name) {
			continue
		}
		why := x.File + " imports it, but no file declares it"
		if x.With != "" {
			why = x.File + " needs it with " + x.With + ", but no file declares it"
		}
		switch {
		case pins.Common(x.Module): // PyPI's package of this name is another one
			if unknown++; unknown <= maxUnknown {
				p.Packages = append(p.Packages, Declared{Name: x.Module, File: x.File, Left: x.File + " imports it, but the repository does not contain it"})
			}
		case p.aside[name] != "": // declared for development only, but the training imports it
			p.Packages = append(p.Packages, Declared{Name: name, Wanted: p.aside[name], Why: why + " for training", File: "no file"})
		case pins.Known(p.python, name) || pins.Newest(p.python, pins.Package{Name: name}) != "":
			p.need(name, why)
		case unknown < maxUnknown && pins.Requirement.MatchString(x.Module+"==1"):
			unknown++
			shown := x.Module
			if name != pins.Normalized(x.Module) { // it differs from the name of the module
				shown = name
			}
			p.Packages = append(p.Packages, Declared{Name: shown, File: x.File, Left: x.File + " imports it, but no file declares it: add its package, unless another package includes it"})
		}
	}
}

// provides reports whether one of the packages contains a module.
func (p *dependencies) provides(module, name string) bool {
	return slices.ContainsFunc(p.Packages, func(d Declared) bool {
		other := pins.Name(d.Name)
		return name == "tensorboard" && pins.HasTensorboard(d.Name) || other == name || other == pins.Normalized(module) || pins.IsFamily(module, other)
	})
}

// withKeras2 are the last versions with Keras 2, which have files for Python 3.9 to 3.11.
var withKeras2 = map[string]string{"tensorflow": "2.15.1", "tensorflow-cpu": "2.15.1", "keras": "2.15.0"}

// outdated limits packages to the last versions with the interfaces that the programs use, where the declarations allow
// it.
func (p *dependencies) outdated(library string) {
	for i, d := range p.Packages {
		name := pins.Name(d.Name)
		if name == "tensorflow" && p.calls.TF1 != "" && p.limits["tensorflow"] == tf1 {
			p.Packages[i].Why = p.calls.TF1 + " was written for TensorFlow 1"
		}
		generated := library != keywords.Custom && (name == "ray" || name == "gymnasium") // the generated scripts do not use these interfaces
		if v, file := p.calls.Last(name); v != "" && !generated && (name != "gym" || p.imported[name] > 0) && pins.Exact(p.known(d).Wanted) == "" && pins.Allowed(d.Wanted, v) && pins.Available(p.python, name, v) {
			p.limits[name] = "==" + v
			p.Packages[i].Why = file + " uses functions that later versions removed"
		}
	}
	if p.calls.Keras2 == "" || !slices.Contains([]string{"3.9", "3.10", "3.11"}, p.python) {
		return
	}
	for i, d := range p.Packages {
		name := pins.Name(d.Name)
		if v := withKeras2[name]; v != "" && pins.Exact(p.known(d).Wanted) == "" && pins.Allowed(p.known(d).Wanted, v) {
			p.limits[name] = "==" + v
			p.Packages[i].Why = p.calls.Keras2 + " was written for Keras 2"
		}
	}
}
