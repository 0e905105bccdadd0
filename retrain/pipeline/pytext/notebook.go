package pytext

import (
	"encoding/json"
	"strings"
)

// maxCode bounds the code of a notebook, as files of Python are bounded.
const maxCode = 1 << 20

// NotebookCode returns the Python of a Jupyter notebook without the commands of IPython, which begin with % or !. It is
// nil if the text is no notebook.
func NotebookCode(text []byte) []byte {
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
			if !strings.HasPrefix(strings.TrimSpace(line), "%") && !strings.HasPrefix(strings.TrimSpace(line), "!") {
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
