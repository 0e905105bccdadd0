package words

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var (
	// byName matches a program that is looked for in PATH.
	byName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._+-]*$`)
	// present are programs that every image of a pipeline has, like those of shells and of files.
	present = slices.Concat(strings.Fields("sh python python3 echo printf test true false exit exec kill wait sleep mkdir"), builtins, ofFiles)
	// choosing are commands after which a script may do without a program, or get it elsewhere.
	choosing = strings.Fields("command type which hash alias export source . eval trap install pip pip3 apt apt-get apk")
)

// packages are those of Debian with programs that commands of pipelines often run.
var packages = map[string]string{
	"ssh": "openssh-client", "scp": "openssh-client", "sftp": "openssh-client", "rsync": "openssh-client rsync", "curl": "curl", "wget": "wget", "git": "git", "jq": "jq",
	"make": "make", "unzip": "unzip", "zip": "zip", "envsubst": "gettext-base", "gpg": "gnupg", "aws": "awscli", "s3cmd": "s3cmd", "rclone": "rclone",
	"ansible": "ansible", "ansible-playbook": "ansible", "psql": "postgresql-client", "redis-cli": "redis-tools", "skopeo": "skopeo", "sshpass": "sshpass",
}

// Packages returns the packages of Debian that contain programs, in order.
func Packages(programs []string) []string {
	var out []string
	for _, p := range programs {
		out = append(out, strings.Fields(packages[p])...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Needed returns the programs that commands look for in PATH, in order, and those of them that they need whenever they run.
// A script that may do without a program, or get it itself, needs none for certain.
func Needed(commands ...[]string) (all, certain []string) {
	for _, words := range commands {
		at := programOf(words)
		if at < 0 {
			continue
		}
		for _, w := range words[:at+1] {
			if byName.MatchString(w) {
				all, certain = append(all, w), append(certain, w)
			}
		}
		if from, isScript := argument(words, at); isShell(words[at]) && isScript && from > 0 {
			programs, sure := ofScript(path.Base(words[at]), words[from])
			all = append(all, programs...)
			if sure {
				certain = append(certain, programs...)
			}
		}
	}
	return unlike(all), unlike(certain)
}

// unlike returns programs once each, in order, without those that are always there.
func unlike(programs []string) []string {
	programs = slices.DeleteFunc(programs, func(w string) bool { return slices.Contains(present, w) })
	slices.Sort(programs)
	return slices.Compact(programs)
}

// ofScript returns the programs that a script names, and whether it runs all of them, one after another.
func ofScript(shell, script string) (programs []string, sure bool) {
	file, err := syntax.NewParser(syntax.Variant(languages[shell][0])).Parse(strings.NewReader(script[:min(len(script), maxScript)]), "")
	if err != nil {
		return nil, false
	}
	sure = true
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.IfClause, *syntax.CaseClause, *syntax.WhileClause, *syntax.FuncDecl:
			sure = false
		case *syntax.BinaryCmd:
			sure = sure && n.Op != syntax.OrStmt
		case *syntax.Assign:
			sure = sure && (n.Name == nil || n.Name.Value != "PATH")
		case *syntax.CallExpr:
			if len(n.Args) == 0 {
				break
			}
			name := n.Args[0].Lit()
			sure = sure && !slices.Contains(choosing, name)
			if byName.MatchString(name) {
				programs = append(programs, name)
			}
		}
		return true
	})
	return programs, sure
}
