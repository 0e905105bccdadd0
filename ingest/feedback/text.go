package feedback

// texts stores the bytes of decisions in chunks without pointers, which the garbage collector does not have to scan. A
// chunk is reused once none of its texts is in use. Decisions end in about the same order in which they begin, so
// chunks become empty.
type texts struct {
	chunks []chunk
	free   []uint32 // empty chunks
	at     uint32   // chunk that is being filled
	bytes  int64    // memory of all chunks
}

type chunk struct {
	bytes []byte
	live  int // number of texts in use
}

// place is the location of a text.
type place struct{ chunk, at, size uint32 }

const chunkSize = 64 << 10

// hold stores a copy of a text.
func (t *texts) hold(text []byte) place {
	if len(t.chunks) == 0 || len(t.chunks[t.at].bytes)+len(text) > cap(t.chunks[t.at].bytes) {
		t.next(len(text))
	}
	c := &t.chunks[t.at]
	p := place{t.at, uint32(len(c.bytes)), uint32(len(text))}
	c.bytes = append(c.bytes, text...)
	c.live++
	return p
}

// next makes room for a text in another chunk.
func (t *texts) next(size int) {
	if len(t.chunks) > 0 && t.chunks[t.at].live == 0 {
		t.empty(t.at)
	}
	last := len(t.free) - 1
	if last < 0 || size > chunkSize {
		t.at = uint32(len(t.chunks))
		t.chunks = append(t.chunks, chunk{bytes: make([]byte, 0, max(chunkSize, size))})
		t.bytes += int64(max(chunkSize, size))
		return
	}
	t.at, t.free = t.free[last], t.free[:last]
}

// get returns a text. It is valid until the text is dropped.
func (t *texts) get(p place) []byte { return t.chunks[p.chunk].bytes[p.at : p.at+p.size] }

// drop ends the use of a text.
func (t *texts) drop(p place) {
	c := &t.chunks[p.chunk]
	if c.live--; c.live == 0 && p.chunk != t.at {
		t.empty(p.chunk)
	}
}

func (t *texts) empty(n uint32) {
	c := &t.chunks[n]
	if c.bytes = c.bytes[:0]; cap(c.bytes) > chunkSize {
		t.bytes -= int64(cap(c.bytes) - chunkSize)
		c.bytes = make([]byte, 0, chunkSize)
	}
	t.free = append(t.free, n)
}
