package propose

import (
	"path"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
)

var (
	requiresDist   = pattern.MustCompile(`(?m)^Requires-Dist: *([^\n;]+?) *(?:; *([^\n]*))?$`)
	requiresPython = pattern.MustCompile(`(?m)^Requires-Python: *([^\n]+)$`)
	extraSection   = pattern.MustCompile(`^\[[^:\]]*:?(.*)\]$`)
)

// metadata records the packages in packaging metadata, except those of extras.
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
				return // sections of extras are at the end
			}
			continue
		}
		p.add(file, line, marker)
	}
}

// The ranks of files that declare packages.
const (
	ofRoot = iota
	ofMetadata
	ofPart
	ofPage
)

// rank returns the rank of a declaration. Only the declarations of the lowest rank are used.
func (d Declared) rank() int {
	switch {
	case pins.IsMetadata(d.File):
		return ofMetadata
	case pins.IsPage(d.File):
		return ofPage
	case strings.Contains(d.File, "/"):
		return ofPart
	}
	return ofRoot
}
