package blocks

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// joinedSteps returns the newest ingest.MaxKeptSteps of the single steps that two blocks have kept, the second
// block after the first; nil if neither has any. The numbering has a gap of one between the blocks, because an
// agent may have taken steps there that were lost. actions are the actions of both blocks, to which the categories
// of the steps refer.
func joinedSteps(a, b *ingest.Unit, actions []ingest.Count) *ingest.Steps {
	if a.Steps == nil && b.Steps == nil {
		return nil
	}
	out := &ingest.Steps{}
	appendSteps(out, a, actions)
	appendSteps(out, b, actions)
	if drop := len(out.At) - ingest.MaxKeptSteps; drop > 0 {
		out.At, out.Rows = slices.Clone(out.At[drop:]), slices.Clone(out.Rows[drop*out.Width():])
		if out.Numbers == 0 {
			out.Actions = slices.Clone(out.Actions[drop:])
		}
	}
	return out
}

// appendSteps appends the steps of a block. They replace the earlier ones if they consist of other values.
func appendSteps(out *ingest.Steps, u *ingest.Unit, actions []ingest.Count) {
	s := u.Steps
	if s == nil {
		return
	}
	if s.Numbers != out.Numbers || !slices.Equal(s.Names, out.Names) {
		*out = ingest.Steps{Names: s.Names, Numbers: s.Numbers}
	}
	before := int32(0)
	if n := len(out.At); n > 0 {
		before = out.At[n-1] + 1
	}
	for _, n := range s.At {
		out.At = append(out.At, n+before)
	}
	out.Rows = append(out.Rows, s.Rows...)
	for _, i := range s.Actions {
		name := u.Actions[i].Name
		out.Actions = append(out.Actions, int32(slices.IndexFunc(actions, func(c ingest.Count) bool { return c.Name == name })))
	}
}
