package commandline

import "strings"

// Place is the directory in which a program runs. The project's own directory is read-only in the image.
type Place struct {
	Work   bool   // in $WORK
	Copied bool   // in a copy of the project in $WORK, because it reads files there and writes next to them
	Dir    string // directory in the copy
	Source bool   // whether the program imports from src, which must then be that of the copy
	Builds bool   // whether the modules in setup.py must be compiled in the copy
}

// Copy is the copy of the project.
const Copy = Work + "project/"

// Directory returns the directory of a place, with a trailing slash.
func (a Place) Directory() string {
	switch {
	case a.Copied && a.Dir != ".":
		return Copy + a.Dir + "/"
	case a.Copied:
		return Copy
	}
	return Work
}

// Enter returns the shell commands that change to the place. Only the training creates the copy.
func (a Place) Enter(training bool) string {
	switch to := strings.TrimSuffix(a.Directory(), "/"); {
	case a.Copied && training:
		return `cp -r . /tmp/project && cp -r /tmp/project "$WORK" && ` + a.build() + `cd "` + to + `" && ` + a.imports() // $WORK may be in the repository
	case a.Copied, a.Work:
		return `cd "` + to + `" && ` + a.imports()
	}
	return ""
}

// build returns a shell command that compiles the modules of a copy, or "".
func (a Place) build() string {
	if a.Builds {
		return `(cd "$WORK/project" && python setup.py build_ext --inplace) && `
	}
	return ""
}

// imports returns a shell command that makes a program in a copy import the modules of the copy, whose code finds its
// files relative to itself.
func (a Place) imports() string {
	switch {
	case !a.Copied || !a.Source && !a.Builds:
		return ""
	case a.Dir != ".":
		return `export PYTHONPATH="$WORK/project:$WORK/project/src" && `
	}
	return `export PYTHONPATH="$PWD:$PWD/src" && `
}

// Project returns the directory of the project as seen from a place, with a trailing slash.
func (a Place) Project() string {
	switch {
	case a.Copied && a.Dir != ".":
		return Copy
	case a.Work:
		return Project
	}
	return "$PWD/"
}
