package fill

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// The names that a function may use. None of them can read or write files, import, or evaluate text.
var (
	builtins   = strings.Fields("False None True abs bool dict enumerate float int len list max min range reversed round sorted sum tuple zip")
	numpyNames = strings.Fields("abs absolute add arange arccos arcsin arctan arctan2 argmax argmin array asarray cbrt ceil clip concatenate copysign " +
		"cos cosh cross deg2rad degrees diff divide dot e equal exp expm1 eye float32 float64 floor full hstack hypot inf int32 int64 isfinite isinf " +
		"isnan linalg linspace log log10 log1p log2 max maximum mean median min minimum mod multiply nan nan_to_num ones ones_like outer percentile pi " +
		"power prod rad2deg radians ravel reshape round sign sin sinh sort sqrt square stack std subtract sum tan tanh transpose uint8 var vstack where " +
		"zeros zeros_like")
	linalgNames = strings.Fields("norm")
	methods     = strings.Fields("T all any append argmax argmin astype clip copy cumsum dot dtype extend flatten get items keys max mean min ndim " +
		"prod ravel reshape round shape size sort std sum transpose values var")
)

// maxNesting bounds the nesting of expressions and statements, which Python's own parser bounds too.
const maxNesting = 40

// checkFunction returns what is wrong with a function definition. It must be valid Starlark, which is a subset of
// Python without imports, classes, exceptions and while loops, and use only the names in the lists.
func checkFunction(text string) []string {
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }) {
		return []string{"it must be printable ASCII, indented by spaces"}
	}
	if m := address.FindString(text); m != "" {
		return []string{fmt.Sprintf("it must not contain addresses or decorators, but contains %q", m)}
	}
	file, err := (&syntax.FileOptions{}).Parse("features", text, 0)
	if err != nil {
		return []string{"it must be Starlark, a subset of Python: " + parseFault(err)}
	}
	c := checker{bound: map[string]bool{parameterName: true}}
	def := c.definition(file)
	if def == nil {
		return c.faults
	}
	for _, s := range def.Body {
		c.bind(s)
	}
	for _, s := range def.Body {
		c.statement(s, 1, 0)
	}
	if !c.returns {
		c.fault(def, "the function returns nothing")
	}
	if len(c.faults) > maxFaults {
		c.faults = append(c.faults[:maxFaults], fmt.Sprintf("and %d more", len(c.faults)-maxFaults))
	}
	return c.faults
}

// maxFaults bounds the number of faults that are reported.
const maxFaults = 8

func parseFault(err error) string {
	var at syntax.Error
	if errors.As(err, &at) {
		return fmt.Sprintf("line %d: %s", at.Pos.Line, at.Msg)
	}
	return err.Error()
}

// checker collects the faults of a function.
type checker struct {
	bound   map[string]bool // names that the function assigns
	faults  []string
	returns bool
}

func (c *checker) fault(n syntax.Node, format string, args ...any) {
	start, _ := n.Span()
	c.faults = append(c.faults, fmt.Sprintf("line %d: ", start.Line)+fmt.Sprintf(format, args...))
}

// definition returns the function if it is the only statement of the file, as it must be, or nil.
func (c *checker) definition(file *syntax.File) *syntax.DefStmt {
	if len(file.Stmts) == 1 {
		if def, ok := file.Stmts[0].(*syntax.DefStmt); ok && def.Name.Name == functionName && len(def.Params) == 1 {
			if p, ok := def.Params[0].(*syntax.Ident); ok && p.Name == parameterName {
				return def
			}
		}
	}
	c.faults = append(c.faults, fmt.Sprintf("it must consist of only the function def %s(%s):", functionName, parameterName))
	return nil
}

// bind records the names that a statement assigns.
func (c *checker) bind(s syntax.Stmt) {
	syntax.Walk(s, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.AssignStmt:
			c.target(n.LHS, n.Op != syntax.EQ)
		case *syntax.ForStmt:
			c.target(n.Vars, false)
		case *syntax.Comprehension:
			return false // its variables do not exist after it
		}
		return true
	})
}

// comprehension checks a comprehension. Its variables exist only inside it, and not yet in the first iterable.
// Otherwise, a variable called eval would make Python's eval an allowed name in the rest of the function.
func (c *checker) comprehension(n *syntax.Comprehension, depth int) {
	outside := c.bound
	for i, clause := range n.Clauses {
		f, ok := clause.(*syntax.ForClause)
		if i == 0 && ok {
			c.expression(f.X, depth)
			c.bound = maps.Clone(outside)
		}
		if ok {
			c.target(f.Vars, false)
		}
	}
	for i, clause := range n.Clauses {
		switch clause := clause.(type) {
		case *syntax.ForClause:
			c.expression(clause.Vars, depth)
			if i > 0 {
				c.expression(clause.X, depth)
			}
		case *syntax.IfClause:
			c.expression(clause.Cond, depth)
		}
	}
	c.expression(n.Body, depth)
	c.bound = outside
}

// target checks the target of an assignment.
func (c *checker) target(e syntax.Expr, augmented bool) {
	switch e := e.(type) {
	case *syntax.Ident:
		switch {
		// Starlark accepts some Python keywords as names.
		case pytext.IsKeyword(e.Name) || slices.Contains(builtins, e.Name) || e.Name == "numpy" || e.Name == functionName:
			c.fault(e, "%s cannot be assigned to", e.Name)
		case strings.HasPrefix(e.Name, "__"):
			c.fault(e, "names must not start with two underscores: %s", e.Name)
		}
		c.bound[e.Name] = true
	case *syntax.ParenExpr:
		c.target(e.X, augmented)
	case *syntax.IndexExpr:
	case *syntax.TupleExpr:
		c.targets(e, e.List, augmented)
	case *syntax.ListExpr:
		c.targets(e, e.List, augmented)
	default:
		c.fault(e, "only names, elements and tuples of them can be assigned to")
	}
}

func (c *checker) targets(n syntax.Node, list []syntax.Expr, augmented bool) {
	if augmented || len(list) == 0 {
		c.fault(n, "a tuple cannot be assigned to here")
	}
	for _, e := range list {
		c.target(e, augmented)
	}
}

// statement checks a statement at a nesting depth, inside a number of loops.
func (c *checker) statement(s syntax.Stmt, depth, loops int) {
	if depth > maxNesting {
		c.fault(s, "it is nested too deeply")
		return
	}
	all := func(body []syntax.Stmt, loops int) {
		for _, s := range body {
			c.statement(s, depth+1, loops)
		}
	}
	switch s := s.(type) {
	case *syntax.ExprStmt:
		c.expression(s.X, depth)
	case *syntax.AssignStmt:
		c.expression(s.LHS, depth)
		c.expression(s.RHS, depth)
	case *syntax.IfStmt:
		c.expression(s.Cond, depth)
		all(s.True, loops)
		all(s.False, loops)
	case *syntax.ForStmt:
		c.expression(s.Vars, depth)
		c.expression(s.X, depth)
		all(s.Body, loops+1)
	case *syntax.ReturnStmt:
		if s.Result != nil {
			c.returns = true
			c.expression(s.Result, depth)
		}
	case *syntax.BranchStmt:
		if s.Token != syntax.PASS && loops == 0 {
			c.fault(s, "%s is outside of a loop", s.Token)
		}
	default:
		c.fault(s, "this statement is not allowed")
	}
}

// expression checks an expression and everything in it.
func (c *checker) expression(e syntax.Expr, depth int) {
	syntax.Walk(e, func(n syntax.Node) bool {
		if n == nil {
			depth--
			return false
		}
		if depth++; depth > maxNesting {
			c.fault(n, "it is nested too deeply")
			depth--
			return false
		}
		if c.node(n, depth) {
			return true
		}
		depth-- // its children are not walked
		return false
	})
}

// node checks one node of an expression, and reports whether its children remain to be checked.
func (c *checker) node(n syntax.Node, depth int) bool {
	switch n := n.(type) {
	case *syntax.Ident:
		switch {
		case n.Name == "numpy":
			c.fault(n, "numpy can be used only as in numpy.%s", numpyNames[0])
		case !c.bound[n.Name] && !slices.Contains(builtins, n.Name):
			c.fault(n, "the name %s is not allowed or not defined", n.Name)
		}
	case *syntax.DotExpr:
		c.attribute(n, depth)
		return false
	case *syntax.CallExpr:
		c.call(n, depth)
		return false
	case *syntax.Comprehension:
		c.comprehension(n, depth)
		return false
	case *syntax.LambdaExpr:
		c.fault(n, "lambda is not allowed")
		return false
	}
	return true
}

// attribute checks an attribute of a value, or a member of numpy.
func (c *checker) attribute(n *syntax.DotExpr, depth int) {
	known, of := methods, "a value"
	switch dotted(n.X) {
	case "numpy":
		known, of = numpyNames, "numpy"
	case "numpy.linalg":
		known, of = linalgNames, "numpy.linalg"
	default:
		c.expression(n.X, depth)
	}
	if !slices.Contains(known, n.Name.Name) {
		c.fault(n, "the attribute %s of %s is not allowed", n.Name.Name, of)
	}
}

// dotted returns the dotted name that an expression consists of, or "" for any other expression.
func dotted(e syntax.Expr) string {
	switch e := e.(type) {
	case *syntax.Ident:
		return e.Name
	case *syntax.DotExpr:
		if of := dotted(e.X); of != "" {
			return of + "." + e.Name.Name
		}
	}
	return ""
}

// call checks a call: positional arguments must come first, and no keyword may be repeated.
func (c *checker) call(n *syntax.CallExpr, depth int) {
	c.expression(n.Fn, depth)
	var seen []string
	for _, arg := range n.Args {
		named, ok := arg.(*syntax.BinaryExpr)
		if !ok || named.Op != syntax.EQ {
			if len(seen) > 0 {
				c.fault(arg, "a positional argument follows a keyword argument")
			}
			if star, ok := arg.(*syntax.UnaryExpr); ok && (star.Op == syntax.STAR || star.Op == syntax.STARSTAR) {
				c.fault(arg, "starred arguments are not allowed")
			}
			c.expression(arg, depth)
			continue
		}
		name := named.X.(*syntax.Ident).Name // the parser accepts nothing else
		if slices.Contains(seen, name) || pytext.IsKeyword(name) || strings.HasPrefix(name, "_") {
			c.fault(arg, "the argument %s is not allowed or is repeated", name)
		}
		seen = append(seen, name)
		c.expression(named.Y, depth)
	}
}

// fence matches the code fence that models put around their answer despite the instructions.
var fence = regexp.MustCompile("(?s)^\\s*```[a-z]*\n(.*)\n```\\s*$")
