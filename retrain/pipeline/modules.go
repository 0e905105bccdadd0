package pipeline

import (
	"regexp"
	"slices"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/programs"
)

// maxUnknown bounds the modules of a proposal that no package is known for.
const maxUnknown = 10

// undeclared adds the packages of the modules that programs import at once and that no file declares. What no version is
// known of is left to the person.
func (p *dependencies) undeclared(imports []programs.Import, own func(module string) bool) {
	unknown := 0
	for _, x := range imports {
		name := pins.Distribution(x.Module)
		if own(x.Module) || pins.Standard(x.Module) || name == "setuptools" || p.provides(x.Module, name) {
			continue
		}
		why := x.File + " imports it, but no file declares it"
		switch {
		case p.aside[name] != "": // for development only, which is not all that needs it
			p.Packages = append(p.Packages, Declared{Name: name, Wanted: p.aside[name], Why: why + " for training", File: "no file"})
		case pins.Known(p.python, name) || pins.Newest(p.python, pins.Package{Name: name}) != "":
			p.need(name, why)
		case unknown < maxUnknown && requirement.MatchString(x.Module+"==1"):
			unknown++
			p.Packages = append(p.Packages, Declared{Name: x.Module, File: x.File, Left: x.File + " imports it, but no file declares it: add its package, unless another package includes it"})
		}
	}
}

// provides reports whether a package that is there already has a module.
func (p *dependencies) provides(module, name string) bool {
	return slices.ContainsFunc(p.Packages, func(d Declared) bool {
		other := packageName(d.Name)
		return other == name || other == normalised(module) || pins.IsFamily(module, other)
	})
}

var (
	ofKeras2 = regexp.MustCompile(`_make_predict_function\b|manual_variable_initialization\b|\bnp_utils\b|\.(?:fit|predict|evaluate)_generator\(|\bkeras\.(?:engine|layers\.(?:merge|core|convolutional|advanced_activations))\b|\boptimizers\.legacy\b|tensorflow\.python\.keras\b|\b(?:Adam|RMSprop|SGD|Nadam|Adamax|Adagrad)\([ \t]*lr[ \t]*=`)
	ofTF1    = regexp.MustCompile(`\b(?:tf|tensorflow)\.contrib\b|\btf\.(?:placeholder|Session|get_variable|variable_scope|global_variables_initializer)\(`)
	asTF1    = regexp.MustCompile(`compat\.v1 as tf\b|\btf = \w+\.compat\.v1\b`)
)

// interfaces takes which versions of TensorFlow a program was written for.
func (p *dependencies) interfaces(file string, text []byte) {
	if p.keras2 == "" && ofKeras2.Match(text) {
		p.keras2 = file
	}
	if p.tf1 == "" && ofTF1.Match(text) && !asTF1.Match(text) {
		p.tf1 = file
	}
}

// withKeras2 are the last versions with Keras 2, which have files for Python 3.9 to 3.11.
var withKeras2 = map[string]string{"tensorflow": "2.15.1", "tensorflow-cpu": "2.15.1", "keras": "2.15.0"}

// outdated limits TensorFlow and Keras to versions that have what the programs call, where the declarations allow it.
func (p *dependencies) outdated() {
	for i, d := range p.Packages {
		if packageName(d.Name) == "tensorflow" && p.tf1 != "" && p.limits["tensorflow"] == tf1 {
			p.Packages[i].Why = p.tf1 + " was written for TensorFlow 1"
		}
	}
	if p.keras2 == "" || !slices.Contains([]string{"3.9", "3.10", "3.11"}, p.python) {
		return
	}
	for i, d := range p.Packages {
		name := packageName(d.Name)
		if v := withKeras2[name]; v != "" && pins.Exact(p.known(d).Wanted) == "" && pins.Allowed(p.known(d).Wanted, v) {
			p.limits[name] = "==" + v
			p.Packages[i].Why = p.keras2 + " was written for Keras 2"
		}
	}
}
