package avro

import (
	"fmt"
	"strings"

	"github.com/twmb/avro"
	"github.com/twmb/avro/atype"
)

// node is a compiled type of a schema. Recursive types form cycles.
type node struct {
	kind    string // a constant of atype
	logical string // logical type; "" if there is none
	scale   int    // of a decimal
	size    int    // of a fixed
	items   *node  // of an array or a map
	types   []*node
	fields  []string // field names of a record, whose types are in types; nil for a union, which only has types
	symbols []string
}

// compile compiles a schema. Names of types are replaced by the nodes of these types.
func compile(root *avro.SchemaNode) (*node, error) {
	c := compiler{}
	c.define(root)
	return c.node(root, "")
}

// compiler contains the named types of a schema by full name.
type compiler map[string]*node

// within returns the namespace that applies within a type.
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

// children calls do for the types directly within a type.
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

// define adds an empty node for each named type, because a name may be used before its definition.
func (c compiler) define(s *avro.SchemaNode) {
	switch s.Type {
	case atype.Record, atype.Error, atype.Enum, atype.Fixed:
		c[fullName(s)] = &node{}
	}
	children(s, c.define)
}

// node compiles a type. namespace is the one that contains the type.
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

// named returns the type with the given name. Unless the name is qualified, it is looked up in the namespace in which
// it is used.
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
