package intern

import "unsafe"

// textChunk is the number of bytes that are allocated at once for several texts.
const textChunk = 4 << 10

// Texts creates strings that remain valid, several in one allocation. A string keeps its whole allocation in memory, so
// copy strings that are retained for a long time.
type Texts struct{ memory []byte }

// Hold returns text as a string.
func (t *Texts) Hold(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	if len(text) > cap(t.memory)-len(t.memory) {
		t.memory = make([]byte, 0, max(textChunk, len(text)))
	}
	start := len(t.memory)
	t.memory = append(t.memory, text...)
	return unsafe.String(&t.memory[start], len(text))
}
