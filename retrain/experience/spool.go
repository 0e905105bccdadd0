package experience

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fxamacker/cbor/v2"
)

// maxHeld is how many bytes of the records of open episodes are kept in memory.
const maxHeld = 64 << 20

// spool keeps the records of open episodes: up to limit in memory, and the others in a temporary file, whose space is
// not reused.
type spool struct {
	limit int // bytes
	held  int
	open  map[*pile]struct{}
	file  *os.File // nil before it is needed
	size  int64
}

// pile holds the records of one episode in order of arrival.
type pile struct {
	buffer []byte // the newest
	filed  []extent
}

// extent is a part of the file.
type extent struct{ at, length int64 }

func newSpool(limit int) *spool { return &spool{limit: limit, open: map[*pile]struct{}{}} }

func (s *spool) begin() *pile {
	p := &pile{}
	s.open[p] = struct{}{}
	return p
}

func (s *spool) add(p *pile, r *Record) error {
	text, err := cbor.Marshal(r)
	if err != nil {
		return fmt.Errorf("store the record at %s: %w", r.Pos, err)
	}
	p.buffer = append(p.buffer, text...)
	s.held += len(text)
	if s.held <= s.limit {
		return nil
	}
	return s.spill()
}

// spill moves the records in memory to the file.
func (s *spool) spill() (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "rewardwatch-export-*"); err != nil {
			return fmt.Errorf("store the records of open episodes: %w", err)
		}
	}
	for p := range s.open {
		if len(p.buffer) == 0 {
			continue
		}
		if _, err := s.file.WriteAt(p.buffer, s.size); err != nil {
			return fmt.Errorf("store the records of open episodes: %w", err)
		}
		p.filed = append(p.filed, extent{s.size, int64(len(p.buffer))})
		s.size += int64(len(p.buffer))
		p.buffer = nil
	}
	s.held = 0
	return nil
}

// end passes an episode's records to take, and removes the episode.
func (s *spool) end(p *pile, take func(*Record) error) error {
	defer func() {
		s.held -= len(p.buffer)
		delete(s.open, p)
	}()
	var parts []io.Reader
	for _, e := range p.filed {
		parts = append(parts, io.NewSectionReader(s.file, e.at, e.length))
	}
	d := cbor.NewDecoder(io.MultiReader(append(parts, bytes.NewReader(p.buffer))...))
	for {
		var r Record
		switch err := d.Decode(&r); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reread the records of an episode: %w", err)
		}
		if err := take(&r); err != nil {
			return err
		}
	}
}

// close removes the file.
func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
