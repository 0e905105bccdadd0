package words

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	// operator matches a word that is a shell operator.
	operator = regexp.MustCompile(`^(?:&&|\|\|?|\|&|;;?|&|[0-9]?>>?|[0-9]?>&[0-9-]|&>>?|<<?<?)$`)
	// certain matches the operators that no program accepts as an argument.
	certain = regexp.MustCompile(`^(?:&&|\|\||\|&|[0-9]?>>|[0-9]>|[0-9]?>&[0-9-]|&>>?|<<<?)$`)
	// redirection matches an operator that is joined with its file.
	redirection = regexp.MustCompile(`^(?:[0-9]?>>?|&>>?|<)[\w$~-]*[./][\w./$~-]*[A-Za-z][\w./$~-]*$`)
	// isFile matches a word that looks like a file.
	isFile = regexp.MustCompile(`^[\w./$~-]*(?:/|\.[A-Za-z])[\w./$~-]*$`)
	// takesSign matches options whose value may be a sign, such as a field separator.
	takesSign = regexp.MustCompile(`(?i)^-[a-z0-9]$|delim|sep|ifs|join|char|op|pattern|regex|split|prefix|suffix|end|glue|quote|symbol|sign|term`)
	// substitution matches a word with a command substitution.
	substitution = regexp.MustCompile("^[\\w@%+=:,./-]*(?:\\$\\([^()]*\\)|`[^`]+`)[\\w@%+=:,./-]*$")
	// givesCommand matches options whose value a program passes on to a shell.
	givesCommand = regexp.MustCompile(`(?i)(?:command|cmd|exec|script|run|eval|shell|hook)=`)
	// pattern matches a word that a shell would expand to file names.
	pattern = regexp.MustCompile(`\*|\{[^{}]*,[^{}]*\}`)
	// ofProgram matches characters that the name of a program does not contain.
	ofProgram = regexp.MustCompile("[;&|<>`]|\\$\\(")
	// inPath matches a path that may contain these characters after all, as in /opt/R&D/ship.
	inPath = regexp.MustCompile("^[^`$]*/[^`$]*[^`$;&|]$")
	// assignment matches a word that sets a shell variable.
	assignment = regexp.MustCompile(`^[A-Za-z_]\w*=`)
	// ofWindows matches a variable of the stage in Windows syntax.
	ofWindows = regexp.MustCompile(`%(VERSION|IMAGE|WORK|REQUEST)%`)
)

var (
	// builtins are commands that change only the shell itself, or that some implementations of sh lack.
	builtins = strings.Fields("cd export set unset alias unalias shift local readonly declare typeset umask ulimit hash trap read pushd popd shopt setopt let getopts " +
		"return break continue bg fg jobs source")
	// keywords are the shell words that begin, end or separate parts of compound commands.
	keywords = strings.Fields("if then else elif fi for while until do done case esac { } ! [[ ( )")
	// joining are the programs that pass their arguments on to a shell, or are shells with other options.
	joining = strings.Fields("ssh autossh mosh adb watch parallel pdsh clush pssh parallel-ssh eval script heroku fish nu xonsh csh tcsh salt fab")
	// expanding are the programs that read $(...) themselves.
	expanding = strings.Fields("make gmake sqlcmd pwsh powershell ansible")
	// comparing are the programs that accept an operator as an argument.
	comparing = strings.Fields("expr test [ grep egrep fgrep rg ag sed awk gawk mawk perl ruby tr cut jq yq printf find xargs sort paste column")
	// ofFiles are the programs that take their arguments as file names without expanding them.
	ofFiles = strings.Fields("cp mv rm ls cat chmod chown chgrp ln touch head tail wc du rmdir install sha256sum sha1sum md5sum gzip gunzip xz")
	// startsNext are the programs that start the next word as a program without a shell.
	startsNext = strings.Fields("nice nohup setsid exec")
	// quickly matches the options with which an interpreter exits without running a program.
	quickly = regexp.MustCompile(`^(?:-h|-V|-VV|-v|--version|--help)$`)
	// interpreter matches the interpreters, which run the file, module or script in their arguments.
	interpreter = regexp.MustCompile(`^(?:python[0-9.]*|node|ruby|perl|Rscript|(?:ba|da|a|k|z)?sh)$`)
	// ofNode matches options with which node needs no further word.
	ofNode = regexp.MustCompile(`^--(?:test$|(?:eval|print|run)=)`)
	// needsNext matches interpreter options that need another word.
	needsNext = regexp.MustCompile(`^-[A-Za-z]*[ceEmWX]$`)
)

// options describes the options of a program that starts another program.
type options struct {
	alone *regexp.Regexp // options that need no further word, and affect neither whether the other program starts nor where it is looked up
	next  *regexp.Regexp // options whose value is the next word
}

// optionsOf returns the options of a program from the letters of those without a value, the letters of those with a
// value, and the long names of the latter.
func optionsOf(plain, valued, long string) options {
	return options{
		regexp.MustCompile(`^(?:--?|-[` + plain + `]+|-[` + plain + `]*[` + valued + `].+|--(?:` + long + `)=.*)$`),
		regexp.MustCompile(`^(?:-[` + plain + `]*[` + valued + `]|--(?:` + long + `))$`),
	}
}

// starting maps the programs that start another program to their options.
var starting = map[string]options{
	"env":     optionsOf("v", "uC", "unset|chdir"),
	"exec":    optionsOf("l", "a", "argv0"),
	"nice":    optionsOf("0-9", "n", "adjustment"),
	"sudo":    optionsOf("ABbEHkNnPS", "CDghpRrTtUu", "user|group|host|prompt|chdir|chroot|close-from|command-timeout|role|type|other-user"),
	"stdbuf":  optionsOf("_", "ioe", "input|output|error"),
	"time":    optionsOf("apv", "fo", "format|output"),
	"timeout": optionsOf("fpv", "ks", "kill-after|signal"),
}

// programOf returns the index of the program that a command finally runs, after programs such as env and sudo and their
// options, or -1.
func programOf(words []string) int {
	_, at, _ := started(words)
	return at
}

// started returns the programs such as env and sudo at the beginning of a command, and the index of the program that
// they finally start, or -1. sure reports whether they always start it, and look it up in the PATH of the image.
func started(words []string) (before []string, at int, sure bool) {
	sure = true
	var own options
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch known := own.next != nil; {
		case !beforeShell.MatchString(word):
			return before, i, sure
		case byName.MatchString(word):
			before, own = append(before, word), starting[word]
		case known && own.next.MatchString(word):
			i++
			sure = sure && i < len(words) && words[i] != "PATH"
		case strings.HasPrefix(word, "-"):
			sure = sure && known && own.alone.MatchString(word) && word != "-" && !strings.HasSuffix(word, "PATH")
		case strings.HasPrefix(word, "PATH="):
			sure = false
		}
	}
	return before, -1, false
}

// notProgram returns why word i of a command cannot be a program, or "" if it can be or need not be one.
func notProgram(words []string, i int) string {
	word := words[i]
	switch {
	case assignment.MatchString(word) && (i == 0 || has(words[i-1:i], startsNext...)):
		return "must be a program, not the assignment " + word + ", which only a shell reads; write [env, '" + word + "', ...]"
	case i != programOf(words):
		return ""
	case slices.Contains(builtins, word):
		return "must be a program, not " + word + ", which affects only the shell that runs it" + inShell
	case slices.Contains(keywords, word):
		return "must be a program, not " + word + ", which only a shell reads" + inShell
	case ofProgram.MatchString(word) && !strings.Contains(word, " ") && !inPath.MatchString(word):
		return "must be a program, not " + word + ", which only a shell reads" + inShell
	}
	return ""
}

// unfinished returns what is wrong with the last word of a command that starts an interpreter without telling it what
// to run: the interpreter would read its standard input, which is empty.
func unfinished(words []string) string {
	at := programOf(words)
	if at < 0 || !interpreter.MatchString(path.Base(words[at])) {
		return ""
	}
	name, last := path.Base(words[at]), words[len(words)-1]
	options := words[at+1:]
	isOption := func(w string) bool { return strings.HasPrefix(w, "-") && len(w) > 1 }
	switch {
	case isShell(name) && slices.Contains(options, "-s") || slices.ContainsFunc(options, quickly.MatchString),
		name == "node" && slices.ContainsFunc(options, ofNode.MatchString):
	case len(options) > 0 && needsNext.MatchString(last) && !slices.ContainsFunc(options, func(w string) bool { return !isOption(w) }):
		return "must be followed by what " + name + " " + last + " is to run"
	case !slices.ContainsFunc(options, func(w string) bool {
		return !isOption(w) || len(w) > 2 && !strings.HasPrefix(w, "--") && needsNext.MatchString(w[:2])
	}):
		return "must be followed by the program that " + name + " is to run"
	}
	return ""
}

// ofShellAlone returns what is wrong with word i of a command if it is an operator, substitution or pattern that only a
// shell interprets, or "".
func ofShellAlone(words []string, i int) string {
	word, before := words[i], words[:i]
	switch {
	case has(before, joining...) || i == 0:
		return ""
	case certain.MatchString(word), isOperator(words, i), redirection.MatchString(word) && !has(before, comparing...):
		return "must not be " + word + ", because no shell interprets a list" + inShell
	case substitution.MatchString(word) && !has(before, expanding...) && !has(before, comparing...) && !givesCommand.MatchString(word):
		return "must not be " + word + ", because no shell runs a command in a list" + inShell
	case ofWindows.MatchString(word):
		return "must not contain " + ofWindows.FindString(word) + ", which only Windows replaces; write the command as [sh, -c, '... $" + strings.Trim(ofWindows.FindString(word), "%") + "']"
	case isPattern(words, i):
		return "must be the name of a file, not the pattern " + word + ", which only a shell expands" + inShell
	}
	return ""
}

// isOperator reports whether word i is an operator, rather than the argument of a program or the value of an option.
func isOperator(words []string, i int) bool {
	word, last := words[i], i == len(words)-1
	if !operator.MatchString(word) || has(words[:i], comparing...) {
		return false
	}
	isOption := strings.HasPrefix(words[i-1], "-") && !strings.Contains(words[i-1], "=")
	if strings.ContainsAny(word, "<>") {
		return !isOption || !last && isFile.MatchString(words[i+1])
	}
	return !isOption || !takesSign.MatchString(words[i-1])
}

// isPattern reports whether word i is a pattern that is passed to a program of ofFiles, which does not expand it.
func isPattern(words []string, i int) bool {
	at := programOf(words)
	return at >= 0 && i > at && slices.Contains(ofFiles, path.Base(words[at])) && pattern.MatchString(words[i]) &&
		!strings.HasPrefix(words[i], "-") && !strings.HasPrefix(words[i-1], "--") && words[i-1] != "-I"
}
