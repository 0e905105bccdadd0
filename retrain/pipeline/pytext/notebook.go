package pytext

import (
	"encoding/json"
	"regexp"
	"strings"
)

// maxCode bounds the code of a notebook, as files of Python are bounded.
const maxCode = 1 << 20

// NotebookCode returns the Python of a Jupyter notebook without the commands of IPython, which begin with % or !. It is
// nil if the text is no notebook.
func NotebookCode(text []byte) []byte { return notebook(text, false) }

// NotebookCommands returns the commands of a notebook that begin with ! or %, without these, a line for each.
func NotebookCommands(text []byte) string { return string(notebook(text, true)) }

// NotebookPython returns the version of Python that a notebook ran with last, such as 3.12; "" if it does not say so.
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

var shortOf = regexp.MustCompile(`^(3\.[0-9]+)(?:\.|$)`)

// notebook returns the lines of the code of a notebook, or of its commands.
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

// sourceOf returns the text of a cell, which is a string or a list of lines.
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
