package programs

import (
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/lookup"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/saves"
)

// maxNamed bounds the programs that a comment lists.
const maxNamed = 5

// equals lists the programs that could be the training just as well: those with the same score, which are after it only
// because of their names.
func (f *Finder) equals() string {
	var out []string
	for _, p := range f.trained[1:] {
		if p.score == f.trained[0].score && p.file != f.trained[0].file && len(out) < maxNamed {
			out = append(out, p.file)
		}
	}
	return strings.Join(out, ", ")
}

// hasCounterpart reports whether a file is named for training and another one in its directory has the same name for
// evaluating.
func (f *Finder) hasCounterpart(file string) bool {
	base := path.Base(file)
	return strings.Contains(base, "train") && slices.ContainsFunc([]string{"test", "eval", "evaluate", "enjoy", "play"}, func(word string) bool {
		return f.Has(path.Join(path.Dir(file), strings.Replace(base, "train", word, 1)))
	})
}

// hasSibling reports whether a program is in another directory than the training, which contains a program of the same
// name. The latter belongs to the training.
func (f *Finder) hasSibling(p, training *program) bool {
	return path.Dir(p.file) != path.Dir(training.file) && len(p.path) == 0 && f.Has(path.Join(path.Dir(training.file), path.Base(p.file)))
}

// firstNamed returns the index of the first advice at the root that is about a program, or the number of all advice. A
// page usually mentions first what users should run first.
func (f *Finder) firstNamed(p *program) int {
	for _, i := range f.said.indices(p) {
		if _, ok := f.speaksOf(f.said.all[i], p); ok && f.said.all[i].weight >= ofReadme {
			return i
		}
	}
	return len(f.said.all)
}

// isOff reports whether a constant keeps code from training. Results are cached, because a file can have thousands of
// programs.
func (f *Finder) isOff(code string) bool {
	off, known := f.off[code]
	if !known {
		off = saves.Off(code) != ""
		f.off[code] = off
	}
	return off
}

// preferFirst raises the score of the program in a directory that the README mentions first, because later ones are
// variants.
func (f *Finder) preferFirst(all []program) {
	first := -1
	for i, p := range all {
		if p.said < len(f.said.all) && (first < 0 || p.said < all[first].said) {
			first = i
		}
	}
	for i, p := range all {
		if first >= 0 && i != first && p.said < len(f.said.all) && path.Dir(p.file) == path.Dir(all[first].file) && p.score > all[first].score && p.score < all[first].score+preferredBy {
			all[first].score = p.score + 1
		}
	}
}

// preferredBy is the lead in score from which another program of the directory is still preferred.
const preferredBy = 15

// refuse records why a program that is named like an evaluation is not proposed.
func (f *Finder) refuse(p *program, called int, why string) {
	if called > 0 && len(f.refused) < maxNamed {
		f.refused = append(f.refused, p.file+" is not proposed because it "+why)
	}
}

// Makes returns the file of the best training, or one that it imports, that calls the class of an algorithm or of its
// config, or "".
func (f *Finder) Makes(algorithm string) string {
	if len(f.trained) == 0 {
		return ""
	}
	for _, file := range f.withImports(&f.trained[0]) {
		if len(lookup.CallsOf(f.Text[file], algorithm)) > 0 {
			return file
		}
	}
	return ""
}
