package pins

import (
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// aPython matches a Python version and what follows it.
const aPython = `v?([0-9]+\.[0-9]+)(?:\.[0-9]+)?\b([^\n]{0,20})`

// namesPython match the ways in which a page names the Python version that it was written for. The second group is the
// text after the version. They do not match minimum versions.
var namesPython = []*pattern.Pattern{
	pattern.MustCompile(`(?im)\b(?:(?:conda|mamba) +(?:create|install)\b[^\n]*\bpython=+|uv +venv\b[^\n]*(?:--python|-p)[ =]+|uv +python +pin +)([0-9]+\.[0-9]+)\b()`),
	pattern.MustCompile(`(?i)\bpython[ -]*v?([0-9]+\.[0-9]+)(?:\.[0-9]+)?[ ]+(?:is|was)[ ]+(?:recommended|required|used|needed)()`),
	pattern.MustCompile(`(?i)\b(?:(?:tested|developed|written)[ ]+(?:on|with|in|using|for)|requires?|needs?|uses?|using)[ ]+python[ ]*` + aPython),
	pattern.MustCompile(`(?im)^[ \t]*(?:[-*+]|[0-9]+\.)[ \t]+[*\x60]*python(?:[ ]+version)?[*\x60]*[ \t]*[:=(]*[ \t]*` + aPython), // in a list
	pattern.MustCompile(`(?m)^FROM[ \t]+(?:--\S+[ \t]+)?(?:docker\.io/)?(?:library/)?python:([0-9]+\.[0-9]+)()`),
	pattern.MustCompile(`(?i)\bshields\.io/badge/python-v?([0-9]+\.[0-9]+)(?:\.[0-9]+)?-()`),
	pattern.MustCompile(`(?i)\b(?:for|with|on|in|under)[ ]+\x60python[ ]*` + aPython),
	pattern.MustCompile(`(?i)\bcreate[ ]+(?:a[ ]+)?(?:new[ ]+)?python[ ]*` + aPython),
	pattern.MustCompile(`(?i)(?:\b|_)(?:prerequisites?|requirements?)[:*_ ]+python[ ]*` + aPython),
	pattern.MustCompile(`(?im)^\|[ *]*python(?:[ ]+version)?[ *]*\|[ *\x60]*([0-9]+\.[0-9]+)(?:\.[0-9]+)?[ *\x60]*\|()`), // in a table
}

// laterToo matches text after a version that makes it a minimum version.
var laterToo = pattern.MustCompile(`^[ ]*(?:\+|and (?:above|later|newer|up)|or (?:above|later|newer|higher)|to\b|-|–)`)

// leastPython matches a minimum Python version in a page.
var leastPython = pattern.MustCompile(`(?i)\bpython(?:[ ]+version)?[ ]*(?:(?:>=|≥)[ ]*3\.([0-9]+)|3\.([0-9]+)(?:\.[0-9]+)?[ ]*(?:\+|and (?:above|later|newer|up)|or (?:above|later|newer|higher)))`)

var (
	// ofWorkflows matches the paths of GitHub workflows.
	ofWorkflows = pattern.MustCompile(`^\.github/workflows/[^/]+\.ya?ml$`)
	// setsUp matches one or several Python versions that a workflow sets up.
	setsUp       = pattern.MustCompile(`(?m)^[ \t-]*python-version:[ \t]*(["']?[0-9][^\n#]*|\[[^\]]*\]|\n(?:[ \t]*-[^\n:]*\n)+)`)
	shortVersion = pattern.MustCompile(`\b3\.[0-9]+\b`)
)

// PythonsOfWorkflow returns the Python versions that a GitHub workflow sets up, or none for any other file.
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

// PythonsOf returns the Python versions for which a page says it was written.
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

// LaterPythonOf returns the minimum Python version in a page if it is later than the default, or "".
func LaterPythonOf(page string) string {
	for _, m := range leastPython.FindAllStringSubmatch(page, maxInstalled) {
		version := "3." + m[1] + m[2]
		if Base(version) != "" && !Suits(">="+version, Default) {
			return version
		}
	}
	return ""
}
