package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// pieceReader is a backend that can read a part of a segment without reading all of it. Its errors are those of Get. If
// a segment is too short, the error is a *DamagedError.
type pieceReader interface {
	GetPiece(name string, generation, offset, length uint64) ([]byte, error)
}

var _ pieceReader = (*Directory)(nil)

// LoadParts implements ingest.CheckpointStore. A damaged part is read from the previous generation if that has an
// identical copy. A concurrent save of the name does not wait for LoadParts: if it removes parts that are being read,
// LoadParts reads the newly saved ones.
func (s *Store) LoadParts(name string, parts []string) (ingest.Parts, error) {
	out := ingest.Parts{}
	for _, part := range parts {
		data, err := s.loadPart(name, part)
		if err != nil {
			s.metrics.failures.WithLabelValues(kindOf(name)).Inc()
			return nil, fmt.Errorf("load part %s of checkpoint %q: %w", part, name, err)
		}
		out[part] = data
	}
	return out, nil
}

// loadPart reads a part of the newest generation. If the read fails because a newer generation has appeared, it reads
// again.
func (s *Store) loadPart(name, part string) ([]byte, error) {
	newest, before := s.history(name).generations()
	for {
		data, err := s.partOf(name, part, newest, before)
		read := newest.number
		if err == nil {
			return data, nil
		}
		if newest, before = s.history(name).generations(); newest.number == read {
			return nil, err
		}
	}
}

// generations returns the newest and the previous generation. The caller must not modify them.
func (h *history) generations() (newest, before generation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest, h.before
}

// partOf reads a part of the newest generation. If it is damaged, partOf reads the identical copy in the previous one.
func (s *Store) partOf(name, part string, newest, before generation) ([]byte, error) {
	at, live := newest.live[part]
	if !live {
		return nil, fs.ErrNotExist
	}
	data, err := s.piece(name, part, at)
	copied, has := before.live[part]
	if !isDamage(err) || !has || copied.generation == at.generation || copied.sum != at.sum || copied.length != at.length {
		return data, err
	}
	data, older := s.piece(name, part, copied)
	if older != nil {
		return nil, errors.Join(err, older)
	}
	s.metrics.fallbacks.WithLabelValues(kindOf(name)).Inc()
	s.log.Error().Err(err).Str("checkpoint", name).Str("instead", s.backend.Where(name, copied.generation)).
		Msg("part of a checkpoint is damaged; using the copy in the previous checkpoint. No data is lost, but check the disk")
	return data, nil
}

// piece reads one part. It avoids reading the rest of the segment if the backend supports this.
func (s *Store) piece(name, part string, at place) ([]byte, error) {
	reader, can := s.backend.(pieceReader)
	if !can {
		segment, err := s.segment(name, at.generation)
		if err != nil {
			return nil, err
		}
		parts := ingest.Parts{}
		err = s.cut(name, at.generation, segment, index{part: at}, []string{part}, parts)
		return parts[part], err
	}
	data, err := reader.GetPiece(name, at.generation, at.offset, at.length)
	damaged := func(why string) error { return s.damaged(name, at.generation, why) }
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, damaged("it is missing")
	case err != nil:
		return nil, err
	case checksum(data) != at.sum:
		return nil, damaged(fmt.Sprintf("the checksum of part %q does not match", part))
	}
	return data, nil
}

// GetPiece implements pieceReader.
func (d *Directory) GetPiece(name string, generation, offset, length uint64) ([]byte, error) {
	f, err := os.Open(d.Where(name, generation))
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	piece := make([]byte, length)
	_, err = f.ReadAt(piece, int64(offset))
	switch {
	case errors.Is(err, io.EOF):
		return nil, &DamagedError{Where: d.Where(name, generation), Why: "it is too short"}
	case errors.Is(err, syscall.EIO):
		return nil, &DamagedError{Where: d.Where(name, generation), Why: err.Error()}
	}
	return piece, err
}
