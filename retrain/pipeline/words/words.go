// Package words checks the words of a command. The command is a list that no shell reads: the program gets a variable or
// an operator unchanged, and a script where a file is expected is taken for the name of a file.
package words

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/nearest"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/oneline"
)

// everyStage are the variables that every stage has.
var everyStage = strings.Fields("VERSION IMAGE WORK REQUEST")

var (
	// ofStage matches a use of these variables. Unexpanded, it would deploy a version that does not exist.
	ofStage = regexp.MustCompile(fmt.Sprintf(`\$(?:%[1]s)\b|\$\{(?:%[1]s)\b[^}]*\}`, strings.Join(everyStage, "|")))
	// variable matches a variable that is a word, the value of an option, or the beginning of a path.
	variable = regexp.MustCompile(`^(?:--?[\w-]+=)?(\$(?:\{[A-Za-z_]\w*\}|[A-Za-z_]\w*))(?:/.*)?$`)
	// script matches the options of a shell with which its first argument is its script, such as -c and -ec.
	script = regexp.MustCompile(`^-[A-Za-z]*c[A-Za-z]*$`)
	// hasValue matches the options of a shell that take the next word, a setting or a file, such as -o and -euo.
	hasValue = regexp.MustCompile(`^(?:[-+][A-Za-z]*[oO]|--rcfile|--init-file)$`)
	// login matches the options with which su starts a login shell, which drops the variables of the stage.
	login = regexp.MustCompile(`^(?:-[A-Za-z]*l[A-Za-z]*|--?login|-)$`)
	// plain matches the name of a script in its messages, unlike the file or the option of a program.
	plain = regexp.MustCompile(`^(?:--?|\w[\w-]*)$`)
	// sendsVariables matches an option of ssh that sets variables on the other machine.
	sendsVariables = regexp.MustCompile(`(?i)^(?:-o)?(?:SendEnv|SetEnv)\b`)
	// keeps matches the option of su that names the variables that a login shell keeps.
	keeps = regexp.MustCompile(`^(?:-w|--whitelist-environment)`)
	// ofOperators matches what a word with spaces has if it is commands, and not the path of a file.
	ofOperators = regexp.MustCompile(`[&|;<>$]|\s-`)
	// beforeShell matches the words that may precede a shell which the command starts: programs such as env and sudo, and their
	// options, settings and times.
	beforeShell = regexp.MustCompile(`^(-.*|\w+=.*|[0-9]+(?:\.[0-9]+)?[smhd]?|env|exec|nice|nohup|sudo|time|timeout|setsid|stdbuf)$`)
)

var shells = strings.Fields("sh bash dash ash ksh zsh")

// inShell is how a command with a shell is written.
const inShell = "; write the command as [sh, -c, '...']"

// Fault returns what is wrong with word i of a command, "" for nothing: it is empty, needs a shell that the command does
// not have, is in the wrong place of one, or has a syntax error as the script of one. known are the variables that the file
// names. dash says that sh is dash in the image of the command.
func Fault(words []string, i int, known []string, dash bool) string {
	word := words[i]
	shell := shellOf(words[:i])
	from, isScript := argument(words, shell)
	names := slices.Concat(everyStage, known)
	switch {
	case word == "":
		return "must not be empty"
	case i == 0 && strings.ContainsAny(word, " \t") && !isPath(word):
		return "must be a program without arguments; write these as separate words, as in [python, train.py]"
	case isScript && i == from:
		return cmp.Or(programFault(words, i, dash), misspelled(word, names), lowercase(word, names))
	case isScript && i > from:
		return afterScript(words, from, i, known)
	case shell >= 0 && i == from && isCommand(words, shell, i):
		return "must be the file of a script, not " + fmt.Sprintf("%q", word) + ", because " + path.Base(words[shell]) + " reads commands only after -c" + inShell
	case isOfSu(words, i):
		return cmp.Or(shellFault("sh", strings.TrimPrefix(word, "--command="), false), ofSu(words, word, names))
	case ofPython(words, i):
		return oneline.Python(word)
	}
	fault := cmp.Or(notProgram(words, i), ofShellAlone(words, i), unexpanded(words[:i], word, known))
	if fault == "" && i == len(words)-1 {
		return unfinished(words)
	}
	return fault
}

func isShell(word string) bool { return slices.Contains(shells, path.Base(word)) }

// isPath reports whether a word with spaces may be the path of a file.
func isPath(word string) bool {
	return strings.Contains(strings.Fields(word + " .")[0], "/") && !ofOperators.MatchString(word)
}

// shellOf returns the index of the first word that starts a shell, or -1. The word after -s or --shell, an option of su,
// does not count: the script is then an argument of su.
func shellOf(words []string) int {
	for i, word := range words {
		if isShell(word) && (i == 0 || words[i-1] != "-s" && words[i-1] != "--shell") {
			return i
		}
	}
	return -1
}

// argument returns the index of the first argument of the shell at an index, or -1, and whether the shell takes it for a
// script instead of a file.
func argument(words []string, shell int) (at int, isScript bool) {
	if shell < 0 {
		return -1, false
	}
	for i := shell + 1; i < len(words); i++ {
		word := words[i]
		isScript = isScript || script.MatchString(word)
		switch {
		case hasValue.MatchString(word):
			i++
		case !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "+"):
			return i, isScript
		}
	}
	return -1, false
}

// isCommand reports whether word i, the first argument of a shell that the command starts, is a command line instead of
// a file.
func isCommand(words []string, shell, i int) bool {
	return !slices.ContainsFunc(words[:shell], func(w string) bool { return !beforeShell.MatchString(w) }) &&
		strings.ContainsAny(words[i], " \t") && !isPath(words[i])
}

// afterScript returns what is wrong with word i after a script, which can read it only as $0, $1 and so on.
func afterScript(words []string, from, i int, known []string) string {
	text, word := words[from], words[i]
	isName := i == from+1 && i == len(words)-1 && // $0, with which the messages of a shell begin
		(plain.MatchString(word) || strings.ContainsAny(text, ";&|\n") && !strings.HasPrefix(word, "-"))
	switch fault := unexpanded(nil, word, known); {
	case fault != "":
		return fault
	case !strings.Contains(text, "$") && !isShell(word) && !isName:
		return fmt.Sprintf("must be part of the script, not %q: sh -c passes later words to the script as $0, $1 and so on, which it does not use", word)
	}
	return ""
}

// isOfSu reports whether word i is the script of su, which a shell reads.
func isOfSu(words []string, i int) bool {
	return has(words[:i], "su", "runuser") && (script.MatchString(words[i-1]) || words[i-1] == "--command" || strings.HasPrefix(words[i], "--command="))
}

// ofSu returns what is wrong with a script of su.
func ofSu(words []string, text string, names []string) string {
	if slices.ContainsFunc(words, login.MatchString) && !slices.ContainsFunc(words, keeps.MatchString) {
		for _, m := range uses.FindAllStringSubmatch(text, -1) {
			if slices.Contains(names, m[1]) && !sets(text, m[1]) {
				return "must not contain $" + m[1] + ", which su does not keep in a login shell; write su without - and -l"
			}
		}
	}
	return misspelled(text, names)
}

// has reports whether one of some words is one of some programs.
func has(words []string, programs ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(programs, path.Base(w)) })
}

// unexpanded returns what is wrong with a word that has a variable which nothing expands: one of the stage, a secret of
// the file, a name close to theirs, or one that every system has. Programs such as jq read other variables themselves.
// before are the words before it.
func unexpanded(before []string, word string, known []string) string {
	names, overSSH := slices.Concat(everyStage, known), has(before, "ssh")
	found := ofStage.FindString(word)
	if m := variable.FindStringSubmatch(word); found == "" && m != nil {
		name := strings.Trim(m[1], "${}")
		inOtherCase := !strings.Contains(m[1], "{") && !has(before, comparing...) && slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
		if slices.Contains(known, name) || !overSSH && (slices.Contains(common, name) || inOtherCase || misspelled(m[1], names) != "") {
			found = m[1]
		}
	}
	if found == "" && !overSSH && strings.HasPrefix(word, "~/") {
		found = "~/"
	}
	switch {
	case found == "" || has(before, "envsubst"):
		return ""
	case overSSH && slices.ContainsFunc(before, sendsVariables.MatchString):
		return ""
	case overSSH:
		return "must not contain " + found + ", which the other machine does not have; write the command as [sh, -c, 'ssh HOST \"... " + found + "\"']"
	}
	return "must not contain " + found + ", because no shell expands it in a list" + inShell
}

var (
	uses = regexp.MustCompile(`\$\{?([A-Z][A-Z0-9_]{3,})`)
	// setsOthers matches commands that may set variables whose names are not in the script.
	setsOthers = regexp.MustCompile(`(?:^|[;&|({\n!]|\b(?:then|else|do|command|builtin)\s)\s*\.\s|\b(?:source|eval|mapfile|readarray|printf\s+-v)\s`)
	common     = strings.Fields("HOME PATH USER PWD SHELL LANG HOSTNAME TMPDIR")
)

// misspelled returns what is wrong with a script that uses a variable which it does not set, and whose name is close to
// that of one of the stage. A script that runs another file in the same shell, or uses eval and the like, may set any.
func misspelled(script string, known []string) string {
	if setsOthers.MatchString(script) {
		return ""
	}
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

var (
	inQuotes = regexp.MustCompile(`'[^']*'`)
	inSmall  = regexp.MustCompile(`(?s)\\.|\$\{?([a-z_]+)\b`) // or an escaped character, as in \$version for jq in double quotes
)

// lowercase returns what is wrong with a script that uses a variable of the stage in lowercase, which nothing sets. What is
// in single quotes may be a script for another program, such as jq.
func lowercase(script string, known []string) string {
	if setsOthers.MatchString(script) {
		return ""
	}
	for _, m := range inSmall.FindAllStringSubmatch(inQuotes.ReplaceAllString(script, ""), -1) {
		if name := strings.ToUpper(m[1]); slices.Contains(known, name) && !sets(script, m[1]) {
			return fmt.Sprintf("must not contain $%s, which nothing sets (did you mean $%s?)", m[1], name)
		}
	}
	return ""
}

// sets reports whether a script assigns a variable, reads it from input, or says what to do if it is not set.
func sets(script, name string) bool {
	return regexp.MustCompile(`(?:^|[\s;&|({])` + name + `\+?=` +
		`|\b(?:for|select|read|declare|typeset|local|export|readonly)\s+(?:(?:"[^"]*"|'[^']*'|[^\n;&|"'])*\s)?` + name + `\b` +
		`|\bgetopts\s+(?:"[^"]*"|'[^']*'|\S+)\s+` + name + `\b` +
		`|\(\((?:[^()\n]*[^\w$()\n])?(?:` + name + `\s*(?:[-+*/%]?=[^=]|\+\+|--)|(?:\+\+|--)` + name + `\b)` +
		`|\$\{` + name + `:?[-=+?]`).MatchString(script)
}
