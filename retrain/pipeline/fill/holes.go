package fill

import (
	"strings"
)

// kind is the type of what a hole takes.
type kind int

const (
	prose    kind = iota // a paragraph of Markdown without markup
	remark               // a comment of Python
	function             // a function of Python
)

// Hole is a kept part of an artefact that a model may fill.
type Hole struct {
	Name     string // of the kept part, and in the file
	File     string // the artefact
	kind     kind
	maxBytes int
	ask      string // what the model is asked for
}

// Function and parameter of the hole for features.
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

// remarkWidth is where the lines of a remark are wrapped.
const remarkWidth = 100

// lines returns an answer as the lines of the kept part.
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
