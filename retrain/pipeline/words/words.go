// Package words checks the words of a command. No shell reads the list that a file gives, so that a variable, an operator
// or a script in the wrong place reaches the program as it is written.
package words

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/nearest"
)

// OfStage are the variables that every stage has.
var OfStage = strings.Fields("VERSION IMAGE WORK REQUEST")

var (
	// ofStage matches variables of a stage, in whose place literal text deploys a version that does not exist, and the home
	// directory at the beginning of a path.
	ofStage = regexp.MustCompile(`\$(VERSION|IMAGE|WORK|REQUEST)\b|\$\{(VERSION|IMAGE|WORK|REQUEST)\b[^}]*\}|^~/`)
	// variable matches a variable that is a word, the value of an option, or the beginning of a path.
	variable = regexp.MustCompile(`^(?:--?[\w-]+=)?(\$(?:\{[A-Za-z_]\w*\}|[A-Za-z_]\w*))(?:/.*)?$`)
	// script matches the options of a shell after which its script comes, such as -c and -ec.
	script = regexp.MustCompile(`^-[a-z]*c$`)
	// sendsVariables matches an option of ssh that gives the other machine variables.
	sendsVariables = regexp.MustCompile(`(?i)^(?:-o)?(?:SendEnv|SetEnv)\b`)
	// ofOperators matches what only a shell reads in a word with spaces.
	ofOperators = regexp.MustCompile(`[&|;<>$]|\s-`)
	// beforeShell matches the words that a program which starts another one has before it: options, settings and times.
	beforeShell = regexp.MustCompile(`^(-.*|\w+=.*|[0-9]+[smhd]?|env|exec|nice|nohup|sudo|time|timeout|setsid|stdbuf)$`)
)

var (
	shells = strings.Fields("sh bash dash ash ksh zsh")
	// operators are words that only a shell understands.
	operators = strings.Fields("&& || >> 2>&1")
)

// inShell is how a command with a shell is written.
const inShell = "; write the command as [sh, -c, '...']"

// Fault returns what is wrong with word i of a command, "" for nothing: it is empty or, without a shell that reads it,
// needs one. known are the variables that the file names.
func Fault(words []string, i int, known []string) string {
	word := words[i]
	shell := slices.IndexFunc(words[:i], isShell)
	from := scriptAt(words, shell)
	switch {
	case word == "":
		return "must not be empty"
	case i == 0 && strings.ContainsAny(word, " \t") && !isPath(word):
		return "must be a program without arguments, which are words of their own, as in [python, train.py]"
	case shell >= 0 && i == from:
		return misspelled(word, append(slices.Clone(OfStage), known...))
	case from > 0 && i > from:
		return afterScript(words[from], word)
	case shell >= 0 && from < 0 && isCommand(words, shell, i):
		return "must be the file of a script, not " + fmt.Sprintf("%q", word) + ", because " + path.Base(words[shell]) + " reads commands only after -c" + inShell
	case slices.Contains(operators, word):
		return "must not be " + word + ", because no shell reads a list" + inShell
	}
	return unexpanded(words[:i], word)
}

func isShell(word string) bool { return slices.Contains(shells, path.Base(word)) }

// isPath reports whether a word with spaces may be the path of a file.
func isPath(word string) bool {
	return strings.Contains(strings.Fields(word + " .")[0], "/") && !ofOperators.MatchString(word)
}

// scriptAt returns the index of the script of a shell at an index, -1 without one.
func scriptAt(words []string, shell int) int {
	if shell < 0 {
		return -1
	}
	for i, word := range words[shell+1:] {
		switch {
		case script.MatchString(word):
			return shell + i + 2
		case !strings.HasPrefix(word, "-") && word != "pipefail":
			return -1
		}
	}
	return -1
}

// isCommand reports whether word i is the first argument of the shell that a command starts, and commands instead of a
// file.
func isCommand(words []string, shell, i int) bool {
	before := append(slices.Clone(words[:shell]), words[shell+1:i]...)
	return !slices.ContainsFunc(before, func(w string) bool { return !beforeShell.MatchString(w) && w != "pipefail" }) &&
		strings.ContainsAny(words[i], " \t") && !isPath(words[i])
}

// afterScript returns what is wrong with a word after a script, which sees it only as $0, $1 and so on.
func afterScript(script, word string) string {
	switch {
	case unexpanded(nil, word) != "":
		return unexpanded(nil, word)
	case !strings.Contains(script, "$") && !isShell(word):
		return fmt.Sprintf("must be part of the script, not %q: sh -c gives later words to the script, which does not read them", word)
	}
	return ""
}

// unexpanded returns what is wrong with a word after others if it has a variable that nothing expands.
func unexpanded(before []string, word string) string {
	found := ofStage.FindString(word)
	if m := variable.FindStringSubmatch(word); found == "" && m != nil {
		found = m[1]
	}
	program := func(name string) bool {
		return slices.ContainsFunc(before, func(w string) bool { return path.Base(w) == name })
	}
	switch {
	case found == "" || program("envsubst"):
		return ""
	case program("ssh") && slices.ContainsFunc(before, sendsVariables.MatchString):
		return ""
	case program("ssh"):
		return "must not contain " + found + ", which the other machine does not have; write the command as [sh, -c, 'ssh HOST \"... " + found + "\"']"
	}
	return "must not contain " + found + ", because no shell expands it in a list" + inShell
}

var (
	uses   = regexp.MustCompile(`\$\{?([A-Z][A-Z0-9_]{3,})`)
	common = strings.Fields("HOME PATH USER PWD SHELL LANG HOSTNAME TMPDIR")
)

// misspelled returns what is wrong with a script that uses a variable which it does not set, and whose name is nearly
// that of one that the stage has.
func misspelled(script string, known []string) string {
	for _, m := range uses.FindAllStringSubmatch(script, -1) {
		name := m[1]
		if slices.Contains(known, name) || slices.Contains(common, name) || sets(script, name) {
			continue
		}
		if near := nearest.Of(name, slices.Values(known)); near != "" && nearest.Distance(name, near) <= len(near)/3 {
			return fmt.Sprintf("must not contain $%s, which nothing sets (did you mean $%s?)", name, near)
		}
	}
	return ""
}

// sets reports whether a script gives a variable a value.
func sets(script, name string) bool {
	return regexp.MustCompile(`(?:^|[\s;&|({])` + name + `=|\b(?:for|read|read -r)\s+(?:\w+\s+)*` + name + `\b|\$\{` + name + `:?[-=+?]`).MatchString(script)
}
