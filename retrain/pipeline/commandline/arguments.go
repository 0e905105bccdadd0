package commandline

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
)

// Flags are the arguments that a program defines.
type Flags []modules.Option

// Given returns the value that args have for an argument of a program, or "".
func (f Flags) Given(args []string, x modules.Option) string {
	i := f.index(args, x)
	if i < 0 {
		return ""
	}
	if _, value, ok := strings.Cut(args[i], "="); ok && !x.Position {
		return value
	}
	return args[i]
}

// Give sets an argument of a program in args.
func (f Flags) Give(args []string, x modules.Option, value string) []string {
	if i := f.index(args, x); i >= 0 && x.Position {
		out := slices.Clone(args)
		out[i] = value
		return out
	}
	return Set(args, x, value)
}

// index returns where args have the value of an argument of a program, or -1.
func (f Flags) index(args []string, x modules.Option) int {
	before := 0 // number of preceding positional arguments
	for _, y := range f {
		if y.Position && y.Name == x.Name {
			break
		}
		if y.Position {
			before++
		}
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		isFlag, joined := strings.HasPrefix(a, "-"), strings.Contains(a, "=")
		switch {
		case !x.Position && Has([]string{a}, x) && joined:
			return i
		case !x.Position && Has([]string{a}, x):
			return min(i+1, len(args)-1)
		case isFlag && !joined && !f.IsBoolean(a):
			i++ // skip its value
		case isFlag || !x.Position:
		case before == 0:
			return i
		default:
			before--
		}
	}
	return -1
}

// Positions counts the positional arguments in args.
func (f Flags) Positions(args []string) int {
	n := 0
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case !strings.HasPrefix(a, "-"):
			n++
		case strings.Contains(a, "="), f.IsBoolean(a):
		default:
			i++
		}
	}
	return n
}

// IsBoolean reports whether the argument with a name takes no value.
func (f Flags) IsBoolean(name string) bool {
	return slices.ContainsFunc(f, func(x modules.Option) bool { return x.Is(name) && x.Boolean })
}

// Has reports whether args set an argument.
func Has(args []string, x modules.Option) bool {
	if x.Position {
		return false
	}
	return slices.ContainsFunc(args, func(a string) bool {
		name, _, _ := strings.Cut(a, "=")
		return (strings.HasPrefix(name, "-") || x.OfHydra()) && x.Is(name)
	})
}

// Set sets an argument in args.
func Set(args []string, x modules.Option, value string) []string {
	for i, a := range args {
		if !Has([]string{a}, x) {
			continue
		}
		out := slices.Clone(args)
		if name, _, ok := strings.Cut(a, "="); ok {
			out[i] = name + "=" + value
		} else if i+1 < len(out) {
			out[i+1] = value
		}
		return out
	}
	return append(args, x.Words(value)...)
}
