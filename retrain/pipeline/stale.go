package pipeline

import (
	"io/fs"
	"os"
	"slices"
	"strings"
)

// places are where generated files are, apart from those of templates that a team has written itself.
var places = []string{"pipeline", ".github/workflows", actionlint, ".gitlab-ci.yml"}

// headLines is how far into a file its header is.
const headLines = 5

// maxStale bounds the size of files that are looked into.
const maxStale = 1 << 20

// stale returns the files of a repository that were generated and are not any more, such as the script of a stage that
// the file has no longer. The workflows of other projects are not among them.
func stale(root *os.Root, project string, artefacts []Artefact) ([]Change, error) {
	var out []Change
	for _, place := range places {
		if info, err := root.Lstat(place); err != nil || info.Mode()&fs.ModeSymlink != 0 {
			continue // there is none, or what it leads to is not of the repository
		}
		err := fs.WalkDir(root.FS(), place, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, suffix) || ofOther(path, project) ||
				slices.ContainsFunc(artefacts, func(a Artefact) bool { return a.Path == path }) {
				return err
			}
			if info, err := d.Info(); err != nil || info.Size() > maxStale {
				return err
			}
			text, err := root.ReadFile(path)
			if err == nil && generated(string(text)) {
				out = append(out, Change{Path: path, Before: string(text), Exists: true, Removed: true})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// recipeOf returns the path of the recipe of a project, which each pipeline has.
func recipeOf(project string) string { return "pipeline/recipes/" + project + ".yaml" }

// workflowOf returns the path of the workflow of a project.
func workflowOf(project string) string { return ".github/workflows/retrain-" + project + ".yml" }

// ofOther reports whether a path is that of the workflow of another project, whose other files are in another directory.
func ofOther(path, project string) bool {
	return strings.HasPrefix(path, ".github/workflows/retrain-") && path != workflowOf(project)
}

// otherProject returns the project whose pipeline a directory has, "" if it has none or the one of this project.
func otherProject(root *os.Root, project string) string {
	if isGenerated(root, recipeOf(project)) {
		return ""
	}
	entries, err := fs.ReadDir(root.FS(), "pipeline/recipes")
	if err != nil {
		return ""
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".yaml")
		if ok && isGenerated(root, recipeOf(name)) {
			return name
		}
	}
	return ""
}

func isGenerated(root *os.Root, path string) bool {
	info, err := root.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxStale {
		return false
	}
	text, err := root.ReadFile(path)
	return err == nil && generated(string(text))
}

// generated reports whether a file begins as generated ones do. A text that only mentions them does not.
func generated(text string) bool {
	head := strings.SplitN(text, "\n", headLines+1)
	return slices.ContainsFunc(head[:min(len(head), headLines)], func(line string) bool {
		return strings.Contains(line, header+". Lines between keep and end marks stay as you write them.") || strings.Contains(line, Written)
	})
}
