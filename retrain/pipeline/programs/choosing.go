package programs

import (
	"regexp"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
)

var (
	// asksFor is a condition that asks whether an argument is given: if args.checkpoint is not None.
	asksFor = regexp.MustCompile(`(?m)^([ \t]*)if[ \t]+(not[ \t]+)?\(?\w+(?:\.|\[["'])(\w+)(?:["']\])?\)?[ \t]*(==[ \t]*(?:None|""|'')|is[ \t]+None|!=[ \t]*(?:None|""|'')|is[ \t]+not[ \t]+None)?[ \t]*:[ \t]*\n`)
	// callsEvaluation and callsTraining are calls of functions that are named for what they do.
	callsEvaluation = regexp.MustCompile(`\b(?:eval\w*|test\w*|play\w*|enjoy\w*|infer\w*|watch\w*|(?:run|do)_(?:eval|test|inference|policy)\w*)\(`)
	callsTraining   = regexp.MustCompile(`\b(?:train\w*|learn|fit|(?:run|start|do)_train\w*)\(`)
	asksForNone     = regexp.MustCompile(`^(?:==|is[ \t]+None)`)
	leaves          = regexp.MustCompile(`(?m)^[ \t]+(?:return\b|(?:sys\.)?exit\()`)
)

// chooser returns the argument for the model that makes a program evaluate it instead of training, nil for none.
func chooser(p *program) *modules.Option {
	for _, m := range asksFor.FindAllStringSubmatchIndex(p.text, maxBlocks) {
		key := p.text[m[6]:m[7]]
		if !readsFrom.MatchString(key) {
			continue
		}
		given, other := branches(p.text, m[1], m[3]-m[2])
		if isNot := m[4] >= 0; isNot != asksForNone.MatchString(modules.Group(p.text, m, 4)) {
			given, other = other, given
		}
		if !callsEvaluation.MatchString(given) || callsTraining.MatchString(given) || !callsTraining.MatchString(other) {
			continue
		}
		for i, x := range p.flags {
			if x.Key() == key && !x.Boolean && !x.Position && x.Value == "" && !x.Required {
				return &p.flags[i]
			}
		}
	}
	return nil
}

// branches returns the block after a condition of an indent, and what runs instead of it: that after else, or all that
// follows a block that leaves the function.
func branches(text string, at, indent int) (block, other string) {
	end := blockEnd(text, at, indent)
	block, rest := text[at:end], text[end:]
	line, _, _ := strings.Cut(rest, "\n")
	switch {
	case indentOf(line) == indent && strings.HasPrefix(strings.TrimSpace(line), "else"):
		from := end + len(line) + 1
		if from > len(text) {
			return block, ""
		}
		return block, text[from:blockEnd(text, from, indent)]
	case leaves.MatchString(block):
		return block, text[end:blockEnd(text, end, indent-1)]
	}
	return block, ""
}

// blockEnd returns where the lines end that are indented by more than a number.
func blockEnd(text string, at, indent int) int {
	for at < len(text) {
		line, _, _ := strings.Cut(text[at:], "\n")
		if strings.TrimSpace(line) != "" && indentOf(line) <= indent {
			return at
		}
		at = min(len(text), at+len(line)+1)
	}
	return at
}

// evaluatesBy reports whether arguments make a program evaluate the model that they name.
func evaluatesBy(p *program, args []string) bool {
	for _, a := range args {
		name, _, _ := strings.Cut(a, "=")
		if strings.HasPrefix(name, "-") && readsFrom.MatchString(modules.Option{Name: name}.Key()) {
			x := chooser(p)
			return x != nil && has(args, *x)
		}
	}
	return false
}
