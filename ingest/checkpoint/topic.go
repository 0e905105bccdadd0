package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// How long the topic may take over a write, all attempts together, and over reading one of its partitions.
const (
	topicWrite = 30 * time.Second
	topicRead  = 5 * time.Minute
)

// recordLog is what a topic needs of Kafka; *ingest.Log is one.
type recordLog interface {
	Partitions(ctx context.Context) (int, error)
	Read(ctx context.Context, partition int, visit func(ingest.LogRecord) error) error
	Append(ctx context.Context, partition int, records ...ingest.LogRecord) error
}

var _ Backend = (*topic)(nil)

// topic is a backend in a compacted topic of Kafka. No setting chooses it yet: it is safe for one owner of a name at a
// time, and nothing keeps a second instance from being another. A segment is cut into chunks, and closed by a manifest that names their number,
// their size and their checksum: without it a segment was never finished, and does not count. No record takes the place
// of another, since every key holds a generation and generations are not used twice: what an owner of old still writes
// stays below what the present one has written.
type topic struct {
	log recordLog

	mu         sync.Mutex
	partitions []map[string]generations // what each partition holds, by name; nil before it is read
}

// generations are the segments of one name.
type generations map[uint64]*topicSegment

// topicSegment is what is known of a segment.
type topicSegment struct {
	manifest *manifest
	chunks   map[int][]byte // by number, as they were read; nil once the name has been written to
	most     int            // its chunks have numbers below
}

// manifest closes a segment.
type manifest struct {
	Format int    `json:"format"`
	Chunks int    `json:"chunks"`
	Size   int    `json:"size"`   // bytes
	Sum    uint32 `json:"crc32c"` // of the whole
}

const (
	topicFormat = 1
	closing     = -1 // the number of the manifest among the chunks
)

// Put implements Backend.
func (t *topic) Put(name string, generation uint64, segment []byte) error {
	partition, held, err := t.open(name)
	if err != nil {
		return err
	}
	var records []ingest.LogRecord
	for chunk := range slices.Chunk(segment, ingest.MaxLogRecord) {
		records = append(records, ingest.LogRecord{Key: chunkKey(name, generation, len(records)), Value: chunk})
	}
	m := &manifest{Format: topicFormat, Chunks: len(records), Size: len(segment), Sum: checksum(segment)}
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing a manifest: %w", err)
	}
	t.mu.Lock()
	for _, s := range held {
		s.chunks = nil // who writes has read what there was
	}
	held[generation] = &topicSegment{manifest: m, most: len(records)} // also where it fails: it is to be removed one day
	t.mu.Unlock()
	return t.append(partition, append(records, ingest.LogRecord{Key: chunkKey(name, generation, closing), Value: text}))
}

func (t *topic) append(partition int, records []ingest.LogRecord) error {
	ctx, cancel := context.WithTimeout(context.Background(), topicWrite)
	defer cancel()
	return t.log.Append(ctx, partition, records...)
}

// Get implements Backend.
func (t *topic) Get(name string, generation uint64) ([]byte, error) {
	_, held, err := t.open(name)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	s := held[generation]
	read := s == nil || s.chunks != nil || s.manifest == nil
	t.mu.Unlock()
	switch {
	case s == nil || s.manifest == nil:
		return nil, fs.ErrNotExist
	case !read:
		if held, err = t.reread(name); err != nil {
			return nil, err
		}
		if s = held[generation]; s == nil || s.manifest == nil {
			return nil, fs.ErrNotExist
		}
	}
	whole, why := s.join()
	if why != "" {
		return nil, &DamagedError{Where: t.Where(name, generation), Why: why}
	}
	return whole, nil
}

// Where implements Backend.
func (t *topic) Where(name string, generation uint64) string {
	return fmt.Sprintf("generation %d of %q in the topic", generation, name)
}

// join puts the chunks together. why is "" only if they are what was written.
func (s *topicSegment) join() (whole []byte, why string) {
	if s.manifest.Format != topicFormat {
		return nil, fmt.Sprintf("its manifest has format %d and this build reads %d", s.manifest.Format, topicFormat)
	}
	for i := range min(s.manifest.Chunks, len(s.chunks)) {
		whole = append(whole, s.chunks[i]...)
	}
	if len(whole) != s.manifest.Size || checksum(whole) != s.manifest.Sum {
		return nil, "its chunks are not what its manifest says"
	}
	return whole, ""
}

// Generations implements Backend. Those that were never finished are left out.
func (t *topic) Generations(name string) ([]uint64, error) {
	_, held, err := t.open(name)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []uint64
	for generation, s := range held {
		if s.manifest != nil {
			out = append(out, generation)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Remove implements Backend: compaction removes the segment, and those before it that were never finished. The manifest
// goes first, so that no manifest is left without its chunks.
func (t *topic) Remove(name string, generation uint64) error {
	partition, held, err := t.open(name)
	if err != nil {
		return err
	}
	t.mu.Lock()
	var records []ingest.LogRecord
	for g, s := range held {
		if g != generation && (g > generation || s.manifest != nil) {
			continue
		}
		for i := closing; i < s.most; i++ {
			records = append(records, ingest.LogRecord{Key: chunkKey(name, g, i)})
		}
		delete(held, g)
	}
	t.mu.Unlock()
	return t.append(partition, records)
}

// Names implements Backend.
func (t *topic) Names(prefix string) ([]string, error) {
	count, err := t.count()
	if err != nil {
		return nil, err
	}
	var out []string
	for partition := range count {
		held, err := t.read(partition)
		if err != nil {
			return nil, err
		}
		t.mu.Lock()
		for name, g := range held {
			if strings.HasPrefix(name, prefix) && slices.ContainsFunc(slices.Collect(maps.Values(g)), (*topicSegment).isFinished) {
				out = append(out, name)
			}
		}
		t.mu.Unlock()
	}
	slices.Sort(out)
	return out, nil
}

func (s *topicSegment) isFinished() bool { return s.manifest != nil }

// count is the number of partitions.
func (t *topic) count() (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.partitions == nil {
		ctx, cancel := context.WithTimeout(context.Background(), topicWrite)
		defer cancel()
		n, err := t.log.Partitions(ctx)
		if err != nil {
			return 0, err
		}
		t.partitions = make([]map[string]generations, n)
	}
	return len(t.partitions), nil
}

// partitionOf is the partition that keeps a name: that of the telemetry partition at its end, if it has one, so that the
// state of a partition of telemetry is found in the partition of the same number.
func partitionOf(name string, count int) int {
	if kindOf(name) == "partition" {
		if n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:]); err == nil && n >= 0 {
			return n % count
		}
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return int(h.Sum32() % uint32(count))
}

// open gives the segments of a name, and the partition that keeps them.
func (t *topic) open(name string) (partition int, held generations, err error) {
	count, err := t.count()
	if err != nil {
		return 0, nil, err
	}
	partition = partitionOf(name, count)
	all, err := t.read(partition)
	if err != nil {
		return 0, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if all[name] == nil {
		all[name] = generations{}
	}
	return partition, all[name], nil
}

// read gives what a partition holds, which is read once.
func (t *topic) read(partition int) (map[string]generations, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.partitions[partition] == nil {
		held, err := t.scan(partition)
		if err != nil {
			return nil, err
		}
		t.partitions[partition] = held
	}
	return t.partitions[partition], nil
}

// reread reads the chunks of a name once more: they were let go of when it was written to.
func (t *topic) reread(name string) (generations, error) {
	held, err := t.scan(partitionOf(name, len(t.partitions)))
	return held[name], err
}

// scan reads a partition.
func (t *topic) scan(partition int) (map[string]generations, error) {
	ctx, cancel := context.WithTimeout(context.Background(), topicRead)
	defer cancel()
	held := map[string]generations{}
	err := t.log.Read(ctx, partition, func(r ingest.LogRecord) error { return fold(held, r) })
	return held, err
}

// fold takes in one record of a partition.
func fold(held map[string]generations, r ingest.LogRecord) error {
	name, generation, chunk, err := parseChunkKey(r.Key)
	if err != nil {
		return fmt.Errorf("offset %d holds no part of a checkpoint: the key %q: %w", r.Offset, r.Key, err)
	}
	if held[name] == nil {
		held[name] = generations{}
	}
	s := held[name][generation]
	if s == nil {
		s = &topicSegment{chunks: map[int][]byte{}}
		held[name][generation] = s
	}
	switch s.most = max(s.most, chunk+1); {
	case len(r.Value) == 0 && chunk == closing:
		s.manifest = nil
	case len(r.Value) == 0:
		delete(s.chunks, chunk)
	case chunk == closing:
		s.manifest = &manifest{}
		if err := json.Unmarshal(r.Value, s.manifest); err != nil {
			s.manifest = &manifest{} // it will not be what the chunks are
		}
	default:
		s.chunks[chunk] = r.Value
	}
	if s.manifest == nil && len(s.chunks) == 0 {
		delete(held[name], generation)
	}
	return nil
}

// chunkKey is the key of a chunk, or of the manifest.
func chunkKey(name string, generation uint64, chunk int) []byte {
	return fmt.Appendf(nil, "%s\x00%016x\x00%d", name, generation, chunk)
}

func parseChunkKey(key []byte) (name string, generation uint64, chunk int, err error) {
	parts := bytes.Split(key, []byte{0})
	if len(parts) < 3 {
		return "", 0, 0, errors.New("it does not have three parts")
	}
	n := len(parts)
	if generation, err = strconv.ParseUint(string(parts[n-2]), 16, 64); err != nil {
		return "", 0, 0, err
	}
	if chunk, err = strconv.Atoi(string(parts[n-1])); err != nil {
		return "", 0, 0, err
	}
	return string(bytes.Join(parts[:n-2], []byte{0})), generation, chunk, nil
}
