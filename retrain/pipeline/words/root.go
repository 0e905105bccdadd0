package words

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// ofRoot maps programs that fail in every run of a stage to the reason and the alternative. A stage runs in a
// container, as a user other than root and without a container engine.
var ofRoot = map[string]string{
	"sudo": asUser, "doas": asUser,
	"apt-get": inImage, "apt": inImage, "yum": inImage, "dnf": inImage, "apk": inImage,
	"docker": elsewhere, "podman": elsewhere, "docker-compose": elsewhere,
}

const (
	asUser    = "because the stages run in containers as a user who cannot become root; omit it, or use it on another machine, as in [ssh, HOST, sudo ...]"
	inImage   = "because the stages run as a user without root; install packages in the image, between the markers of pipeline/Dockerfile"
	elsewhere = "because the stages run in containers without a container engine; use another machine, as in [ssh, HOST, docker ...] or with DOCKER_HOST, or skopeo for images"
)

// toEngine are the options and variables that select a container engine on another machine.
var toEngine = strings.Fields("-H --host --context -c --url --connection --remote DOCKER_HOST DOCKER_CONTEXT CONTAINER_HOST")

// asRoot returns what is wrong with word i of a command if it is a program that needs root or a container engine, or a
// script that always runs such a program. known are the variables of the stage.
func asRoot(words []string, i int, known []string) string {
	before, at, _ := started(words)
	if from, isScript := argument(words, at); at >= 0 && isShell(words[at]) && isScript && i == from {
		return scriptAsRoot(path.Base(words[at]), words[i], known)
	}
	if i == at || (i < at || at < 0) && slices.Contains(before, words[i]) {
		return programAsRoot(words[i:], slices.Concat(words[:i], known))
	}
	return ""
}

// programAsRoot is asRoot for a program with its arguments.
func programAsRoot(words, known []string) string {
	name := path.Base(words[0])
	why := ofRoot[name]
	help := slices.ContainsFunc(words[1:], quickly.MatchString) // --help and --version need no engine
	others := slices.ContainsFunc(slices.Concat(words, known), func(w string) bool {
		option, _, _ := strings.Cut(w, "=")
		return slices.Contains(toEngine, option)
	})
	if why == "" || why == elsewhere && (others || help) || why == inImage && !slices.ContainsFunc(words[1:], changes) {
		return ""
	}
	return "must not run " + name + ", " + why
}

// changes reports whether an argument makes a package manager change the installed packages or its index.
func changes(word string) bool {
	return slices.Contains(strings.Fields("install update upgrade dist-upgrade full-upgrade add remove purge makecache reinstall"), word)
}

// scriptAsRoot is asRoot for a script. It ends at a statement after which it is uncertain what the script runs.
func scriptAsRoot(shell, script string, known []string) (fault string) {
	if strings.Contains(script, "DOCKER_") || strings.Contains(script, "CONTAINER_HOST") {
		return ""
	}
	statements, course := courseOf(shell, script)
	for _, s := range statements {
		if contains(s, course.redefines) {
			return ""
		}
		always(s, func(call *syntax.CallExpr) {
			var words []string
			for _, arg := range call.Args {
				text, _ := literal(arg)
				words = append(words, text)
			}
			for i := 0; i < len(words) && fault == ""; i++ {
				if words[i] != "" {
					fault = asRoot(words, i, known)
				}
			}
		})
		if fault != "" || contains(s, course.decides) {
			return fault
		}
	}
	return ""
}

// always calls f for the commands that a statement always runs, unless an earlier one fails. It ignores commands that
// depend on a condition, and commands that may fail without consequence.
func always(s *syntax.Stmt, f func(*syntax.CallExpr)) {
	if s.Negated {
		return
	}
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(cmd.Args) > 0 {
			f(cmd)
		}
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.OrStmt {
			return
		}
		always(cmd.X, f)
		if first, ok := cmd.X.Cmd.(*syntax.CallExpr); !ok || !asks(first) {
			always(cmd.Y, f)
		}
	case *syntax.Block:
		for _, inner := range cmd.Stmts {
			always(inner, f)
		}
	case *syntax.Subshell:
		for _, inner := range cmd.Stmts {
			always(inner, f)
		}
	}
}

// asks reports whether a command only tests whether something exists.
func asks(call *syntax.CallExpr) bool {
	return slices.Contains(strings.Fields("[ test command type which hash"), called(call))
}
