// Package checkpoint keeps the state of the service durably, each checkpoint as named parts. A load returns byte for
// byte what one save wrote, or an error.
package checkpoint

import (
	"bytes"
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

// Backend keeps segments as opaque bytes. Its methods may be called by several goroutines. For each name, only one at a
// time writes or removes; others may read meanwhile.
type Backend interface {
	// Put returns when the segment is durable. It replaces a segment of the same name and generation atomically.
	Put(name string, generation uint64, segment []byte) error
	// Get returns a segment. The error is fs.ErrNotExist if there is none, a *DamagedError if it exists and can never
	// be read, and any other error if a retry may help.
	Get(name string, generation uint64) ([]byte, error)
	// Remove removes a segment. A missing one is not an error.
	Remove(name string, generation uint64) error
	// Generations returns the generations of a name, in any order.
	Generations(name string) ([]uint64, error)
	// Names returns the names that have a segment and begin with prefix, sorted.
	Names(prefix string) ([]string, error)
	// Where describes the place of a segment to a person.
	Where(name string, generation uint64) string
}

// Store keeps checkpoints as generations of segments. A save writes one segment with the changed parts and the index of
// all live parts, which may lie in older segments. It costs one Put, however many parts there are. The generation
// before the newest is kept whole: if the newest is damaged, Load returns that one, logs it, and counts it in
// rewardwatch_checkpoint_fallbacks_total. Segments that neither generation needs are removed.
//
// When less than a third of an older segment is live, the next save writes its live parts again. That is less than half
// of the segment's index and superseded parts, and happens once per segment. So all saves together write at most one and
// a half times the changed parts and the indexes. The segments of one generation, except the newest, take at most three
// times the bytes of its parts: at half, each baseline would be written again, as it is some 40 % of what a group saves
// with it. An index takes the length of its name and at most 43 bytes per live part. Each segment except the newest holds
// a live part of one of the two generations, so there are at most twice as many segments as parts.
//
// Parts that both generations share exist once: if such a part is damaged, Load returns an error, as there is nothing
// to fall back to.
//
// A name belongs to one owner at a time: its Load, if any, precedes its first Save. Other names may be used
// concurrently.
type Store struct {
	backend Backend
	topic   string // of the segments, "" if they are files
	log     zerolog.Logger
	metrics *metrics

	mu    sync.Mutex
	names map[string]*history
}

// history is a store's state of a name. mu is held while its segments are written, and while all of them are read.
type history struct {
	mu             sync.Mutex
	known          bool // the other fields match the backend
	lost           bool // parts of the newest could not be read: the next save gets all parts
	newest, before generation
	sizes          map[uint64]uint64 // of the segments that the backend may hold, 0 if unknown
}

// generation is one state of a checkpoint: the live parts, and the number of the segment that lists them, 0 for none.
type generation struct {
	number uint64
	live   index
}

// NewStore returns the store of a backend.
func NewStore(backend Backend, log zerolog.Logger, reg prometheus.Registerer) *Store {
	return newStore(backend, log, newMetrics(reg))
}

func newStore(backend Backend, log zerolog.Logger, metrics *metrics) *Store {
	return &Store{backend: backend, log: log, metrics: metrics, names: map[string]*history{}}
}

// Names returns the names that begin with prefix and have a checkpoint, sorted.
func (s *Store) Names(prefix string) ([]string, error) { return s.backend.Names(prefix) }

// DamagedError means that a segment exists and cannot be trusted.
type DamagedError struct {
	Where string // the place of the segment
	Topic string // of the segment, "" if it is a file
	Why   string // why it cannot be used
}

// Error describes the damage and the ways out of it.
func (e *DamagedError) Error() string {
	way := "restore a copy, or move all files with this name aside to start with empty state"
	if e.Topic != "" {
		way = FromNothing
	}
	return fmt.Sprintf("checkpoint %s cannot be used: %s; %s (a partition loses its open episodes and resumes at its committed offset; a bank collects a new baseline)", e.Where, e.Why, way)
}

// FromNothing tells the operator what to do when the state in a topic cannot be used.
const FromNothing = "stop all instances, set new topics in cluster.checkpoints_topic and cluster.units_topic and a new group in " +
	"ingest.kafka.group, and start again: policies then collect new baselines from the existing telemetry"

// VersionError means that a checkpoint is intact and of a format that this build does not read.
type VersionError struct {
	Where string // the place of the segment
	Topic string // of the segment, "" if it is a file
	Why   string // which version it has, and which one this build reads
}

// Error describes the versions and the ways forward.
func (e *VersionError) Error() string {
	way := "move all files with this name aside to start with empty state"
	if e.Topic != "" {
		way = FromNothing
	}
	return fmt.Sprintf("checkpoint %s: %s; run the build that wrote it, or %s", e.Where, e.Why, way)
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

// Load implements ingest.CheckpointStore. It returns the newest generation, or the one before if the newest is damaged.
// The index and every part must be exactly what was written. If both are damaged, the error names both; no older one is
// tried, as others have relied on the state since then.
func (s *Store) Load(name string) (ingest.Parts, error) {
	parts, _, err := s.loadSegments(name)
	return parts, err
}

// recycler is a backend that reads other segments into the memory of those that are no longer needed.
type recycler interface {
	// Recycle takes the result of a Get.
	Recycle(segment []byte)
}

// Lend calls use with what Load returns, and returns its error. Afterwards other checkpoints are read into the same memory:
// use must not keep any of it. A start that reads a large fleet then needs no new memory for each checkpoint.
func (s *Store) Lend(name string, use func(ingest.Parts) error) error {
	parts, segments, err := s.loadSegments(name)
	if err != nil {
		return err
	}
	err = use(parts)
	if r, can := s.backend.(recycler); can {
		for _, segment := range segments {
			r.Recycle(segment)
		}
	}
	return err
}

// loadSegments is Load. It also returns the segments that hold the parts.
func (s *Store) loadSegments(name string) (ingest.Parts, [][]byte, error) {
	h := s.history(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	parts, segments, err := s.load(name, h)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.known = false
		s.metrics.failures.WithLabelValues(kindOf(name)).Inc()
	}
	return parts, segments, err
}

func (s *Store) load(name string, h *history) (ingest.Parts, [][]byte, error) {
	if err := s.list(name, h); err != nil {
		return nil, nil, err
	}
	if len(h.sizes) == 0 {
		return nil, nil, fs.ErrNotExist
	}
	top := slices.Max(slices.Collect(maps.Keys(h.sizes)))
	parts, segments, err := s.read(name, top, h)
	if err == nil || !isDamage(err) {
		return parts, segments, err
	}
	if top <= 1 { // it is the first
		return nil, nil, err
	}
	parts, segments, older := s.read(name, top-1, h)
	if older != nil {
		return nil, nil, errors.Join(err, older)
	}
	s.metrics.fallbacks.WithLabelValues(kindOf(name)).Inc()
	s.log.Error().Err(err).Str("checkpoint", name).Str("instead", s.backend.Where(name, top-1)).
		Msg("a checkpoint is damaged; using the previous one. No data is lost, but check the disk")
	return parts, segments, nil
}

func isDamage(err error) bool {
	var damaged *DamagedError
	return errors.As(err, &damaged)
}

// damaged returns the DamagedError for a segment.
func (s *Store) damaged(name string, number uint64, why string) error {
	return &DamagedError{Where: s.backend.Where(name, number), Topic: s.topic, Why: why}
}

// list reads the segments of a name from the backend.
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

// read returns the parts of a generation, which becomes the newest of the history, and the segments that hold them.
func (s *Store) read(name string, number uint64, h *history) (ingest.Parts, [][]byte, error) {
	head, err := s.segment(name, number)
	if err != nil {
		return nil, nil, err
	}
	damaged := func(why string) error { return s.damaged(name, number, why) }
	of, generationOf, live, err := decode(head)
	switch {
	case errors.Is(err, errOtherVersion):
		return nil, nil, &VersionError{Where: s.backend.Where(name, number), Topic: s.topic, Why: err.Error()}
	case err != nil:
		return nil, nil, damaged(err.Error())
	case of != name || generationOf != number:
		return nil, nil, damaged(fmt.Sprintf("it belongs to %[2]q, generation %[1]d", generationOf, of))
	}
	parts, segments := ingest.Parts{}, [][]byte{head}
	for n, held := range live.segments() {
		segment := head
		if n != number {
			if segment, err = s.segment(name, n); err != nil {
				return nil, nil, err
			}
			segments = append(segments, segment)
		}
		h.sizes[n] = uint64(len(segment))
		if err := s.cut(name, n, segment, live, held.parts, parts); err != nil {
			return nil, nil, err
		}
	}
	h.newest = generation{number, live}
	return parts, segments, nil
}

// cut adds parts of a segment to into, which shares its memory.
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

// segment reads a segment that exists unless it was damaged.
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
		if !errors.Is(err, ingest.ErrFenced) { // this is how a partition changes hands
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
		return 0, errors.New("its name is empty")
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
		h.lost = true // the segments stay: a later read may succeed
		return 0, errors.Join(ingest.ErrPartsLost, err)
	}
	maps.Copy(written, changed)
	// A failed save may have left a segment of the same number, which this one replaces: numbers have no gaps, so that
	// the number identifies the generation before.
	number := h.newest.number + 1
	pieces, size, err := encodePieces(name, number, written, live)
	if err != nil {
		return 0, err
	}
	h.sizes[number] = uint64(size)
	if err := s.put(name, number, pieces); err != nil {
		return 0, err
	}
	h.before, h.newest, h.lost = h.newest, generation{number, live}, false
	return size, nil
}

// Failed counts a checkpoint that was not saved because what belongs to it could not be written.
func (s *Store) Failed(name string) { s.metrics.failures.WithLabelValues(kindOf(name)).Inc() }

// pieceWriter is a backend that writes a segment piece by piece, with the contract of Put.
type pieceWriter interface {
	PutPieces(name string, generation uint64, pieces [][]byte) error
}

func (s *Store) put(name string, number uint64, pieces [][]byte) error {
	if w, can := s.backend.(pieceWriter); can {
		return w.PutPieces(name, number, pieces)
	}
	return s.backend.Put(name, number, bytes.Join(pieces, nil))
}

// Forget removes a checkpoint. It empties the checkpoint first: if that is interrupted, Load returns either no parts or
// all of them.
func (s *Store) Forget(name string) error {
	h := s.history(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	for range 2 { // so that neither generation needs a segment that is removed first
		h.lost = true
		if _, err := s.save(name, h, nil, nil); err != nil {
			return fmt.Errorf("deleting checkpoint %q: %w", name, err)
		}
		s.sweep(name, h)
	}
	for _, n := range slices.Sorted(maps.Keys(h.sizes)) {
		if err := s.backend.Remove(name, n); err != nil {
			return fmt.Errorf("deleting checkpoint %q: %w", name, err)
		}
	}
	h.known = false
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names, name)
	return nil
}

// begin makes sure that the history of a name is known. A name that was never loaded begins without parts.
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

// carry returns the live parts to write again: those of segments that are mostly dead and, if nothing has changed,
// those of the newest segment, so that the last write has two copies.
func (s *Store) carry(name string, h *history, live index, unchanged bool) (ingest.Parts, error) {
	carried := ingest.Parts{}
	for n, held := range live.segments() {
		again := unchanged && n == h.newest.number
		if 3*held.bytes >= h.sizes[n] && !again {
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

// sweep removes the segments that neither of the last two generations needs. A failed removal is tried again with the
// next save.
func (s *Store) sweep(name string, h *history) {
	newest, before := h.newest.live.segments(), h.before.live.segments()
	for n := range h.sizes {
		if n == h.newest.number || n == h.before.number || newest[n].parts != nil || before[n].parts != nil {
			continue
		}
		if err := s.backend.Remove(name, n); err != nil {
			s.log.Warn().Err(err).Str("checkpoint", name).Msg("failed to remove an unused segment")
			continue
		}
		delete(h.sizes, n)
	}
}

// kinds of checkpoints, for metrics.
func kinds() []string { return []string{"partition", "bank"} }

// kindOther is the kind of all other names.
const kindOther = "other"

// kindOf returns the first word of a name: "partition-topic-3" is of the kind "partition". Names of no known kind share
// "other", so that no name adds a series.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, "-")
	if !slices.Contains(kinds(), kind) {
		return kindOther
	}
	return kind
}
