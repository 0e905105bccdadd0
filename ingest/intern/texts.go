package intern

import "unsafe"

// textChunk is how much memory is allocated for many texts at once.
const textChunk = 4 << 10

// Texts makes strings that stay valid, many in one piece of memory. A string keeps all of it: what is to be kept for long
// has to be copied.
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
