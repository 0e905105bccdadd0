package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"strconv"
)

// statePart is the one part of a partition's checkpoint.
const statePart = "state"

// The state of a partition, integers little endian:
//
//	magic (8) | partition (4) | next (8) | offset of the mark (8) | checksum of the mark (4) | last event time (8) |
//	length of the topic (2) | topic | snapshot of the processor
const (
	partitionMagic      = "rwpart1\n"
	partitionHeaderSize = len(partitionMagic) + 4 + 8 + 8 + 4 + 8 + 2
)

// mark is what is remembered of the last message that was read. A partition that holds another one at its offset is
// not the one that was read.
type mark struct {
	offset int64 // unknown before the first message
	sum    uint32
}

// castagnoli is the CRC-32C of a message.
func castagnoli(value []byte) uint32 {
	return crc32.Checksum(value, crc32.MakeTable(crc32.Castagnoli))
}

// position is where a partition stands.
type position struct {
	topic     string
	partition int32
	next      int64
	mark      mark
	eventTS   int64 // Unix nanoseconds of the last event with a time, 0 before the first
}

// PartitionCheckpoint is the name under which the state of a partition is kept.
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

// cutPosition reads what append wrote and gives the rest.
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

// restore takes up the checkpoint where there is one, else the position that the group committed.
func (p *partition) restore() error {
	saved, err := p.store.Load(p.name)
	if errors.Is(err, fs.ErrNotExist) {
		if p.committed >= 0 {
			p.log.Warn().Int64("next", p.committed).Msg("No checkpoint, starting without state at the committed offset")
		}
		p.setNext(p.committed)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCheckpointDamaged, p.name, err)
	}
	at, snapshot, err := cutPosition(saved[statePart])
	if err == nil && (at.topic != p.c.cfg.Topic || at.partition != p.id) {
		err = fmt.Errorf("it is of partition %d of %s", at.partition, at.topic)
	}
	if err == nil {
		err = p.guarded(func() error { return p.state.Restore(bytes.NewReader(snapshot)) })
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCheckpointDamaged, p.name, err)
	}
	p.mark, p.saved = at.mark, at.next
	p.progress.eventTS.Store(at.eventTS)
	p.setNext(at.next)
	p.log.Info().Int64("next", p.next).Int64("committed", p.committed).Msg("Restored from the checkpoint")
	return nil
}

// checkpoint saves the state where it has changed, and then commits. Where it cannot be saved, nothing is committed:
// the checkpoint before still holds, and the next one is tried in its time. Its error is a panic of the state, or ErrFenced.
func (p *partition) checkpoint() error {
	now := p.c.board.now()
	p.tried = now
	if p.next < 0 {
		return nil
	}
	if p.next != p.saved {
		err := p.save()
		switch {
		case errors.Is(err, ErrProcessor), errors.Is(err, ErrFenced):
			return err
		case err != nil && p.saved == unknown:
			p.log.Error().Err(err).Int64("next", p.next).Msg("Saving the first checkpoint failed, nothing is read before it is there")
			return nil
		case err != nil:
			p.log.Error().Err(err).Int64("next", p.next).Msg("Saving the checkpoint failed, the one before still holds")
			return nil
		}
		p.saved = p.next
	}
	p.progress.saved.Store(now.UnixNano())
	p.commit()
	return nil
}

func (p *partition) save() error {
	p.image.Reset()
	at := position{
		topic: p.c.cfg.Topic, partition: p.id, next: p.next, mark: p.mark, eventTS: p.progress.eventTS.Load(),
	}
	p.image.Write(at.append(nil))
	p.progress.busy.Store(true)
	defer p.progress.busy.Store(false)
	if err := p.guarded(func() error { return p.state.Snapshot(&p.image) }); err != nil {
		return fmt.Errorf("taking a snapshot: %w", err)
	}
	return p.store.Save(p.name, Parts{statePart: p.image.Bytes()}, nil)
}

// commit tells the group where the partition stands, for others to see: what counts is the checkpoint. It never goes
// back. In a generation that has ended it fails, which is no loss.
func (p *partition) commit() {
	if p.next <= p.committed {
		return
	}
	err := p.generation.CommitOffsets(map[string]map[int]int64{p.c.cfg.Topic: {int(p.id): p.next}})
	if err != nil {
		p.log.Debug().Err(err).Int64("next", p.next).Msg("Committing failed, the checkpoint holds")
		return
	}
	p.committed = p.next
}
