package pins

import (
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// aPython is the version of one of Python, with what follows it.
const aPython = `v?([0-9]+\.[0-9]+)(?:\.[0-9]+)?\b([^\n]{0,20})`

// namesPython are the ways in which a page names the version of Python that it was written for, with what follows it. A
// least one leaves it open.
var namesPython = []*pattern.Pattern{
	pattern.MustCompile(`(?im)\b(?:(?:conda|mamba) +(?:create|install)\b[^\n]*\bpython=+|uv +venv\b[^\n]*(?:--python|-p)[ =]+|uv +python +pin +)([0-9]+\.[0-9]+)\b()`),
	pattern.MustCompile(`(?i)\bpython[ -]*v?([0-9]+\.[0-9]+)(?:\.[0-9]+)?[ ]+(?:is|was)[ ]+(?:recommended|required|used|needed)()`),
	pattern.MustCompile(`(?i)\b(?:(?:tested|developed|written)[ ]+(?:on|with|in|using|for)|requires?|needs?|uses?|using)[ ]+python[ ]*` + aPython),
	pattern.MustCompile(`(?im)^[ \t]*(?:[-*+]|[0-9]+\.)[ \t]+[*\x60]*python(?:[ ]+version)?[*\x60]*[ \t]*[:=(]*[ \t]*` + aPython), // of a list
	pattern.MustCompile(`(?m)^FROM[ \t]+(?:--\S+[ \t]+)?(?:docker\.io/)?(?:library/)?python:([0-9]+\.[0-9]+)()`),
	pattern.MustCompile(`(?i)\bshields\.io/badge/python-v?([0-9]+\.[0-9]+)(?:\.[0-9]+)?-()`),
	pattern.MustCompile(`(?i)\b(?:for|with|on|in|under)[ ]+\x60python[ ]*` + aPython),
	pattern.MustCompile(`(?i)\bcreate[ ]+(?:a[ ]+)?(?:new[ ]+)?python[ ]*` + aPython),
	pattern.MustCompile(`(?i)(?:\b|_)(?:prerequisites?|requirements?)[:*_ ]+python[ ]*` + aPython),
	pattern.MustCompile(`(?im)^\|[ *]*python(?:[ ]+version)?[ *]*\|[ *\x60]*([0-9]+\.[0-9]+)(?:\.[0-9]+)?[ *\x60]*\|()`), // of a table
}

// laterToo is how a page says that a version of Python is only the least.
var laterToo = pattern.MustCompile(`^[ ]*(?:\+|and (?:above|later|newer|up)|or (?:above|later|newer|higher)|to\b|-|–)`)

// leastPython is how a page names the least version of Python.
var leastPython = pattern.MustCompile(`(?i)\bpython(?:[ ]+version)?[ ]*(?:(?:>=|≥)[ ]*3\.([0-9]+)|3\.([0-9]+)(?:\.[0-9]+)?[ ]*(?:\+|and (?:above|later|newer|up)|or (?:above|later|newer|higher)))`)

var (
	// ofWorkflows are the files of the workflows of GitHub.
	ofWorkflows = pattern.MustCompile(`^\.github/workflows/[^/]+\.ya?ml$`)
	// setsUp is how a workflow names the version of Python that it sets up, or several.
	setsUp       = pattern.MustCompile(`(?m)^[ \t-]*python-version:[ \t]*(["']?[0-9][^\n#]*|\[[^\]]*\]|\n(?:[ \t]*-[^\n:]*\n)+)`)
	shortVersion = pattern.MustCompile(`\b3\.[0-9]+\b`)
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
	for _, re := range namesPython {
		for _, m := range re.FindAllStringSubmatch(page, maxInstalled) {
			if !laterToo.MatchString(m[2]) && Base(m[1]) != "" {
				out = append(out, m[1])
			}
		}
	}
	return out
}

// LaterPythonOf returns the least version of Python that a page names if it is later than the default, "" for none.
func LaterPythonOf(page string) string {
	for _, m := range leastPython.FindAllStringSubmatch(page, maxInstalled) {
		version := "3." + m[1] + m[2]
		if Base(version) != "" && !Suits(">="+version, Default) {
			return version
		}
	}
	return ""
}
