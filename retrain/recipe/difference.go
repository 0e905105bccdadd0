package recipe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Leaf is one value of a contract or of a config after inheritance: a scalar, or an empty list or mapping. The order of a
// recipe is a leaf too if it is not a retraining.
type Leaf struct {
	Path  string // such as contract.owner, config.optimizer.lr, config.seeds[0] or order
	Value string // as JSON
	From  string // file:line; "" if unknown
}

// Leaves returns all values of a recipe, sorted by path. Templates are unfilled.
func (r *Recipe) Leaves() []Leaf {
	return slices.Concat(
		leavesOf("config", r.config, origins(r.config)),
		leavesOf("contract", r.Contract, origins(r.Contract)),
		leafOf(r.Kind))
}

// leafOf returns the leaf of an order's kind, none for a retraining.
func leafOf(k Kind) []Leaf {
	if k == Retrain || k == "" {
		return nil
	}
	return []Leaf{{Path: "order", Value: strconv.Quote(string(k))}}
}

// leavesOf returns the leaves of a mapping, with their origins by path within it.
func leavesOf(section string, v yamlfile.Value, from map[string]string) []Leaf {
	var out []Leaf
	walk("", v, func(path string, leaf yamlfile.Value) {
		if path == "" {
			return // the section is empty
		}
		text, err := leaf.MarshalJSON()
		if err != nil {
			panic(fmt.Sprintf("leaf %s cannot be written: %v", path, err)) // a scalar always can be
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

// LeavesOfOrder returns the leaves of a webhook's data, as in Request.Order.
func LeavesOfOrder(data json.RawMessage) ([]Leaf, error) {
	var o struct {
		Contract struct {
			Objective, Hypothesis, Owner string
			Expected                     struct{ Text string }
		}
		ContractFrom map[string]string `json:"contract_from"`
		Order        Kind
		Config       any
		ConfigFrom   map[string]string `json:"config_from"`
	}
	if err := decode(data, &o); err != nil {
		return nil, fmt.Errorf("read the order: %w", err)
	}
	if o.Config == nil {
		return nil, fmt.Errorf("the request has no contract: it was opened by a build without recipes")
	}
	contract := map[string]any{
		"objective": o.Contract.Objective, "hypothesis": o.Contract.Hypothesis, "expected": o.Contract.Expected.Text,
		"owner": o.Contract.Owner,
	}
	return slices.Concat(
		leavesOf("config", valueOf(o.Config, yamlfile.Place{}), o.ConfigFrom),
		leavesOf("contract", valueOf(contract, yamlfile.Place{}), o.ContractFrom),
		leafOf(o.Order)), nil
}

// HasParameter reports whether the config of an order has a leaf with that value at a path, such as optimizer.lr.
func HasParameter(data json.RawMessage, path, value string) bool {
	leaves, err := LeavesOfOrder(data) // an order of a build before recipes has none
	path = within("config", path)
	return err == nil && slices.ContainsFunc(leaves, func(l Leaf) bool { return l.Path == path && sameScalar(l.Value, value) })
}

// sameScalar reports whether a leaf has a value: numbers compare as numbers, and strings also without their quotes.
func sameScalar(leaf, value string) bool {
	if leaf == value || leaf == strconv.Quote(value) {
		return true
	}
	a, errA := strconv.ParseFloat(leaf, 64)
	b, errB := strconv.ParseFloat(value, 64)
	return errA == nil && errB == nil && a == b
}

// Delta returns the differences of an order's contract and config from the current parent of its recipe, and the
// parent's name. Without a parent, the name is "" and everything differs.
func (rs Recipes) Delta(name string, data json.RawMessage) (parent string, differences []Difference, err error) {
	now, err := LeavesOfOrder(data)
	if err != nil {
		return "", nil, err
	}
	var old []Leaf
	if r := rs[name]; r != nil && r.parent != nil {
		parent, old = r.parent.Name, r.parent.Leaves()
	}
	return parent, Differences(old, now), nil
}

// decode parses JSON and keeps the notation of numbers.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// valueOf returns a result of decode as a value at a place.
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

// Difference is a leaf that differs between two sides. Old or New is nil if that side lacks it.
type Difference struct {
	Path     string
	Old, New *Leaf
}

// Differences returns the differing leaves of two sides, sorted by path. Equal values of different origin do not
// differ.
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
