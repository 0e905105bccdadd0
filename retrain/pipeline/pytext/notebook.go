package pytext

import (
	"encoding/json"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// maxCode bounds the code of a notebook in bytes. It is the same limit as for a Python file.
const maxCode = 1 << 20

// NotebookCode returns the Python code of a Jupyter notebook without IPython commands, which begin with % or !. It
// returns nil if the text is not a notebook.
func NotebookCode(text []byte) []byte { return notebook(text, false) }

// NotebookCommands returns the IPython commands of a notebook without their ! or %, one per line.
func NotebookCommands(text []byte) string { return string(notebook(text, true)) }

// NotebookPython returns the Python version with which a notebook was last run, such as 3.12, or "" if it is unknown.
func NotebookPython(text []byte) string {
	var notebook struct {
		Metadata struct {
			Language struct {
				Name    string `json:"name"`
				Version string `json:"version"`
			} `json:"language_info"`
		} `json:"metadata"`
	}
	if json.Unmarshal(text, &notebook) != nil || notebook.Metadata.Language.Name != "python" {
		return ""
	}
	if m := shortOf.FindStringSubmatch(notebook.Metadata.Language.Version); m != nil {
		return m[1]
	}
	return ""
}

var shortOf = pattern.MustCompile(`^(3\.[0-9]+)(?:\.|$)`)

// notebook returns the lines of a notebook's Python code, or of its commands.
func notebook(text []byte, commands bool) []byte {
	var notebook struct {
		Cells []struct {
			Type   string          `json:"cell_type"`
			Source json.RawMessage `json:"source"`
		} `json:"cells"`
	}
	if json.Unmarshal(text, &notebook) != nil {
		return nil
	}
	var out []byte
	for _, c := range notebook.Cells {
		if c.Type != "code" || len(out)+len(c.Source) > maxCode {
			continue
		}
		for line := range strings.Lines(sourceOf(c.Source) + "\n") {
			plain := strings.TrimLeft(strings.TrimSpace(line), "%!")
			switch is := plain != strings.TrimSpace(line); {
			case is && commands:
				out = append(out, plain+"\n"...)
			case !is && !commands:
				out = append(out, line...)
			}
		}
	}
	return out
}

// sourceOf returns the source of a cell, which is a string or a list of lines.
func sourceOf(raw json.RawMessage) string {
	var lines []string
	if json.Unmarshal(raw, &lines) == nil {
		return strings.Join(lines, "")
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return ""
}
