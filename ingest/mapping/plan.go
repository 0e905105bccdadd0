package mapping

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Plan is a compiled mapping. It lists the values of a record that a decoder needs, and their uses.
type Plan struct {
	Root    *Node // of the record
	Element *Node // of each event in a record with several events; nil if each record is one event
	Key     *Node // of a JSON key; nil if the mapping does not use values in the key

	Each    string   // path of the array or object of events; "" if there is none
	Columns []Column // arrays whose values at the same index form an event; nil with Each

	Fields     []PlannedField
	After      []int // fields to set once the record has been walked: not from a path, with a default, or of the last element
	Conditions []PlannedCondition
	Zone       *time.Location // for times without an offset; nil to refuse such times
	Programs   bool           // whether a value comes from an expression
	Assembled  bool           // whether the observation is assembled from components
}

// Column is an array with a value for each event of a record.
type Column struct {
	Path string // path as in the configuration
	Name string // name of its value in the event
}

// Node is a place in JSON, with the uses of the value there and of the values within it.
type Node struct {
	Wants    []Want
	Names    []string // of the members in Members
	Members  []*Node
	Places   []int // indices of the elements in Elements
	Elements []*Node
	// Plain is the index of the field for which the value is used unchanged, or -1. Nothing else may use the value or a
	// value within it. Most nodes are plain.
	Plain int
}

func newNode() *Node { return &Node{Plain: -1} }

// Want is a use of a node's value.
type Want struct {
	Kind  WantKind
	Index int // into Fields, Conditions or Columns
}

// WantKind is the kind of use of a value.
type WantKind uint8

// The kinds of a Want.
const (
	ForField     WantKind = iota // the value of a field
	ForCondition                 // the value that a condition tests
	ForEach                      // the array or object of events
	ForColumn                    // the array of a column
)

// Origin is the kind of source of a value.
type Origin uint8

// The origins of values.
const (
	FromPath Origin = iota
	FromHeader
	FromKey     // the whole key as text
	FromKeyPath // a value within a JSON key
	FromIndex   // the index of the event in its record, or its name in an object
	FromExpression
	FromConstant
)

// Planned is the source of a value.
type Planned struct {
	Origin    Origin
	Written   string // source as in the configuration, for messages
	Header    string
	Program   *Program
	InElement bool // whether the value can differ between elements
}

// PlannedField is a field of telemetry version 1.
type PlannedField struct {
	Planned
	Name      string // such as reward, or outcomes.conversion
	Member    []byte // member of a record in telemetry version 1, such as reward or outcomes
	Component string // component of the member, such as conversion; "" for the whole member
	IsText    bool   // whether the field is a string, so a header or key is used unchanged

	Value, Default json.RawMessage // nil if not configured
	Choices        map[string]json.RawMessage
	Scale          float64  // 1 if not configured
	Exponent       int      // one unit of ts is 10^Exponent nanoseconds; -1 without a unit
	Last           bool     // whether only the last element has the field
	Own            []string // components that are configured separately, and are therefore left out of this object
}

// PlannedCondition is a condition that records must meet.
type PlannedCondition struct {
	Planned
	In     map[string]bool // texts of values; nil to accept any value
	Refuse bool            // whether records with a value of In are skipped
	Absent bool            // whether a missing value meets the condition
	Exists bool            // whether only the existence of the value is tested; In is then nil
}

// Compile returns the plan of a mapping. Its errors are among those that Check reports.
func (c Config) Compile() (*Plan, error) {
	var err error
	c.Check(func(path, msg string) {
		if err == nil {
			err = fmt.Errorf("mapping.%s: %s", path, msg)
		}
	})
	if err != nil {
		return nil, err
	}
	p := &Plan{Root: newNode()}
	if c.Each != "" {
		p.Each, p.Element = c.Each, newNode()
		p.want(p.Root, c.Each, Want{Kind: ForEach})
	}
	for i, column := range c.Columns {
		p.Element = newNode()
		way, _ := parsePath(column)
		p.Columns = append(p.Columns, Column{column, way.lastName()})
		p.want(p.Root, column, Want{ForColumn, i})
	}
	for _, column := range p.Columns {
		p.Element.at([]step{{column.Name, -1}})
	}
	for _, condition := range c.Take {
		planned := condition.plan()
		p.source(condition.Source, &planned.Planned, Want{ForCondition, len(p.Conditions)})
		p.Conditions = append(p.Conditions, planned)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Fields)) {
		f := c.Fields[name]
		planned := f.plan(name)
		if planned.Component == "" {
			planned.Own = c.components(name)
		}
		p.source(f.Source, &planned.Planned, Want{ForField, len(p.Fields)})
		planned.InElement = planned.InElement || planned.Last
		p.Assembled = p.Assembled || string(planned.Member) == "observation" && planned.Component != ""
		if planned.Origin != FromPath || planned.Default != nil || planned.Last {
			p.After = append(p.After, len(p.Fields))
		}
		if f.Zone != "" {
			p.Zone, _ = time.LoadLocation(f.Zone) // Check has loaded it before
		}
		p.Fields = append(p.Fields, planned)
	}
	for _, tree := range []*Node{p.Root, p.Element, p.Key} {
		if tree != nil {
			p.findPlain(tree)
		}
	}
	return p, nil
}

// findPlain sets Plain for all nodes of a tree.
func (p *Plan) findPlain(n *Node) {
	if len(n.Wants) == 1 && n.Wants[0].Kind == ForField && len(n.Names)+len(n.Places) == 0 {
		f := &p.Fields[n.Wants[0].Index]
		if f.Component == "" && f.Choices == nil && f.Scale == 1 && f.Exponent < 0 && f.Own == nil && !f.Last {
			n.Plain = n.Wants[0].Index
		}
	}
	for _, child := range append(slices.Clone(n.Members), n.Elements...) {
		p.findPlain(child)
	}
}

// components lists the components of a field that are configured separately.
func (c Config) components(whole string) (own []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Fields)) {
		if component, ok := strings.CutPrefix(name, whole+"."); ok {
			own = append(own, component)
		}
	}
	return own
}

// source plans the source of a value. A source without any key is a constant.
func (p *Plan) source(s Source, to *Planned, w Want) {
	switch {
	case s.Path != "":
		to.Origin, to.Written = FromPath, s.Path
		way, _ := parsePath(s.Path)
		to.InElement = p.Element != nil && !way.atRoot
		if to.InElement {
			p.want(p.Element, s.Path, w)
		} else {
			p.want(p.Root, s.Path, w)
		}
	case s.Header != "":
		to.Origin, to.Header, to.Written = FromHeader, s.Header, "header "+s.Header
	case s.Index:
		to.Origin, to.Written, to.InElement = FromIndex, "the index", true
	case s.Expression != "":
		to.Origin, to.Written = FromExpression, "the expression"
		to.Program, _ = compileExpression(s.Expression)
		to.InElement = p.Element != nil
		p.Programs = true
	case len(s.Key) > 0:
		to.Origin, to.Written = FromKey, "the key"
		way, isText, _ := s.keyPath()
		if isText {
			return
		}
		to.Origin = FromKeyPath
		if p.Key == nil {
			p.Key = newNode()
		}
		p.Key.at(way.steps).add(w)
	default:
		to.Origin, to.Written = FromConstant, "the constant"
	}
}

func (p *Plan) want(from *Node, written string, w Want) {
	way, _ := parsePath(written)
	from.at(way.steps).add(w)
}

func (n *Node) add(w Want) { n.Wants = append(n.Wants, w) }

// Member returns the node of an object's member, or nil if the member is not used. The search begins at *next, which
// then advances. Member moves the nodes into the order in which it finds them, because most records have their members
// in the same order as the previous record. Since this modifies the tree, each reader needs its own clone.
func (n *Node) Member(name []byte, next *int) *Node {
	for i := *next; i < len(n.Names); i++ {
		if n.Names[i] == string(name) {
			if i != *next {
				n.Names[i], n.Names[*next] = n.Names[*next], n.Names[i]
				n.Members[i], n.Members[*next] = n.Members[*next], n.Members[i]
			}
			*next++
			return n.Members[*next-1]
		}
	}
	for i := range min(*next, len(n.Names)) {
		if n.Names[i] == string(name) {
			return n.Members[i]
		}
	}
	return nil
}

// Clone returns a deep copy of the tree.
func (n *Node) Clone() *Node {
	if n == nil {
		return nil
	}
	c := *n
	c.Names, c.Members, c.Elements = slices.Clone(n.Names), slices.Clone(n.Members), slices.Clone(n.Elements)
	for i := range c.Members {
		c.Members[i] = c.Members[i].Clone()
	}
	for i := range c.Elements {
		c.Elements[i] = c.Elements[i].Clone()
	}
	return &c
}

// ElementAt returns the node of an array element, or nil if the element is not used.
func (n *Node) ElementAt(place int) *Node {
	if i := slices.Index(n.Places, place); i >= 0 {
		return n.Elements[i]
	}
	return nil
}

// at returns the node at the end of a path. It creates missing nodes.
func (n *Node) at(steps []step) *Node {
	for _, s := range steps {
		n = n.child(s)
	}
	return n
}

func (n *Node) child(s step) *Node {
	if s.index < 0 {
		if i := slices.Index(n.Names, s.name); i >= 0 {
			return n.Members[i]
		}
		n.Names, n.Members = append(n.Names, s.name), append(n.Members, newNode())
		return n.Members[len(n.Members)-1]
	}
	if i := slices.Index(n.Places, s.index); i >= 0 {
		return n.Elements[i]
	}
	n.Places, n.Elements = append(n.Places, s.index), append(n.Elements, newNode())
	return n.Elements[len(n.Elements)-1]
}

func (f Field) plan(full string) PlannedField {
	name, component, k, _ := fieldOf(full)
	p := PlannedField{
		Name: full, Member: []byte(name), Component: component, IsText: k == text, Value: f.Value, Default: f.Default,
		Choices: f.Choices, Scale: 1, Exponent: -1, Last: f.Last,
	}
	if f.Scale != 0 {
		p.Scale = f.Scale
	}
	if f.Unit != "" {
		p.Exponent = 9 - 3*slices.Index([]string{"s", "ms", "us", "ns"}, f.Unit)
	}
	return p
}

func (c Condition) plan() PlannedCondition {
	p := PlannedCondition{}
	literals := c.In
	switch {
	case c.NotIn != nil:
		literals, p.Refuse, p.Absent = c.NotIn, true, true
	case len(c.Exists) > 0:
		p.Exists, p.Absent = true, string(c.Exists) == "false"
		return p
	case c.In == nil: // an expression that must be true
		literals = []Literal{{json.RawMessage("true")}}
	}
	p.In = map[string]bool{}
	for _, l := range literals {
		s, _ := l.text()
		p.In[s] = true
	}
	return p
}

// Met reports whether a value meets the condition. isScalar is false for an object or an array, which has no text.
func (c *PlannedCondition) Met(text []byte, isScalar bool) bool {
	if c.Exists {
		return !c.Absent
	}
	return (isScalar && c.In[string(text)]) != c.Refuse
}
