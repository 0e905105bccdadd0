// Package checkpoint keeps the state of the service durably, each checkpoint as named parts. What is loaded is byte for
// byte what one save left, or an error.
package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest"
)

var _ ingest.CheckpointStore = (*Store)(nil)

// Backend keeps segments, and knows nothing of what is in them. Its methods may be called by several goroutines, of one
// name by one at a time.
type Backend interface {
	// Put returns when the segment is durable. It takes the place of one of the same name and generation, all of it or
	// nothing.
	Put(name string, generation uint64, segment []byte) error
	// Get gives a segment. The error is fs.ErrNotExist where there is none, a *DamagedError where it is there and will
	// never be read, and another one where trying again may help.
	Get(name string, generation uint64) ([]byte, error)
	// Remove forgets a segment. It is no error if there is none.
	Remove(name string, generation uint64) error
	// Generations lists those that there are of a name, in any order.
	Generations(name string) ([]uint64, error)
	// Names lists the names that have a segment and begin with a prefix, sorted.
	Names(prefix string) ([]string, error)
	// Where tells a person where a segment is.
	Where(name string, generation uint64) string
}

// Store keeps checkpoints as generations of segments. A save writes one segment with the parts that changed and the index
// of all live parts, which may lie in older segments; it costs one Put, however many parts there are. The generation
// before the newest is kept whole: where the newest is damaged, Load goes back to it, says so in the log, and counts it
// in rewardwatch_checkpoint_fallbacks_total. Segments that neither of the two needs are removed.
//
// An older segment of which less than half is live has its live parts written again with the next save. That is less
// than its index and what has been superseded in it, and happens once to a segment; so no more is written than twice the
// changed parts and the indexes, and the segments of one generation, but for the newest, take no more than twice the
// bytes of its parts. An index takes the length of its name and 32 bytes a live part. Each segment but the newest holds a
// live part of one of the two generations, so that there are no more segments than twice the parts.
//
// Parts that both generations share are there once: damage to them is an error of Load, as there is nothing to go back to.
//
// A name belongs to one owner at a time: its Load, if any, comes before its first Save. Other names may be used meanwhile.
type Store struct {
	backend Backend
	topic   string // that segments lie in, "" where they are files
	log     zerolog.Logger
	metrics *metrics

	mu    sync.Mutex
	names map[string]*history
}

// history is what a store knows of a name. mu is held while its segments are read or written.
type history struct {
	mu             sync.Mutex
	known          bool // the rest is what the backend has
	lost           bool // parts of the newest could not be read: the next save is given all
	newest, before generation
	sizes          map[uint64]uint64 // of the segments that the backend may hold, 0 where the size is not known
}

// generation is one state of a checkpoint: the live parts, and the number of the segment that lists them, 0 for none.
type generation struct {
	number uint64
	live   index
}

// NewStore makes the store of a backend.
func NewStore(backend Backend, log zerolog.Logger, reg prometheus.Registerer) *Store {
	return newStore(backend, log, newMetrics(reg))
}

func newStore(backend Backend, log zerolog.Logger, metrics *metrics) *Store {
	return &Store{backend: backend, log: log, metrics: metrics, names: map[string]*history{}}
}

// Names lists the names that begin with a prefix and have a checkpoint, sorted.
func (s *Store) Names(prefix string) ([]string, error) { return s.backend.Names(prefix) }

// DamagedError says that a segment exists and cannot be trusted.
type DamagedError struct {
	Where string // it is
	Topic string // that it is in, "" where it is a file
	Why   string // it cannot be used
}

// Error gives the damage and the ways out of it.
func (e *DamagedError) Error() string {
	way := "put back a copy of it, or move all files of this name away to start what it holds from nothing"
	if e.Topic != "" {
		way = newTopic
	}
	return fmt.Sprintf("checkpoint %s cannot be used: %s; %s (a partition loses its open episodes and resumes at its committed offset, "+
		"a bank warms up a new baseline)", e.Where, e.Why, way)
}

// newTopic is the way out where state is in a topic.
const newTopic = "stop all instances and name a new topic in cluster.checkpoints_topic to start everything from nothing"

// VersionError says that a checkpoint is whole and of a format that this build does not read.
type VersionError struct {
	Where string // it is
	Topic string // that it is in, "" where it is a file
	Why   string // which version it has, and which is wanted
}

// Error gives the versions and the ways on.
func (e *VersionError) Error() string {
	way := "move all files of this name away to start what it holds from nothing"
	if e.Topic != "" {
		way = newTopic
	}
	return fmt.Sprintf("checkpoint %s: %s; start the build that wrote it, or %s", e.Where, e.Why, way)
}

func (s *Store) history(name string) *history {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.names[name]
	if h == nil {
		h = &history{}
		s.names[name] = h
	}
	return h
}

// Load implements ingest.CheckpointStore. It gives the newest generation, or the one before where that is damaged: its
// index and every part of it must be what was written. Where both are damaged the error names both; no older one is
// tried, as others have relied on what came since.
func (s *Store) Load(name string) (ingest.Parts, error) {
	h := s.history(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	parts, err := s.load(name, h)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.known = false
		s.metrics.failures.WithLabelValues(kindOf(name)).Inc()
	}
	return parts, err
}

func (s *Store) load(name string, h *history) (ingest.Parts, error) {
	if err := s.list(name, h); err != nil {
		return nil, err
	}
	if len(h.sizes) == 0 {
		return nil, fs.ErrNotExist
	}
	top := slices.Max(slices.Collect(maps.Keys(h.sizes)))
	parts, err := s.read(name, top, h)
	if err == nil || !isDamage(err) {
		return parts, err
	}
	if top <= 1 { // it is the first
		return nil, err
	}
	parts, older := s.read(name, top-1, h)
	if older != nil {
		return nil, errors.Join(err, older)
	}
	s.metrics.fallbacks.WithLabelValues(kindOf(name)).Inc()
	s.log.Error().Err(err).Str("checkpoint", name).Str("instead", s.backend.Where(name, top-1)).
		Msg("A checkpoint is damaged, going back to the one before: nothing is lost, but look at the disk")
	return parts, nil
}

func isDamage(err error) bool {
	var damaged *DamagedError
	return errors.As(err, &damaged)
}

// damaged gives the error for a segment.
func (s *Store) damaged(name string, number uint64, why string) error {
	return &DamagedError{Where: s.backend.Where(name, number), Topic: s.topic, Why: why}
}

// list asks the backend for the segments of a name.
func (s *Store) list(name string, h *history) error {
	numbers, err := s.backend.Generations(name)
	if err != nil {
		return fmt.Errorf("looking for checkpoint %q: %w", name, err)
	}
	h.known, h.newest, h.before, h.lost, h.sizes = true, generation{live: index{}}, generation{}, false, map[uint64]uint64{}
	for _, n := range numbers {
		h.sizes[n] = 0
	}
	return nil
}

// read gives the parts of a generation, which becomes the newest of the history.
func (s *Store) read(name string, number uint64, h *history) (ingest.Parts, error) {
	head, err := s.segment(name, number)
	if err != nil {
		return nil, err
	}
	damaged := func(why string) error { return s.damaged(name, number, why) }
	of, generationOf, live, err := decode(head)
	switch {
	case errors.Is(err, errOtherVersion):
		return nil, &VersionError{Where: s.backend.Where(name, number), Topic: s.topic, Why: err.Error()}
	case err != nil:
		return nil, damaged(err.Error())
	case of != name || generationOf != number:
		return nil, damaged(fmt.Sprintf("it is generation %d of %q", generationOf, of))
	}
	parts := ingest.Parts{}
	for n, held := range live.segments() {
		segment := head
		if n != number {
			if segment, err = s.segment(name, n); err != nil {
				return nil, err
			}
		}
		h.sizes[n] = uint64(len(segment))
		if err := s.cut(name, n, segment, live, held.parts, parts); err != nil {
			return nil, err
		}
	}
	h.newest = generation{number, live}
	return parts, nil
}

// cut takes parts out of a segment.
func (s *Store) cut(name string, number uint64, segment []byte, live index, parts []string, into ingest.Parts) error {
	for _, part := range parts {
		data, whole := live[part].cut(segment)
		if !whole {
			return s.damaged(name, number, fmt.Sprintf("the checksum of part %q does not match", part))
		}
		into[part] = data
	}
	return nil
}

// segment gets a segment that is there unless it was damaged.
func (s *Store) segment(name string, number uint64) ([]byte, error) {
	segment, err := s.backend.Get(name, number)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.damaged(name, number, "it is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("reading checkpoint %q: %w", name, err)
	}
	return segment, nil
}

// Save implements ingest.CheckpointStore.
func (s *Store) Save(name string, changed ingest.Parts, gone []string) error {
	h := s.history(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	size, err := s.save(name, h, changed, gone)
	if err != nil {
		if !errors.Is(err, ingest.ErrFenced) { // which is how a partition changes hands
			s.metrics.failures.WithLabelValues(kindOf(name)).Inc()
		}
		return fmt.Errorf("saving checkpoint %q: %w", name, err)
	}
	s.metrics.bytes.WithLabelValues(kindOf(name)).Set(float64(size))
	s.sweep(name, h)
	return nil
}

func (s *Store) save(name string, h *history, changed ingest.Parts, gone []string) (size int, err error) {
	if name == "" {
		return 0, errors.New("it has no name")
	}
	if err := s.begin(name, h); err != nil {
		return 0, err
	}
	live := index{}
	if !h.lost {
		live = maps.Clone(h.newest.live)
	}
	maps.DeleteFunc(live, func(part string, _ place) bool {
		_, superseded := changed[part]
		return superseded || slices.Contains(gone, part)
	})
	written, err := s.carry(name, h, live, len(changed)+len(gone) == 0)
	if err != nil {
		h.lost = true // the segments stay: what could not be read now may be later
		return 0, errors.Join(ingest.ErrPartsLost, err)
	}
	maps.Copy(written, changed)
	// A save that failed may have left a segment of the same number, which this one replaces: numbers have no gaps, so
	// that the generation before is known by its number.
	number := h.newest.number + 1
	segment := encode(name, number, written, live)
	h.sizes[number] = uint64(len(segment))
	if err := s.backend.Put(name, number, segment); err != nil {
		return 0, err
	}
	h.before, h.newest, h.lost = h.newest, generation{number, live}, false
	return len(segment), nil
}

// begin makes sure that the history of a name is known. One that was never loaded begins with no parts.
func (s *Store) begin(name string, h *history) error {
	if h.known {
		return nil
	}
	if err := s.list(name, h); err != nil {
		return err
	}
	for n := range h.sizes {
		h.newest.number = max(h.newest.number, n)
	}
	return nil
}

// carry gives the live parts that are to be written again: those of segments that are mostly dead, and, where nothing has
// changed, those of the newest segment: then there are two copies of what was written last.
func (s *Store) carry(name string, h *history, live index, unchanged bool) (ingest.Parts, error) {
	carried := ingest.Parts{}
	for n, held := range live.segments() {
		again := unchanged && n == h.newest.number
		if 2*held.bytes >= h.sizes[n] && !again {
			continue
		}
		segment, err := s.segment(name, n)
		if err == nil {
			err = s.cut(name, n, segment, live, held.parts, carried)
		}
		if err != nil {
			return nil, err
		}
	}
	return carried, nil
}

// sweep removes the segments that neither of the last two generations needs. What cannot be removed now is tried again.
func (s *Store) sweep(name string, h *history) {
	newest, before := h.newest.live.segments(), h.before.live.segments()
	for n := range h.sizes {
		if n == h.newest.number || n == h.before.number || newest[n].parts != nil || before[n].parts != nil {
			continue
		}
		if err := s.backend.Remove(name, n); err != nil {
			s.log.Warn().Err(err).Str("checkpoint", name).Msg("A segment that is not needed any more could not be removed")
			continue
		}
		delete(h.sizes, n)
	}
}

// kinds of checkpoints, for metrics.
func kinds() []string { return []string{"partition", "bank"} }

// kindOther is that of all else.
const kindOther = "other"

// kindOf is the first word of a name: "partition-topic-3" is of the kind "partition". Names of no known kind share
// "other", so that no name can add to the series.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, "-")
	if !slices.Contains(kinds(), kind) {
		return kindOther
	}
	return kind
}
