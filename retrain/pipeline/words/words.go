// Package words checks the words of a command. No shell interprets the list, so a program receives variables and
// operators unchanged, and a script in place of a file is taken for a file name.
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

// everyStage are the variables that every stage sets.
var everyStage = strings.Fields("VERSION IMAGE WORK REQUEST")

var (
	// ofStage matches a use of these variables. Unexpanded, it would deploy a version that does not exist.
	ofStage = regexp.MustCompile(fmt.Sprintf(`\$(?:%[1]s)\b|\$\{(?:%[1]s)\b[^}]*\}`, strings.Join(everyStage, "|")))
	// variable matches a variable that is a whole word, the value of an option, or the beginning of a path.
	variable = regexp.MustCompile(`^(?:--?[\w-]+=)?(\$(?:\{[A-Za-z_]\w*\}|[A-Za-z_]\w*))(?:/.*)?$`)
	// script matches shell options that make the first argument the script, such as -c and -ec.
	script = regexp.MustCompile(`^-[A-Za-z]*c[A-Za-z]*$`)
	// hasValue matches shell options whose value, a setting or a file, is the next word, such as -o and -euo.
	hasValue = regexp.MustCompile(`^(?:[-+][A-Za-z]*[oO]|--rcfile|--init-file)$`)
	// login matches the options with which su starts a login shell, which drops the variables of the stage.
	login = regexp.MustCompile(`^(?:-[A-Za-z]*l[A-Za-z]*|--?login|-)$`)
	// plain matches a word that may be the name of a script in its error messages, as opposed to a file or an option.
	plain = regexp.MustCompile(`^(?:--?|\w[\w-]*)$`)
	// sendsVariables matches an ssh option that sets variables on the other machine.
	sendsVariables = regexp.MustCompile(`(?i)^(?:-o)?(?:SendEnv|SetEnv)\b`)
	// keeps matches the su option that lists the variables that a login shell keeps.
	keeps = regexp.MustCompile(`^(?:-w|--whitelist-environment)`)
	// ofOperators matches text in a word with spaces that shows it to be a command line instead of a path.
	ofOperators = regexp.MustCompile(`[&|;<>$]|\s-`)
	// beforeShell matches the words that may precede a shell that the command starts: programs such as env and sudo,
	// and their options, settings and times.
	beforeShell = regexp.MustCompile(`^(-.*|\w+=.*|[0-9]+(?:\.[0-9]+)?[smhd]?|env|exec|nice|nohup|sudo|time|timeout|setsid|stdbuf)$`)
)

var shells = strings.Fields("sh bash dash ash ksh zsh")

// inShell advises how to write a command that needs a shell.
const inShell = "; write the command as [sh, -c, '...']"

// Fault returns what is wrong with word i of a command, or "". The word may be empty, need a shell that the command
// does not start, be misplaced in the arguments of a shell, or have a syntax error if it is a script. known are the
// variables that the file declares. dash reports whether sh is dash in the image that runs the command.
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
		return cmp.Or(programFault(words, i, dash), misspelled(word, names), lowercase(word, names), asRoot(words, i, known))
	case isScript && i > from:
		return afterScript(words, from, i, known)
	case shell >= 0 && i == from && isCommand(words, shell, i):
		return "must be the file of a script, not " + fmt.Sprintf("%q", word) + ", because " + path.Base(words[shell]) + " reads commands only after -c" + inShell
	case isOfSu(words, i):
		return cmp.Or(shellFault("sh", strings.TrimPrefix(word, "--command="), false), ofSu(words, word, names))
	case ofPython(words, i):
		return oneline.Python(word)
	}
	fault := cmp.Or(notProgram(words, i), ofShellAlone(words, i), unexpanded(words[:i], word, known), asRoot(words, i, known))
	if fault == "" && i == len(words)-1 {
		return unfinished(words)
	}
	return fault
}

func isShell(word string) bool { return slices.Contains(shells, path.Base(word)) }

// isPath reports whether a word with spaces may be a path.
func isPath(word string) bool {
	return strings.Contains(strings.Fields(word + " .")[0], "/") && !ofOperators.MatchString(word)
}

// shellOf returns the index of the first word that starts a shell, or -1. It ignores the value of su's option -s or
// --shell: the script is then an argument of su.
func shellOf(words []string) int {
	for i, word := range words {
		if isShell(word) && (i == 0 || words[i-1] != "-s" && words[i-1] != "--shell") {
			return i
		}
	}
	return -1
}

// argument returns the index of the first argument after the options of the shell at the given index, or -1. isScript
// reports whether the shell reads it as a script instead of a file name.
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
	isName := i == from+1 && i == len(words)-1 && // $0, the prefix of the shell's error messages
		(plain.MatchString(word) || strings.ContainsAny(text, ";&|\n") && !strings.HasPrefix(word, "-"))
	switch fault := unexpanded(nil, word, known); {
	case fault != "":
		return fault
	case !strings.Contains(text, "$") && !isShell(word) && !isName:
		return fmt.Sprintf("must be part of the script, not %q: sh -c passes later words to the script as $0, $1 and so on, which it does not use", word)
	}
	return ""
}

// isOfSu reports whether word i is the script that su passes to a shell.
func isOfSu(words []string, i int) bool {
	return has(words[:i], "su", "runuser") && (script.MatchString(words[i-1]) || words[i-1] == "--command" || strings.HasPrefix(words[i], "--command="))
}

// ofSu returns what is wrong with the variables in a script of su.
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

// has reports whether words contain one of the programs, with or without a path.
func has(words []string, programs ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(programs, path.Base(w)) })
}

// unexpanded returns what is wrong with a word whose variable nothing expands, or "". It reports only variables of the
// stage, secrets of the file, names close to these, and variables that every system sets, because programs such as jq
// read other variables themselves. before are the words before it.
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
	// setsOthers matches commands that may set variables which the script does not name.
	setsOthers = regexp.MustCompile(`(?:^|[;&|({\n!]|\b(?:then|else|do|command|builtin)\s)\s*\.\s|\b(?:source|eval|mapfile|readarray|printf\s+-v)\s`)
	common     = strings.Fields("HOME PATH USER PWD SHELL LANG HOSTNAME TMPDIR")
)

// misspelled returns what is wrong with a script that uses a variable which it does not set and whose name is close to
// one of known. A script that sources a file, or uses eval and the like, may set any variable.
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
	inSmall  = regexp.MustCompile(`(?s)\\.|\$\{?([a-z_]+)\b`) // the first alternative skips an escaped character, as in \$version for jq in double quotes
)

// lowercase returns what is wrong with a script that uses a variable of the stage in lowercase, which nothing sets. It
// ignores single-quoted text, which may be a script for another program, such as jq.
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

// sets reports whether a script assigns a variable, reads it from input, or handles the case that it is unset.
func sets(script, name string) bool {
	return regexp.MustCompile(`(?:^|[\s;&|({])` + name + `\+?=` +
		`|\b(?:for|select|read|declare|typeset|local|export|readonly)\s+(?:(?:"[^"]*"|'[^']*'|[^\n;&|"'])*\s)?` + name + `\b` +
		`|\bgetopts\s+(?:"[^"]*"|'[^']*'|\S+)\s+` + name + `\b` +
		`|\(\((?:[^()\n]*[^\w$()\n])?(?:` + name + `\s*(?:[-+*/%]?=[^=]|\+\+|--)|(?:\+\+|--)` + name + `\b)` +
		`|\$\{` + name + `:?[-=+?]`).MatchString(script)
}
