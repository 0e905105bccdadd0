package fill

import (
	"strings"
)

// kind is the type of text that a hole accepts.
type kind int

const (
	prose    kind = iota // a paragraph of Markdown without markup
	remark               // a Python comment
	function             // a Python function
)

// Hole is a kept part of an artefact that a model may fill.
type Hole struct {
	Name     string // name of the kept part, and of the proposal
	File     string // path of the artefact
	kind     kind
	maxBytes int
	ask      string // the request to the model
}

// Names in the function of the features hole.
const (
	functionName  = "features"
	parameterName = "observation"
)

// Holes returns all holes, in the order in which they are filled.
func Holes() []Hole {
	return []Hole{
		{
			"description", "pipeline/MODEL_CARD.md", prose, 800,
			"One paragraph of plain English for the model card: what the agent does, in which environment, and how its performance is measured.",
		},
		{
			"features", "pipeline/world.py", function, 4096,
			"A Python function, def features(observation):, that returns the features of an observation that the agent receives, as a numpy array of fixed shape. It must be deterministic and must not fail for any observation of the environment.",
		},
		{
			"reward-shaping", "pipeline/world.py", remark, 800,
			"A comment for the place where a wrapper could shape the reward: which potential-based shaping would suit the environment, and what could go wrong.",
		},
	}
}

// remarkWidth is the column at which the lines of a remark are wrapped.
const remarkWidth = 100

// lines returns an answer in the form in which it is written to the kept part.
func (h *Hole) lines(answer string) string {
	if h.kind != remark {
		return strings.TrimSpace(answer) + "\n"
	}
	var b strings.Builder
	width := 0
	for _, word := range strings.Fields(answer) {
		if width > 0 && width+1+len(word) > remarkWidth {
			b.WriteString("\n")
			width = 0
		}
		if width == 0 {
			b.WriteString("    #")
		}
		b.WriteString(" " + word)
		width += 1 + len(word)
	}
	return b.String() + "\n"
}
