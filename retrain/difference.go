package retrain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Leaf is one value of a contract or of a config after inheritance: a scalar, or a list or mapping that holds nothing.
type Leaf struct {
	Path  string // such as contract.owner, config.optimizer.lr or config.seeds[0]
	Value string // as JSON
	From  string // file:line; "" where that is not known
}

// Leaves gives all values of a recipe, sorted by path. Templates are as the recipe has them.
func (r *Recipe) Leaves() []Leaf {
	return slices.Concat(
		leavesOf("config", r.config, origins(r.config)),
		leavesOf("contract", r.contract, origins(r.contract)))
}

// leavesOf gives the leaves of a mapping, with where they come from by their path within it.
func leavesOf(section string, v yamlfile.Value, from map[string]string) []Leaf {
	var out []Leaf
	walk("", v, func(path string, leaf yamlfile.Value) {
		if path == "" {
			return // the section holds nothing
		}
		text, err := leaf.MarshalJSON()
		if err != nil {
			panic(fmt.Sprintf("leaf %s cannot be written: %v", path, err)) // scalars always can
		}
		out = append(out, Leaf{Path: within(section, path), Value: string(text), From: from[path]})
	})
	slices.SortFunc(out, func(a, b Leaf) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func within(section, path string) string {
	if path[0] == '[' {
		return section + path
	}
	return section + "." + path
}

// LeavesOfOrder gives the same of the data of a webhook, as Request.Order has it.
func LeavesOfOrder(data json.RawMessage) ([]Leaf, error) {
	var o struct {
		Contract struct {
			Objective, Hypothesis, Owner string
			Expected                     struct{ Text string }
		}
		ContractFrom map[string]string `json:"contract_from"`
		Config       any
		ConfigFrom   map[string]string `json:"config_from"`
	}
	if err := decode(data, &o); err != nil {
		return nil, fmt.Errorf("read the order: %w", err)
	}
	if o.Config == nil {
		return nil, fmt.Errorf("the order has no contract: a build before recipes opened its request")
	}
	contract := map[string]any{
		"objective": o.Contract.Objective, "hypothesis": o.Contract.Hypothesis, "expected": o.Contract.Expected.Text,
		"owner": o.Contract.Owner,
	}
	return slices.Concat(
		leavesOf("config", valueOf(o.Config, yamlfile.Place{}), o.ConfigFrom),
		leavesOf("contract", valueOf(contract, yamlfile.Place{}), o.ContractFrom)), nil
}

// Delta gives what contract and config of a request differ in from the parent of its recipe, as that is now, and the parent's name.
// Where there is none, that is "" and everything differs.
func (d *Desk) Delta(q Request) (parent string, differences []Difference, err error) {
	now, err := LeavesOfOrder(q.Order)
	if err != nil {
		return "", nil, err
	}
	var old []Leaf
	if r := d.recipes[q.Recipe]; r != nil && r.parent != nil {
		parent, old = r.parent.Name, r.parent.Leaves()
	}
	return parent, Differences(old, now), nil
}

// decode reads JSON and keeps numbers as they are written.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// valueOf gives what decode read as a value that stands in a place.
func valueOf(x any, at yamlfile.Place) yamlfile.Value {
	v := yamlfile.Value{Kind: yamlfile.Null, Place: at}
	switch x := x.(type) {
	case bool:
		v.Kind, v.Scalar = yamlfile.Boolean, fmt.Sprint(x)
	case json.Number:
		v.Kind, v.Scalar = yamlfile.Number, x.String()
	case string:
		v.Kind, v.Scalar = yamlfile.String, x
	case []any:
		v.Kind = yamlfile.List
		for _, item := range x {
			v.Items = append(v.Items, valueOf(item, at))
		}
	case map[string]any:
		v.Kind, v.Members = yamlfile.Mapping, map[string]yamlfile.Value{}
		for key, member := range x {
			v.Members[key] = valueOf(member, at)
		}
	}
	return v
}

// Difference is a leaf that two sides do not have in common. Old or New is nil where that side does not have it.
type Difference struct {
	Path     string
	Old, New *Leaf
}

// Differences gives what two sides do not have in common, sorted by path. Values that are equal but come from elsewhere
// are no difference.
func Differences(old, now []Leaf) []Difference {
	byPath := map[string]*Difference{}
	at := func(path string) *Difference {
		if byPath[path] == nil {
			byPath[path] = &Difference{Path: path}
		}
		return byPath[path]
	}
	for i := range old {
		at(old[i].Path).Old = &old[i]
	}
	for i := range now {
		at(now[i].Path).New = &now[i]
	}
	var out []Difference
	for _, d := range byPath {
		if d.Old == nil || d.New == nil || d.Old.Value != d.New.Value {
			out = append(out, *d)
		}
	}
	slices.SortFunc(out, func(a, b Difference) int { return cmp.Compare(a.Path, b.Path) })
	return out
}
