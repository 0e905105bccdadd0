package words

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var (
	// byName matches the name of a program, which is looked up in PATH.
	byName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._+-]*$`)
	// ofShells are the builtins and keywords of Bash and dash, which an image does not contain as files.
	ofShells = slices.Concat(builtins, strings.Fields("bind builtin caller chdir command compgen complete compopt coproc dirs disown echo enable eval exec exit false "+
		"fc function help history in kill logout mapfile printf pwd readarray select suspend test time times true type "+
		"wait"))
	// present are the programs that every image of a pipeline contains, including those of ofShells and ofFiles.
	present = slices.Concat(strings.Fields("sh python python3 sleep mkdir"), ofShells, keywords, ofFiles)
	// deciding are the commands after which it is uncertain what a script runs: it may have ended, or it may skip commands
	// whose program is missing.
	deciding = strings.Fields("command builtin enable type which hash alias source . eval trap exit exec return logout")
	// installing are the commands after which a script may have installed a program.
	installing = strings.Fields("install pip pip3 apt apt-get apk yum dnf conda uv npm")
)

// packages are the Debian packages of programs that the commands of pipelines often run, separated by spaces.
var packages = map[string]string{
	"ssh": "openssh-client", "scp": "openssh-client", "sftp": "openssh-client", "rsync": "openssh-client rsync", "curl": "curl", "wget": "wget", "git": "git", "jq": "jq",
	"make": "make", "unzip": "unzip", "zip": "zip", "envsubst": "gettext-base", "gpg": "gnupg", "aws": "awscli", "s3cmd": "s3cmd", "rclone": "rclone",
	"ansible": "ansible", "ansible-playbook": "ansible", "psql": "postgresql-client", "redis-cli": "redis-tools", "skopeo": "skopeo", "sshpass": "sshpass",
}

// Packages returns the Debian packages that contain the given programs, sorted and without duplicates. Programs whose
// package is unknown are ignored.
func Packages(programs []string) []string {
	var out []string
	for _, p := range programs {
		out = append(out, strings.Fields(packages[p])...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Needed returns the programs that commands look up in PATH, sorted and without duplicates: all of them, and those that
// a command runs every time. The build of an image fails if one of the latter is missing, so certain leaves out a
// program that a command can do without or installs itself.
func Needed(commands ...[]string) (all, certain []string) {
	for _, words := range commands {
		named, at, sure := started(words)
		all, certain = append(all, named...), append(certain, named...)
		if at < 0 {
			continue
		}
		if byName.MatchString(words[at]) {
			all = append(all, words[at])
			if sure {
				certain = append(certain, words[at])
			}
		}
		if from, isScript := argument(words, at); isShell(words[at]) && isScript && from > 0 {
			programs, needed := ofScript(path.Base(words[at]), words[from])
			all = append(all, programs...)
			if sure {
				certain = append(certain, needed...)
			}
		}
	}
	return unlike(all), unlike(certain)
}

// unlike removes the programs that are always present, and duplicates, and sorts the rest.
func unlike(programs []string) []string {
	programs = slices.DeleteFunc(programs, func(w string) bool { return slices.Contains(present, w) })
	slices.Sort(programs)
	return slices.Compact(programs)
}

// ofScript returns the programs that a script names, and those that it runs every time.
func ofScript(shell, script string) (all, certain []string) {
	statements, c := courseOf(shell, script)
	for _, s := range statements {
		syntax.Walk(s, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.CallExpr); ok && byName.MatchString(called(call)) {
				all = append(all, called(call))
			}
			return true
		})
	}
	if shell != "ksh" && shell != "zsh" { // ksh and zsh have other builtins
		c.statements(statements, true)
	}
	return all, c.programs
}

// courseOf returns the statements of a script, and a course that has followed none of them. A script that is too long or
// cannot be parsed has no statements.
func courseOf(shell, script string) ([]*syntax.Stmt, *course) {
	c := &course{functions: map[string]bool{}}
	if len(script) > maxScript {
		return nil, c
	}
	file, err := syntax.NewParser(syntax.Variant(languages[shell][0])).Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, c
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if f, ok := n.(*syntax.FuncDecl); ok {
			c.functions[f.Name.Value] = true
		}
		return true
	})
	return file.Stmts, c
}

// called returns the program that a call runs, or "" if there is none or it depends on a variable.
func called(call *syntax.CallExpr) string {
	if len(call.Args) == 0 {
		return ""
	}
	name, _ := literal(call.Args[0])
	return name
}

// course collects the programs that a script runs every time. functions are the functions that the script defines.
type course struct {
	functions map[string]bool
	programs  []string
}

// statements follows statements until one after which it is uncertain what runs. decides reports whether the exit
// status of the last one decides whether the script fails.
func (c *course) statements(all []*syntax.Stmt, decides bool) {
	for i, s := range all {
		if c.chooses(s) {
			return
		}
		c.statement(s, decides && i == len(all)-1)
	}
}

// statement follows what a statement runs every time. It ignores conditions, which may test whether a program exists.
func (c *course) statement(s *syntax.Stmt, decides bool) {
	if s.Negated {
		return
	}
	decides = decides && !s.Background
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		if name := called(cmd); byName.MatchString(name) {
			c.programs = append(c.programs, name)
		}
		for _, a := range cmd.Assigns {
			c.substitutions(a.Value)
		}
		c.substitutions(cmd.Args...)
	case *syntax.BinaryCmd:
		switch {
		case cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll:
			c.statement(cmd.X, false)
			c.statement(cmd.Y, decides)
		case cmd.Op == syntax.AndStmt && decides:
			c.statement(cmd.X, true)
		}
	case *syntax.Block:
		c.statements(cmd.Stmts, decides)
	case *syntax.Subshell:
		c.statements(cmd.Stmts, decides)
	case *syntax.TimeClause:
		if cmd.Stmt != nil {
			c.statement(cmd.Stmt, decides)
		}
	}
}

// substitutions follows the command substitutions in words.
func (c *course) substitutions(words ...*syntax.Word) {
	for _, w := range words {
		if w != nil {
			c.parts(w.Parts)
		}
	}
}

func (c *course) parts(parts []syntax.WordPart) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.CmdSubst:
			c.statements(part.Stmts, false)
		case *syntax.DblQuoted:
			c.parts(part.Parts)
		}
	}
}

// chooses reports whether a statement may end the script, or change which program a name refers to.
func (c *course) chooses(s *syntax.Stmt) bool {
	return contains(s, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		return c.decides(n) || ok && (slices.Contains(installing, called(call)) || slices.ContainsFunc(call.Args, installs))
	})
}

// decides reports whether a part of a statement may end the script, or make names refer to other programs. It ignores
// installations.
func (c *course) decides(n syntax.Node) bool {
	call, ok := n.(*syntax.CallExpr)
	return c.redefines(n) || ok && slices.Contains(deciding, called(call))
}

// redefines reports whether a part of a statement sets PATH or calls a function of the script.
func (c *course) redefines(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Assign:
		return n.Name != nil && n.Name.Value == "PATH"
	case *syntax.CallExpr:
		return c.functions[called(n)]
	}
	return false
}

// contains reports whether a statement contains a node, other than in a function, whose body runs only when it is called.
func contains(s *syntax.Stmt, is func(syntax.Node) bool) (found bool) {
	syntax.Walk(s, func(n syntax.Node) bool {
		if _, ok := n.(*syntax.FuncDecl); ok {
			return false
		}
		found = found || is(n)
		return !found
	})
	return found
}

// installs reports whether a word suggests that its command installs a program or sets PATH, as in export
// PATH=bin:$PATH.
func installs(word *syntax.Word) bool {
	first, _ := word.Parts[0].(*syntax.Lit)
	return word.Lit() == "install" || first != nil && (strings.HasPrefix(first.Value, "PATH=") || word.Lit() == "PATH")
}
