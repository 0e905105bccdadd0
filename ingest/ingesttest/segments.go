package ingesttest

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Segments is an in-memory checkpoint backend whose segments can be damaged.
type Segments struct {
	mu      sync.Mutex
	held    map[string]map[uint64][]byte
	failing error
	written int
}

// NewSegments returns an empty backend.
func NewSegments() *Segments { return &Segments{held: map[string]map[uint64][]byte{}} }

// Put implements checkpoint.Backend.
func (s *Segments) Put(name string, generation uint64, segment []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing != nil {
		return s.failing
	}
	if s.held[name] == nil {
		s.held[name] = map[uint64][]byte{}
	}
	s.held[name][generation] = bytes.Clone(segment)
	s.written += len(segment)
	return nil
}

// Get implements checkpoint.Backend.
func (s *Segments) Get(name string, generation uint64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	segment, ok := s.held[name][generation]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return bytes.Clone(segment), nil
}

// Remove implements checkpoint.Backend.
func (s *Segments) Remove(name string, generation uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held[name], generation)
	return nil
}

// Generations implements checkpoint.Backend.
func (s *Segments) Generations(name string) ([]uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.held[name])), nil
}

// Names implements checkpoint.Backend.
func (s *Segments) Names(prefix string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, segments := range s.held {
		if strings.HasPrefix(name, prefix) && len(segments) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Where implements checkpoint.Backend.
func (s *Segments) Where(name string, generation uint64) string {
	return fmt.Sprint(name, "/", generation)
}

// Fail makes Put return err from now on. nil reverts it.
func (s *Segments) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = err
}

// Written returns the number of bytes that have been written so far.
func (s *Segments) Written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written
}

// Held returns the number of bytes that are stored for a name.
func (s *Segments) Held(name string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, segment := range s.held[name] {
		n += len(segment)
	}
	return n
}

// Copy returns a backend with the same content, like a disk after a crash.
func (s *Segments) Copy() *Segments {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := NewSegments()
	for name, segments := range s.held {
		c.held[name] = maps.Clone(segments) // segments are replaced, never modified
	}
	return c
}
