package pins

import (
	"regexp"
	"strings"
)

// builds are packages that a compiler alone builds where they have no files: other sources need more than that.
var builds = []string{"box2d-py", "evdev", "hnswlib", "pybullet"}

// Compiled returns a package, of those with versions, that is compiled when it is installed with a version of Python,
// which the slim images cannot do; "" if none is.
func Compiled(python string, versions map[string]string) string {
	for _, name := range builds {
		if v := versions[name]; v != "" && (len(windows(name)) == 0 || !hasFiles(Package{name, "==" + v}, python)) {
			return name + " " + v
		}
	}
	if v := versions["pynput"]; v != "" && Allowed(">=1.7", v) {
		return "evdev of pynput"
	}
	return ""
}

// Compiling returns the image of a version of Python that has a compiler.
func Compiling(python string) string { return strings.Replace(Base(python), "slim-", "", 1) }

// Builders returns the versions of setuptools and wheel that can build what of the requirements has no files: Gym before
// 0.22 describes its extras in a way that later ones refuse. It returns none if the current ones can.
func Builders(requirements []string) []string {
	for _, r := range requirements {
		if name, version, ok := strings.Cut(r, "=="); ok && (name == "gym" || strings.HasPrefix(name, "gym[")) && Allowed("<0.22", version) {
			return []string{"setuptools==65.5.1", "wheel==0.38.4"}
		}
	}
	return nil
}

// namesPython is how a page names the version of Python that it was written for. A least one leaves it open.
var namesPython = regexp.MustCompile(`(?im)\b(?:conda create\b[^\n]*\bpython=+|uv +venv\b[^\n]*(?:--python|-p)[ =]+|uv +python +pin +)([0-9]+\.[0-9]+)\b|\bpython[ -]*v?([0-9]+\.[0-9]+)(?:\.[0-9]+)?[ ]+(?:is|was)[ ]+(?:recommended|required|used|needed)|\b(?:tested|developed|written)[ ]+(?:on|with|in|using|for)[ ]+python[ ]*v?([0-9]+\.[0-9]+)(?:\.[0-9]+)?\b([^\n]{0,20})`)

// laterToo is how a page says that a version of Python is only the least.
var laterToo = regexp.MustCompile(`^[ ]*(?:\+|and (?:above|later|newer|up)|or (?:above|later|newer|higher)|to\b|-|–)`)

var (
	// ofWorkflows are the files of the workflows of GitHub.
	ofWorkflows = regexp.MustCompile(`^\.github/workflows/[^/]+\.ya?ml$`)
	// setsUp is how a workflow names the version of Python that it sets up, or several.
	setsUp       = regexp.MustCompile(`(?m)^[ \t-]*python-version:[ \t]*(["']?[0-9][^\n#]*|\[[^\]]*\]|\n(?:[ \t]*-[^\n:]*\n)+)`)
	shortVersion = regexp.MustCompile(`\b3\.[0-9]+\b`)
)

// PythonsOfWorkflow returns the versions of Python that a file sets up if it is a workflow of GitHub.
func PythonsOfWorkflow(file, text string) []string {
	var out []string
	if !ofWorkflows.MatchString(file) {
		return nil
	}
	for _, m := range setsUp.FindAllStringSubmatch(text, maxInstalled) {
		for _, v := range shortVersion.FindAllString(m[1], maxInstalled) {
			if Base(v) != "" {
				out = append(out, v)
			}
		}
	}
	return out
}

// PythonsOf returns the versions of Python that a page names as those that it was written for.
func PythonsOf(page string) []string {
	var out []string
	for _, m := range namesPython.FindAllStringSubmatch(page, maxInstalled) {
		if v := m[1] + m[2] + m[3]; !laterToo.MatchString(m[4]) && Base(v) != "" {
			out = append(out, v)
		}
	}
	return out
}
