package avro

import (
	"fmt"
	"strings"

	"github.com/twmb/avro"
	"github.com/twmb/avro/atype"
)

// node is a type of a schema, with what its values need to be read. Types that contain themselves make it a cycle.
type node struct {
	kind    string // one of atype
	logical string // "" without one
	scale   int    // of a decimal
	size    int    // of a fixed
	items   *node  // of an array or a map
	types   []*node
	fields  []string // the names of a record, whose types are types. A union has types only.
	symbols []string
}

// compile returns the node of a schema, in which named types are replaced by their nodes.
func compile(root *avro.SchemaNode) (*node, error) {
	c := compiler{}
	c.define(root)
	return c.node(root, "")
}

// compiler has the named types of a schema by their full names.
type compiler map[string]*node

// within returns the namespace of what is inside a type.
func within(s *avro.SchemaNode, namespace string) string {
	switch s.Type {
	case atype.Record, atype.Error, atype.Enum, atype.Fixed:
		return namespaceOf(s)
	}
	return namespace
}

func namespaceOf(s *avro.SchemaNode) string {
	if i := strings.LastIndexByte(s.Name, '.'); i >= 0 {
		return s.Name[:i]
	}
	return s.Namespace
}

func fullName(s *avro.SchemaNode) string {
	return inNamespace(s.Name[strings.LastIndexByte(s.Name, '.')+1:], namespaceOf(s))
}

func inNamespace(name, namespace string) string {
	if namespace == "" {
		return name
	}
	return namespace + "." + name
}

// children calls do for the types inside a type.
func children(s *avro.SchemaNode, do func(*avro.SchemaNode)) {
	switch s.Type {
	case atype.Record, atype.Error:
		for i := range s.Fields {
			do(&s.Fields[i].Type)
		}
	case atype.Union:
		for i := range s.Branches {
			do(&s.Branches[i])
		}
	case atype.Array:
		do(s.Items)
	case atype.Map:
		do(s.Values)
	}
}

// define makes an empty node for each named type: a name may come before its definition.
func (c compiler) define(s *avro.SchemaNode) {
	switch s.Type {
	case atype.Record, atype.Error, atype.Enum, atype.Fixed:
		c[fullName(s)] = &node{}
	}
	children(s, c.define)
}

// node returns the node of a type that is in a namespace.
func (c compiler) node(s *avro.SchemaNode, namespace string) (*node, error) {
	n := &node{kind: s.Type, logical: s.LogicalType, scale: s.Scale, size: s.Size, symbols: s.Symbols}
	switch s.Type {
	case atype.Record, atype.Error, atype.Enum, atype.Fixed:
		*c[fullName(s)] = *n
		n = c[fullName(s)]
	case atype.Array, atype.Map, atype.Union, atype.Null, atype.Boolean, atype.Int, atype.Long, atype.Float, atype.Double, atype.Bytes, atype.String:
	default:
		return c.named(s.Type, namespace)
	}
	if n.kind == atype.Error {
		n.kind = atype.Record
	}
	for _, f := range s.Fields {
		n.fields = append(n.fields, f.Name)
	}
	var err error
	children(s, func(child *avro.SchemaNode) {
		if err == nil {
			n.items, err = c.node(child, within(s, namespace))
			n.types = append(n.types, n.items)
		}
	})
	return n, err
}

// named returns the type of a name, which is in the namespace where it is used unless it has one.
func (c compiler) named(name, namespace string) (*node, error) {
	if !strings.Contains(name, ".") {
		if n := c[inNamespace(name, namespace)]; n != nil {
			return n, nil
		}
	}
	if n := c[name]; n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("unknown type: %s", name)
}
