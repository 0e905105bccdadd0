package pins

import "regexp"

// namesPython is how a page names the version of Python that it was written for. A least one leaves it open.
var namesPython = regexp.MustCompile(`(?im)\b(?:conda create\b[^\n]*\bpython=+|uv +venv\b[^\n]*(?:--python|-p)[ =]+|uv +python +pin +)([0-9]+\.[0-9]+)\b|\bpython[ -]*v?([0-9]+\.[0-9]+)(?:\.[0-9]+)?[ ]+(?:is|was)[ ]+(?:recommended|required|used|needed)|\b(?:tested|developed|written)[ ]+(?:on|with|in|using|for)[ ]+python[ ]*v?([0-9]+\.[0-9]+)(?:\.[0-9]+)?\b([^\n]{0,20})|^\|[ *]*python(?:[ ]+version)?[ *]*\|[ *` + "`" + `]*([0-9]+\.[0-9]+)(?:\.[0-9]+)?[ *` + "`" + `]*\|`)

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
		if v := m[1] + m[2] + m[3] + m[5]; !laterToo.MatchString(m[4]) && Base(v) != "" {
			out = append(out, v)
		}
	}
	return out
}
