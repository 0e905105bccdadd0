package words

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/oneline"
)

// maxScript is the size in bytes of the longest script that is parsed: the parser uses memory for each open bracket.
const maxScript = 16 << 10

// languages are the languages that a shell may read. Which of several it reads depends on the image or machine.
var languages = map[string][]syntax.LangVariant{
	"bash": {syntax.LangBash}, "dash": {syntax.LangPOSIX},
	"sh": {syntax.LangPOSIX, syntax.LangBash}, "ash": {syntax.LangPOSIX, syntax.LangBash},
	"ksh": {syntax.LangMirBSDKorn, syntax.LangBash}, "zsh": {syntax.LangZsh, syntax.LangBash},
}

// quoteInBraces matches a quote that dash takes literally, as in "${VERSION:-it's none}", but that begins a string in
// other shells.
var quoteInBraces = regexp.MustCompile(`\$\{[^}]*'`)

const onlyBash = "must be a script that %s can read: only bash knows %s; write [bash, -c, '...']"

// ofBash are the commands that dash lacks.
var ofBash = strings.Fields("[[ declare typeset shopt mapfile readarray pushd popd let source")

// shellFault returns what is wrong with a shell script: it has a syntax error, it runs nothing, or one of the programs
// that it runs has such a fault.
func shellFault(shell, script string, dash bool) string {
	if len(script) > maxScript || shell != "bash" && quoteInBraces.MatchString(script) {
		return ""
	}
	reads, first := shell, error(nil)
	if shell == "sh" && dash {
		reads = "dash"
	}
	for _, language := range languages[reads] {
		file, err := syntax.NewParser(syntax.Variant(language)).Parse(strings.NewReader(script), "")
		if err == nil {
			return inside(file, reads, dash)
		}
		first = cmp.Or(first, err)
	}
	var wrong syntax.ParseError
	var foreign syntax.LangError
	switch {
	case errors.As(first, &foreign):
		return fmt.Sprintf(onlyBash, shell, excerpt(script, foreign.Pos))
	case errors.As(first, &wrong):
		return fmt.Sprintf("must be a script that %s can read: %s, at %s", shell, wrong.Text, excerpt(script, wrong.Pos))
	}
	return ""
}

// inside returns what is wrong with a parsed script: it runs nothing, or one of the programs that it runs has a fault.
func inside(file *syntax.File, shell string, dash bool) string {
	if len(file.Stmts) == 0 {
		return "must not be empty"
	}
	fault := ""
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		switch {
		case !ok || len(call.Args) == 0 || fault != "":
		case shell == "dash" && slices.Contains(ofBash, call.Args[0].Lit()):
			fault = fmt.Sprintf(onlyBash, "sh", strconv.Quote(call.Args[0].Lit()))
		default:
			fault = literalFault(call.Args, dash)
		}
		return fault == ""
	})
	return fault
}

// literalFault returns what is wrong with the script or Python program among the words of a command, up to the first
// word that depends on a variable.
func literalFault(args []*syntax.Word, dash bool) string {
	var all []string
	for _, arg := range args {
		text, known := literal(arg)
		if !known {
			break
		}
		all = append(all, text)
	}
	for i := range all {
		if fault := programFault(all, i, dash); fault != "" {
			return fault
		}
	}
	return ""
}

// literal returns a word of a script as the program receives it. known is false if the word depends on a variable.
func literal(word *syntax.Word) (text string, known bool) {
	for _, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text += escaped.ReplaceAllString(part.Value, "$1")
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			text += part.Value
		case *syntax.DblQuoted:
			if len(part.Parts) > 1 || part.Dollar {
				return "", false
			}
			for _, p := range part.Parts {
				lit, ok := p.(*syntax.Lit)
				if !ok {
					return "", false
				}
				text += escapedInQuotes.ReplaceAllString(lit.Value, "$1")
			}
		default:
			return "", false
		}
	}
	return text, true
}

var (
	escaped         = regexp.MustCompile(`\\(.)`)
	escapedInQuotes = regexp.MustCompile("\\\\([\"\\\\$`])")
	python          = regexp.MustCompile(`^(?:python|pypy)(?:3[0-9.]*)?$`)
	// pythonProgram matches Python's -c, which may follow other options in the same word.
	pythonProgram = regexp.MustCompile(`^-[bBdEhiIOPqRsSuvVx]*c$`)
	// pythonNext matches Python options whose value is the next word.
	pythonNext = regexp.MustCompile(`^(?:-[bBdEiIOPqRsSuvx]*[WX]|--check-hash-based-pycs)$`)
)

// programFault returns what is wrong with word i of a command as a shell script or a Python program. dash reports
// whether sh is dash in the image; after a program such as docker, the script may run elsewhere with another sh.
func programFault(words []string, i int, dash bool) string {
	shell := shellOf(words[:i])
	if from, isScript := argument(words, shell); isScript && i == from {
		return shellFault(path.Base(words[shell]), words[i], dash && shell == programOf(words))
	}
	if ofPython(words, i) {
		return oneline.Python(words[i])
	}
	return ""
}

// ofPython reports whether word i is the program after -c of a Python interpreter.
func ofPython(words []string, i int) bool {
	at := slices.IndexFunc(words[:i], func(w string) bool { return python.MatchString(path.Base(w)) })
	if at < 0 {
		return false
	}
	for j := at + 1; j < i; j++ {
		switch word := words[j]; {
		case pythonProgram.MatchString(word):
			return j == i-1
		case pythonNext.MatchString(word):
			j++
		case !strings.HasPrefix(word, "-"):
			return false
		}
	}
	return false
}

// excerpt quotes the beginning of the faulty part of a script for a message.
func excerpt(script string, at syntax.Pos) string {
	r := []rune(strings.ToValidUTF8(script[min(len(script), int(at.Offset())):], ""))
	switch {
	case len(r) == 0:
		return "its end"
	case len(r) > 20:
		r = append(r[:20:20], []rune("...")...)
	}
	return fmt.Sprintf("%q", string(r))
}
