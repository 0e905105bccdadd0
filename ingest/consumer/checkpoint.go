package consumer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// statePart is the first part of a partition's checkpoint; see imagePart for the others.
const statePart = "state"

// The state of a partition, integers little endian:
//
//	magic (8) | partition (4) | next (8) | offset of the mark (8) | checksum of the mark (4) | last event time (8) |
//	length of the topic (2) | topic | snapshot of the processor
const (
	partitionMagic      = "rwpart1\n"
	partitionHeaderSize = len(partitionMagic) + 4 + 8 + 8 + 4 + 8 + 2
)

// mark identifies the last message that was read. A partition with another message at that offset is not the partition
// that was read.
type mark struct {
	offset int64 // unknown before the first message
	sum    uint32
}

// position is how far a partition has been read.
type position struct {
	topic     string
	partition int32
	next      int64
	mark      mark
	eventTS   int64 // Unix nanoseconds of the last event with a time, 0 before the first
}

// PartitionCheckpoint returns the name of the checkpoint that holds a partition's state.
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

var errNotAPosition = errors.New("it does not begin like the checkpoint of a partition")

// cutPosition reads what append wrote and returns the rest.
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
	if p.next < 0 || p.next == math.MaxInt64 || p.mark.offset < unknown || p.mark.offset >= p.next {
		return position{}, nil, fmt.Errorf("next offset %d and last offset %d are impossible", p.next, p.mark.offset)
	}
	return p, b[length:], nil
}

// restore restores the checkpoint if there is one, and otherwise starts at the offset that the group committed.
func (p *partition) restore() error {
	saved, err := p.store.Load(p.name)
	if errors.Is(err, fs.ErrNotExist) {
		if p.committed >= 0 {
			p.log.Warn().Int64("next", p.committed).Msg("no checkpoint, starting without state at the committed offset")
		}
		p.setNext(p.committed)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCheckpointDamaged, p.name, err)
	}
	p.parts = imageParts(saved)
	at, snapshot, err := cutPosition(saved[statePart])
	if err == nil && (at.topic != p.c.cfg.Topic || at.partition != p.id) {
		err = fmt.Errorf("it is of partition %d of %s", at.partition, at.topic)
	}
	if err == nil {
		err = p.guarded(func() error { return p.state.Restore(&imageReader{parts: saved, next: 1, left: snapshot}) })
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCheckpointDamaged, p.name, err)
	}
	p.mark, p.saved = at.mark, at.next
	p.progress.eventTS.Store(at.eventTS)
	p.setNext(at.next)
	p.log.Info().Int64("next", p.next).Int64("committed", p.committed).Msg("restored from the checkpoint")
	return nil
}

// checkpoint saves the state if it has changed, and then commits. If the save fails, nothing is committed: the previous
// checkpoint holds, and the next one is tried when its time comes. The error is a panic of the state, or ErrFenced.
func (p *partition) checkpoint() error {
	now := p.c.board.now()
	p.tried = now
	if p.next < 0 {
		return nil
	}
	if slim := p.next == p.saved && p.shrunk(); p.next != p.saved || slim {
		err := p.save()
		if err == nil && slim {
			err = p.save() // else the large state would be kept as the previous one
		}
		switch {
		case errors.Is(err, ErrProcessor), errors.Is(err, ingest.ErrFenced):
			return err
		case err != nil && p.saved == unknown:
			p.log.Error().Err(err).Int64("next", p.next).Msg("saving the first checkpoint failed, reading waits for it")
			return nil
		case err != nil:
			p.log.Error().Err(err).Int64("next", p.next).Msg("saving a checkpoint failed, the previous one still holds")
			return nil
		}
		p.saved = p.next
	}
	p.progress.saved.Store(now.UnixNano())
	p.commit()
	return nil
}

// shrunk reports whether the saved state would be smaller than the last save, although nothing was read.
func (p *partition) shrunk() bool {
	s, can := p.state.(ingest.Shrinking)
	return can && s.Shrunk()
}

func (p *partition) save() error {
	written := image{turn: &p.c.large}
	defer written.done()
	at := position{
		topic: p.c.cfg.Topic, partition: p.id, next: p.next, mark: p.mark, eventTS: p.progress.eventTS.Load(),
	}
	written.Write(at.append(nil)) //nolint:errcheck // it does not fail
	p.progress.busy.Store(true)
	defer p.progress.busy.Store(false)
	if err := p.guarded(func() error { return p.state.Snapshot(&written) }); err != nil {
		return fmt.Errorf("taking a snapshot: %w", err)
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
	return nil
}

// commit commits the partition's position to the group. It only informs: the checkpoint determines where reading
// resumes. The position never decreases. In a generation that has ended the commit fails, which loses nothing.
func (p *partition) commit() {
	if p.next <= p.committed {
		return
	}
	err := p.generation.CommitOffsets(map[string]map[int]int64{p.c.cfg.Topic: {int(p.id): p.next}})
	if err != nil {
		p.log.Debug().Err(err).Int64("next", p.next).Msg("committing failed, the checkpoint holds")
		return
	}
	p.committed = p.next
}
