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
	case pins.IsMetadata(d.File):
		return ofMetadata
	case pins.IsPage(d.File):
		return ofPage
	case strings.Contains(d.File, "/"):
		return ofPart
	}
	return ofRoot
}
