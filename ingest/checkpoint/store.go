// Package checkpoint stores the state of the service durably. Each checkpoint consists of named parts. A load returns
// byte for byte what one save wrote, or an error.
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

// Backend stores segments as opaque bytes. Its methods may be called concurrently. For each name, only one goroutine at
// a time writes or removes; others may read meanwhile.
type Backend interface {
	// Put returns once the segment is durable. It atomically replaces a segment with the same name and generation.
	Put(name string, generation uint64, segment []byte) error
	// Get returns a segment. The error is fs.ErrNotExist if there is none, a *DamagedError if it exists but can never be
	// read, and any other error if a retry may help.
	Get(name string, generation uint64) ([]byte, error)
	// Remove removes a segment. A missing one is not an error.
	Remove(name string, generation uint64) error
	// Generations returns the generations of a name, in any order.
	Generations(name string) ([]uint64, error)
	// Names returns the names that have a segment and begin with prefix, sorted.
	Names(prefix string) ([]string, error)
	// Where describes the location of a segment to a person.
	Where(name string, generation uint64) string
}

// Store stores checkpoints as generations of segments. A save writes one segment with the changed parts and an index of
// all live parts, some of which are in older segments. It takes one Put, regardless of the number of parts. The
// generation before the newest is kept completely. If the newest is damaged, Load returns the previous one, logs this,
// and counts it in rewardwatch_checkpoint_fallbacks_total. Segments that neither generation needs are removed.
//
// When less than a third of an older segment is live, the next save writes its live parts again. These are less than
// half as large as the segment's index and superseded parts, and are rewritten once per segment. So all saves together
// write at most one and a half times the size of the changed parts and indexes. The segments of one generation, except
// the newest, take at most three times the size of its parts. With a threshold of one half, every baseline would be
// rewritten, because it is about 40 % of the data that a group saves with it. An index takes the length of its name and
// at most 43 bytes per live part. Each segment except the newest holds a live part of one of the two generations, so
// there are at most twice as many segments as parts.
//
// A part that both generations share is stored once. If it is damaged, Load returns an error, because there is no other
// copy.
//
// A name must have one owner at a time, which calls Load, if at all, before its first Save. Different names may be used
// concurrently.
type Store struct {
	backend Backend
	topic   string // topic of the segments; "" if they are files
	log     zerolog.Logger
	metrics *metrics

	mu    sync.Mutex
	names map[string]*history
}

// history is a store's state for a name. mu is held while its segments are written, and while all of them are read.
type history struct {
	mu             sync.Mutex
	known          bool // whether the other fields match the backend
	lost           bool // whether parts of the newest generation could not be read, so the next save gets all parts
	newest, before generation
	sizes          map[uint64]uint64 // sizes of the segments that the backend may have; 0 if unknown
}

// generation is one state of a checkpoint: the live parts, and the number of the segment with their index, or 0 if
// there is none.
type generation struct {
	number uint64
	live   index
}

// NewStore returns a store that uses the given backend.
func NewStore(backend Backend, log zerolog.Logger, reg prometheus.Registerer) *Store {
	return newStore(backend, log, newMetrics(reg))
}

func newStore(backend Backend, log zerolog.Logger, metrics *metrics) *Store {
	return &Store{backend: backend, log: log, metrics: metrics, names: map[string]*history{}}
}

// Names returns the names that begin with prefix and have a checkpoint, sorted.
func (s *Store) Names(prefix string) ([]string, error) { return s.backend.Names(prefix) }

// DamagedError means that a segment exists but is damaged.
type DamagedError struct {
	Where string // location of the segment
	Topic string // topic of the segment; "" if it is a file
	Why   string // what is wrong with it
}

// Error describes the damage and possible remedies.
func (e *DamagedError) Error() string {
	way := "restore a copy, or move all files with this name aside to start with empty state"
	if e.Topic != "" {
		way = FromNothing
	}
	return fmt.Sprintf("checkpoint %s cannot be used: %s; %s (a partition loses its open episodes and resumes at its committed offset; a bank collects a new baseline)", e.Where, e.Why, way)
}

// FromNothing tells operators what to do if the state in a topic cannot be used.
const FromNothing = "stop all instances, set cluster.checkpoints_topic, cluster.units_topic and ingest.kafka.group to new names, and " +
	"restart: policies then collect new baselines from the existing telemetry"

// VersionError means that a checkpoint is intact but has a format that this build cannot read.
type VersionError struct {
	Where string // location of the segment
	Topic string // topic of the segment; "" if it is a file
	Why   string // the segment's version, and the one that this build reads
}

// Error describes the versions and possible remedies.
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
// The index and every part must be exactly what was written. If both are damaged, the error names both. Older
// generations are not tried, because other components have relied on newer state since then.
func (s *Store) Load(name string) (ingest.Parts, error) {
	parts, _, err := s.loadSegments(name)
	return parts, err
}

// recycler is a backend that reuses the memory of segments that are no longer needed.
type recycler interface {
	// Recycle takes a segment that Get returned.
	Recycle(segment []byte)
}

// Lend calls use with the parts that Load would return, and returns its error. Afterwards, the memory of the parts is
// reused for other checkpoints, so use must not retain it. A start with many groups then needs no new memory for each
// checkpoint.
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

// loadSegments is like Load, but also returns the segments that contain the parts.
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
	if top <= 1 { // there is no previous generation
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

// damaged returns a DamagedError for a segment.
func (s *Store) damaged(name string, number uint64, why string) error {
	return &DamagedError{Where: s.backend.Where(name, number), Topic: s.topic, Why: why}
}

// list resets the history to the segments that the backend has for a name.
func (s *Store) list(name string, h *history) error {
	numbers, err := s.backend.Generations(name)
	if err != nil {
		return fmt.Errorf("look for checkpoint %q: %w", name, err)
	}
	h.known, h.newest, h.before, h.lost, h.sizes = true, generation{live: index{}}, generation{}, false, map[uint64]uint64{}
	for _, n := range numbers {
		h.sizes[n] = 0
	}
	return nil
}

// read returns the parts of a generation, and the segments that contain them. The generation becomes the newest of the
// history.
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

// cut adds parts of a segment to into. The parts share the segment's memory.
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

// segment reads a segment that must exist. If it is missing, the error is a *DamagedError.
func (s *Store) segment(name string, number uint64) ([]byte, error) {
	segment, err := s.backend.Get(name, number)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.damaged(name, number, "it is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoint %q: %w", name, err)
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
		if !errors.Is(err, ingest.ErrFenced) { // expected when a partition changes its owner
			s.metrics.failures.WithLabelValues(kindOf(name)).Inc()
		}
		return fmt.Errorf("save checkpoint %q: %w", name, err)
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
		h.lost = true // the segments are kept, because a later read may succeed
		return 0, errors.Join(ingest.ErrPartsLost, err)
	}
	maps.Copy(written, changed)
	// A failed save may have left a segment with the same number, which this one replaces. Numbers have no gaps, because
	// number-1 must identify the previous generation.
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

// Failed counts a checkpoint that was not saved because data that it depends on could not be written.
func (s *Store) Failed(name string) { s.metrics.failures.WithLabelValues(kindOf(name)).Inc() }

// pieceWriter is a backend that can write a segment from several pieces. PutPieces has the contract of Put.
type pieceWriter interface {
	PutPieces(name string, generation uint64, pieces [][]byte) error
}

func (s *Store) put(name string, number uint64, pieces [][]byte) error {
	if w, can := s.backend.(pieceWriter); can {
		return w.PutPieces(name, number, pieces)
	}
	return s.backend.Put(name, number, bytes.Join(pieces, nil))
}

// Forget removes a checkpoint. It empties the checkpoint first, so that after an interruption Load returns either no
// parts or all of them.
func (s *Store) Forget(name string) error {
	h := s.history(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	for range 2 { // so that neither generation needs a segment that is removed first
		h.lost = true
		if _, err := s.save(name, h, nil, nil); err != nil {
			return fmt.Errorf("delete checkpoint %q: %w", name, err)
		}
		s.sweep(name, h)
	}
	for _, n := range slices.Sorted(maps.Keys(h.sizes)) {
		if err := s.backend.Remove(name, n); err != nil {
			return fmt.Errorf("delete checkpoint %q: %w", name, err)
		}
	}
	h.known = false
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names, name)
	return nil
}

// begin makes sure that the history of a name is known. A name that was never loaded starts without parts.
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

// carry returns the live parts that must be written again: those of segments that are mostly dead and, if nothing has
// changed, those of the newest segment, so that the last save has two copies.
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

// sweep removes the segments that neither of the last two generations needs. A failed removal is retried after the next
// save.
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

// kinds returns the kinds of checkpoints, for metrics.
func kinds() []string { return []string{"partition", "bank"} }

// kindOther is the kind of all other names.
const kindOther = "other"

// kindOf returns the first word of a name, such as "partition" for "partition-topic-3". Names of unknown kinds share
// "other", so the number of series is bounded.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, "-")
	if !slices.Contains(kinds(), kind) {
		return kindOther
	}
	return kind
}
