package mapping

import (
	"errors"
	"fmt"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// Env is what an expression computes from. Numbers are int64 where they are whole, and float64 otherwise.
type Env struct {
	Record  any               `expr:"record"`
	Element any               `expr:"element"` // nil without each
	Key     string            `expr:"key"`     // of the message, "" without one
	Headers map[string]string `expr:"headers"`
}

// Program is a compiled expression. It reads only its Env and the time zones of the machine. Its time grows at
// most with the square of the record, as no loop over a list holds another one.
type Program struct {
	program *vm.Program
	// Record and Element are whether it may read these.
	Record, Element bool
}

// The bounds of an expression.
const (
	maxNodes  = 1000    // in its text
	maxMemory = 100_000 // elements of lists and maps that one evaluation makes
)

func compileExpression(text string) (*Program, error) {
	p, err := expr.Compile(text, expr.Env(Env{}), expr.MaxNodes(maxNodes), expr.DisableBuiltin("now"), expr.DisableBuiltin("timezone"))
	if err != nil {
		return nil, plainError(err)
	}
	loops := &loopFinder{names: map[string]bool{}}
	root := p.Node()
	ast.Walk(&root, loops)
	if loops.nested {
		return nil, errors.New("loops must not be nested, because the run time would grow with the square of the record size")
	}
	return &Program{p, loops.names["record"] || loops.names["$env"], loops.names["element"] || loops.names["$env"]}, nil
}

// plainError returns the error of a compiler without its drawing of the place.
func plainError(err error) error {
	if at, ok := errors.AsType[*file.Error](err); ok {
		return fmt.Errorf("at character %d: %s", at.Column+1, at.Message)
	}
	return err
}

// loopFinder finds loops that hold others, and the names that an expression uses.
type loopFinder struct {
	nested bool
	names  map[string]bool
}

// Visit implements ast.Visitor.
func (l *loopFinder) Visit(n *ast.Node) {
	switch node := (*n).(type) {
	case *ast.PredicateNode:
		inner := &predicateFinder{}
		ast.Walk(&node.Node, inner)
		l.nested = l.nested || inner.found
	case *ast.IdentifierNode:
		l.names[node.Value] = true
	}
}

type predicateFinder struct{ found bool }

// Visit implements ast.Visitor.
func (p *predicateFinder) Visit(n *ast.Node) {
	if _, ok := (*n).(*ast.PredicateNode); ok {
		p.found = true
	}
}

// Machine runs programs, one at a time.
type Machine struct {
	vm vm.VM
}

// Run returns the value of a program. It recovers from panics in it.
func (m *Machine) Run(p *Program, env Env) (any, error) {
	m.vm.MemoryBudget = maxMemory
	value, err := m.vm.Run(p.program, env)
	if err != nil {
		return nil, plainError(err)
	}
	return value, nil
}
