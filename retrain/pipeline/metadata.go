package pipeline

import (
	"path"
	"regexp"
	"strings"
)

var (
	requiresDist   = regexp.MustCompile(`(?m)^Requires-Dist: *([^\n;]+?) *(?:; *([^\n]*))?$`)
	requiresPython = regexp.MustCompile(`(?m)^Requires-Python: *([^\n]+)$`)
	extraSection   = regexp.MustCompile(`^\[[^:\]]*:?(.*)\]$`)
)

// isMetadata reports whether a file is what the packaging wrote of a project into its source distribution. It counts
// where the files of the project declare nothing, such as a setup.py that reads a file that is left out.
func isMetadata(file string) bool {
	switch path.Base(file) {
	case "requires.txt":
		return strings.HasSuffix(path.Dir(file), ".egg-info")
	case "PKG-INFO", "METADATA":
		return true
	}
	return false
}

// isPage reports whether a file may install packages with pip. It counts where no file declares any.
func isPage(file string) bool {
	return file == "README.md" || path.Ext(file) == ".ipynb" || strings.HasPrefix(path.Base(file), "Dockerfile")
}

// metadata takes what the packaging wrote: the packages without those of extras.
func (p *dependencies) metadata(file, text string) {
	if path.Base(file) != "requires.txt" {
		text, _, _ = strings.Cut(text, "\n\n") // the description follows
		for _, m := range requiresDist.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(m[2], "extra") {
				p.add(file, m[1], m[2])
			}
		}
		for _, m := range requiresPython.FindAllStringSubmatch(text, -1) {
			p.wantPython(file, m[1])
		}
		return
	}
	marker := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := extraSection.FindStringSubmatch(line); m != nil {
			if marker = m[1]; marker == "" || !strings.HasPrefix(line, "[:") {
				return // packages of extras are the last
			}
			continue
		}
		p.add(file, line, marker)
	}
}

// The ranks of the files that declare packages.
const (
	ofRoot = iota
	ofMetadata
	ofPart
	ofPage
)

// rank returns how much a declaration counts: only those of the lowest rank are kept.
func (d Declared) rank() int {
	switch {
	case isMetadata(d.File):
		return ofMetadata
	case isPage(d.File):
		return ofPage
	case strings.Contains(d.File, "/"):
		return ofPart
	}
	return ofRoot
}
