package consumer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// statePart is the first part of a partition's checkpoint. imagePart returns the names of the others.
const statePart = "state"

// The state of a partition, integers little endian:
//
//	magic (8) | partition (4) | next (8) | offset of the mark (8) | checksum of the mark (4) | last event time (8) |
//	length of the topic (2) | topic | snapshot of the processor
//
// With several topics, another magic is followed by their number (2) and, for each of them in the order of their
// indexes, the fields above without the snapshot. The snapshot is at the end. A next of -1 means that the topic has not
// been read.
const (
	partitionMagic      = "rwpart1\n"
	severalMagic        = "rwpart2\n"
	partitionHeaderSize = len(partitionMagic) + 4 + 8 + 8 + 4 + 8 + 2
)

// mark identifies the last message of the last record batch of which all messages were read. If a partition has a different
// message at that offset, the topic was recreated.
type mark struct {
	offset int64 // unknown before the first message
	sum    uint32
}

// position is the point up to which a partition has been read.
type position struct {
	topic     string
	partition int32
	next      int64
	mark      mark
	eventTS   int64 // time of the last event that has one, in Unix nanoseconds; 0 before the first
}

// PartitionCheckpoint returns the name of the checkpoint of a partition.
func PartitionCheckpoint(topic string, partition int32) string {
	return "partition-" + topic + "-" + strconv.Itoa(int(partition))
}

func (p position) append(b []byte) []byte {
	b = append(b, partitionMagic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(p.partition))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.next))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.mark.offset))
	b = binary.LittleEndian.AppendUint32(b, p.mark.sum)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.eventTS))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(p.topic)))
	return append(b, p.topic...)
}

var errNotAPosition = errors.New("it is not a partition checkpoint")

// cutPosition reads the position at the beginning of b, which append wrote, and returns the rest.
func cutPosition(b []byte) (p position, snapshot []byte, err error) {
	if len(b) < partitionHeaderSize || !bytes.HasPrefix(b, []byte(partitionMagic)) {
		return position{}, nil, errNotAPosition
	}
	b = b[len(partitionMagic):]
	p.partition = int32(binary.LittleEndian.Uint32(b))
	p.next = int64(binary.LittleEndian.Uint64(b[4:]))
	p.mark.offset = int64(binary.LittleEndian.Uint64(b[12:]))
	p.mark.sum = binary.LittleEndian.Uint32(b[20:])
	p.eventTS = int64(binary.LittleEndian.Uint64(b[24:]))
	length := int(binary.LittleEndian.Uint16(b[32:]))
	b = b[34:]
	if len(b) < length {
		return position{}, nil, errNotAPosition
	}
	p.topic = string(b[:length])
	if p.next == unknown && p.mark.offset == unknown {
		return p, b[length:], nil
	}
	if p.next < 0 || p.next == math.MaxInt64 || p.mark.offset < unknown || p.mark.offset >= p.next {
		return position{}, nil, fmt.Errorf("invalid offsets: next %d, last %d", p.next, p.mark.offset)
	}
	return p, b[length:], nil
}

// cutPositions reads the positions at the beginning of a checkpoint, by index of the topic, and returns the rest.
func cutPositions(b []byte) (all []position, snapshot []byte, err error) {
	rest, several := bytes.CutPrefix(b, []byte(severalMagic))
	if !several {
		p, snapshot, err := cutPosition(b)
		if err == nil && p.next < 0 {
			err = errNotAPosition
		}
		return []position{p}, snapshot, err
	}
	if len(rest) < 2 {
		return nil, nil, errNotAPosition
	}
	count := int(binary.LittleEndian.Uint16(rest))
	if rest = rest[2:]; count < 2 || count > ingest.MaxTopics {
		return nil, nil, errNotAPosition
	}
	for range count {
		var p position
		if p, rest, err = cutPosition(rest); err != nil {
			return nil, nil, err
		}
		all = append(all, p)
	}
	return all, rest, nil
}

// appendPositions is the inverse of cutPositions.
func appendPositions(b []byte, all []position) []byte {
	if len(all) > 1 {
		b = append(b, severalMagic...)
		b = binary.LittleEndian.AppendUint16(b, uint16(len(all)))
	}
	for _, p := range all {
		b = p.append(b)
	}
	return b
}

// restore restores the checkpoint if there is one. Otherwise, it starts at the offsets that the group committed.
func (p *partition) restore(ctx context.Context) error {
	saved, err := p.store.Load(p.name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := p.refuseReordered(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		for _, r := range p.readers {
			r.startAtCommitted()
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCheckpointDamaged, p.name, err)
	}
	p.parts = imageParts(saved)
	at, snapshot, err := cutPositions(saved[statePart])
	if err == nil {
		err = p.fits(at)
	}
	if errors.Is(err, ErrOtherTopics) {
		return err
	}
	if err == nil {
		err = p.guarded(func() error { return p.state.Restore(&imageReader{parts: saved, next: 1, left: snapshot}) })
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCheckpointDamaged, p.name, err)
	}
	p.away = at
	if s, can := p.state.(ingest.Renewing); can {
		p.twice = s.Renewed()
	}
	for _, r := range p.readers {
		if r.topic.index < len(at) && at[r.topic.index].next >= 0 {
			r.resume(at[r.topic.index])
		} else {
			r.startAtCommitted()
		}
	}
	return nil
}

// ErrOtherTopics means that the topics of a checkpoint are not the configured ones, or are in another order. It is then
// unknown which topic a position in the state refers to.
var ErrOtherTopics = errors.New("the checkpoint does not belong to the configured topics")

// fits checks that the checkpoint belongs to this partition, and that its topics are the first configured ones.
func (p *partition) fits(at []position) error {
	var names []string
	fits := len(at) <= len(p.c.topics)
	for i, saved := range at {
		if saved.partition != p.id {
			return fmt.Errorf("it belongs to partition %d of topic %s", saved.partition, saved.topic)
		}
		names = append(names, saved.topic)
		fits = fits && p.c.topics[i].Name == saved.topic
	}
	if fits {
		return nil
	}
	if len(at) == 1 && len(p.c.topics) == 1 {
		return fmt.Errorf("it belongs to partition %d of topic %s", at[0].partition, at[0].topic)
	}
	return fmt.Errorf("%w: %s has %s, but %s are configured; list the topics in their previous order and add new ones at the end. To read other topics, move the checkpoints of all partitions aside: reading then continues at the committed offsets of group %s, and open episodes are lost", ErrOtherTopics, p.name, strings.Join(names, ", "), strings.Join(p.c.names(), ", "), p.c.cfg.Group)
}

// refuseReordered returns an error if there is a checkpoint under the name of another topic, which was the first topic
// when it was saved.
func (p *partition) refuseReordered(ctx context.Context) error {
	for _, t := range p.c.topics[1:] {
		store, err := p.openFor(ctx, t.Name)
		if err != nil || store == nil {
			return err
		}
		name := PartitionCheckpoint(t.Name, p.id)
		if _, err := store.Load(name); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s was the first topic, but %s are configured: list it first, or move its checkpoints %s aside",
				ErrOtherTopics, t.Name, strings.Join(p.c.names(), ", "), name)
		}
	}
	return nil
}

// startAtCommitted starts at the offset that the group committed, or at the start of the log.
func (p *reader) startAtCommitted() {
	if p.committed >= 0 {
		p.log.Warn().Int64("next", p.committed).Msg("no checkpoint found, starting without state at the committed offset")
	}
	p.setNext(p.committed)
}

// resume starts at the end of a checkpoint. A checkpoint that must be replaced before anything is read does not count
// as saved.
func (p *reader) resume(at position) {
	p.mark, p.last = at.mark, at.mark
	if !p.twice {
		p.saved = at.next
	}
	p.progress.eventTS.Store(at.eventTS)
	p.setNext(at.next)
	p.log.Info().Int64("next", p.next).Int64("committed", p.committed).Msg("restored from the checkpoint")
}

// due reports whether the checkpoint interval has passed.
func (p *partition) due() bool {
	p.turn.Lock()
	defer p.turn.Unlock()
	return !p.broken && p.c.now().Sub(p.tried) >= p.c.opts.CheckpointEvery
}

// checkpoint saves the state if it has changed, and then commits. If the save fails, nothing is committed. The previous
// checkpoint remains valid, and the next attempt is made after the usual interval. The error is a panic of the state or
// ErrFenced.
func (p *partition) checkpoint() error {
	p.turn.Lock()
	defer p.turn.Unlock()
	now := p.c.now()
	p.tried = now
	moved, first := p.unsaved()
	if p.broken || p.isUnread() {
		return nil
	}
	p.twice = p.twice || !moved && p.shrunk()
	if moved || p.twice {
		err := p.save()
		if err == nil && p.twice {
			err = p.save()
		}
		switch {
		case errors.Is(err, ErrProcessor), errors.Is(err, ingest.ErrFenced):
			p.broken = true
			return err
		case err != nil && first:
			p.log.Error().Err(err).Msg("failed to save the first checkpoint; reading is paused")
			return nil
		case err != nil:
			p.log.Error().Err(err).Msg("failed to save a checkpoint; the previous one remains valid")
			return nil
		}
		p.twice = false
	}
	for _, r := range p.readers {
		if r.next >= 0 {
			r.saved = r.next
			r.progress.saved.Store(now.UnixNano())
		}
	}
	p.commit()
	return nil
}

// unsaved reports whether a reader has advanced since the last checkpoint, and whether a reader was never part of a
// checkpoint.
func (p *partition) unsaved() (moved, first bool) {
	for _, r := range p.readers {
		if r.next >= 0 {
			moved, first = moved || r.next != r.saved, first || r.saved == unknown
		}
	}
	return moved, first
}

// isUnread reports whether no reader knows where to begin yet.
func (p *partition) isUnread() bool {
	return !slices.ContainsFunc(p.readers, func(r *reader) bool { return r.next >= 0 })
}

// shrunk reports whether the state would be smaller than its last snapshot, even though nothing was read.
func (p *partition) shrunk() bool {
	s, can := p.state.(ingest.Shrinking)
	return can && s.Shrunk()
}

// failureCounter is a store that counts checkpoints that failed before they reached it.
type failureCounter interface{ Failed(name string) }

func (p *partition) save() error {
	written := image{turn: &p.c.large}
	defer written.done()
	written.Write(appendPositions(nil, p.positions())) //nolint:errcheck // it does not fail
	if err := p.guarded(func() error { return p.state.Snapshot(&written) }); err != nil {
		if store, can := p.store.(failureCounter); can {
			store.Failed(p.name)
		}
		return fmt.Errorf("take a snapshot: %w", err)
	}
	var gone []string
	for n := len(written.blocks); n < p.parts; n++ {
		gone = append(gone, imagePart(n))
	}
	p.parts = max(p.parts, len(written.blocks)) // a failed save may have left them
	if err := p.store.Save(p.name, written.parts(), gone); err != nil {
		return err
	}
	p.parts = len(written.blocks)
	if s, can := p.state.(ingest.Durable); can {
		s.Saved()
	}
	return nil
}

// positions returns the positions in all topics, by index of the topic.
func (p *partition) positions() []position {
	all := make([]position, len(p.c.topics))
	for i, t := range p.c.topics {
		all[i] = position{topic: t.Name, partition: p.id, next: unknown, mark: mark{offset: unknown}}
		if i < len(p.away) {
			all[i] = p.away[i]
		}
	}
	for _, r := range p.readers {
		at := &all[r.topic.index]
		at.next, at.mark, at.eventTS = max(r.next, unknown), r.mark, r.progress.eventTS.Load()
	}
	return all
}

// commit commits the positions to the group. They are only informative, because the checkpoint determines where reading
// resumes. A committed position never decreases. If the generation has ended, the commit fails, but nothing is lost.
func (p *partition) commit() {
	offsets := map[string]map[int]int64{}
	for _, r := range p.readers {
		if r.next > r.committed && r.next >= 0 {
			offsets[r.topic.Name] = map[int]int64{int(p.id): r.next}
		}
	}
	if len(offsets) == 0 {
		return
	}
	if err := p.generation.CommitOffsets(offsets); err != nil {
		p.log.Debug().Err(err).Msg("failed to commit the offset; the checkpoint remains valid")
		return
	}
	for _, r := range p.readers {
		if _, done := offsets[r.topic.Name]; done {
			r.committed = r.next
		}
	}
}
