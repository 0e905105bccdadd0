package mapping

import (
	"errors"
	"fmt"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// Env contains the variables of an expression. Whole numbers are int64, others float64.
type Env struct {
	Record  any               `expr:"record"`
	Element any               `expr:"element"` // nil without each
	Key     string            `expr:"key"`     // message key, or "" if there is none
	Headers map[string]string `expr:"headers"`
}

// Program is a compiled expression. It depends only on its Env and the machine's time zones. Loops cannot be nested, so
// its run time grows at most with the square of the record size.
type Program struct {
	program *vm.Program
	// Record and Element report whether the expression may read them.
	Record, Element bool
}

// The limits of an expression.
const (
	maxNodes  = 1000    // nodes of the parsed expression
	maxMemory = 100_000 // elements of the lists and maps that one evaluation creates
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

// plainError returns a compiler error without the source excerpt.
func plainError(err error) error {
	if at, ok := errors.AsType[*file.Error](err); ok {
		return fmt.Errorf("at character %d: %s", at.Column+1, at.Message)
	}
	return err
}

// loopFinder detects nested loops, and collects the names that an expression uses.
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

// Run evaluates a program. A panic in it is returned as an error.
func (m *Machine) Run(p *Program, env Env) (any, error) {
	m.vm.MemoryBudget = maxMemory
	value, err := m.vm.Run(p.program, env)
	if err != nil {
		return nil, plainError(err)
	}
	return value, nil
}
