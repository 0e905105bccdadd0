package saved

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// unitsInFrame is the maximum number of units in a frame.
const unitsInFrame = 512

// unitCount is the number of units in the following frames.
type unitCount struct {
	Units int `cbor:"1,keyasint"`
}

// unitFrame is a list of units.
type unitFrame struct {
	Units []*ingest.WireUnit `cbor:"1,keyasint"`
}

// Lists of units used to have the version of the state that contains them: 4 for a partition of the telemetry, 2 for
// one of the units topic.
var (
	countFormat = Format[unitCount]{5, map[byte]Migration[unitCount]{2: bareCount, 4: bareCount}}
	unitsFormat = Format[unitFrame]{5, map[byte]Migration[unitFrame]{2: listedUnits, 4: listedUnits}}
)

// WriteUnits writes units in frames. All positions of a unit must be in one partition.
func WriteUnits(w io.Writer, units []*ingest.Unit) error {
	if err := countFormat.WriteFrame(w, &unitCount{len(units)}); err != nil {
		return err
	}
	for rest := units; len(rest) > 0; {
		n := min(len(rest), unitsInFrame)
		if err := unitsFormat.WriteFrame(w, &unitFrame{Each(rest[:n], ingest.WireUnitOf)}); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// ReadUnits reads the units that WriteUnits wrote. from must end with them.
func ReadUnits(from io.Reader) (units []*ingest.Unit, err error) {
	r := bufio.NewReader(from)
	count, err := countFormat.ReadFrame(r)
	if err != nil {
		return nil, err
	}
	for len(units) < count.Units {
		frame, err := unitsFormat.ReadFrame(r)
		if err != nil {
			return nil, err
		}
		if len(frame.Units) == 0 || len(units)+len(frame.Units) > count.Units {
			return nil, errContradiction
		}
		for _, wire := range frame.Units {
			u, err := liveUnit(wire)
			if err != nil {
				return nil, err
			}
			units = append(units, u)
		}
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, errContradiction
	}
	return units, nil
}

// UnitBatch is a record of the log of units: units of a partition, in the order in which they were produced, and the
// moment (see package order) up to which the partition had been read by then.
type UnitBatch struct {
	Units   []*ingest.Unit
	TS, Run int64
}

// A batch consists of its version and, compressed with S2, its moment, the number of its units, and the units as
// encoded by package ingest. In version 4, units had no labels. In version 3, in addition, each unit was written
// completely. In version 2, in addition, units had no steps. In version 1, in addition, repeated floats took all of
// their bytes.
const batchVersion = 5

// UnitPacker encodes units one by one, and compresses them together as a batch. The zero value is ready to use.
type UnitPacker struct {
	Units    int // number of units in the batch
	sequence ingest.UnitSequence
	plain    []byte // units, starting at batchHead
	packed   []byte
}

// batchHead is the maximum size of the three numbers before the units.
const batchHead = 3 * binary.MaxVarintLen64

// Add adds a unit to the batch. All positions of the unit must be in one partition. Add does not retain its memory.
func (p *UnitPacker) Add(u *ingest.Unit) {
	p.begin()
	p.plain = p.sequence.Append(p.plain, u)
	p.Units++
}

// AddDecision adds a decision to the batch. The result is the same as adding its unit.
func (p *UnitPacker) AddDecision(d *ingest.Decision) {
	p.begin()
	p.plain = p.sequence.AppendDecision(p.plain, d)
	p.Units++
}

func (p *UnitPacker) begin() {
	if p.Units == 0 {
		p.plain = slices.Grow(p.plain[:0], batchHead)[:batchHead]
	}
}

// Len returns the uncompressed size of the batch in bytes, or 0 if it has no units.
func (p *UnitPacker) Len() int { return len(p.plain) }

// Batch returns the compressed batch, which must have units. It is valid until the next call.
func (p *UnitPacker) Batch(ts, run int64) []byte {
	head := binary.AppendVarint(make([]byte, 0, batchHead), ts)
	head = binary.AppendVarint(head, run)
	head = binary.AppendUvarint(head, uint64(p.Units))
	plain := p.plain[batchHead-len(head):]
	copy(plain, head)
	p.packed = slices.Grow(p.packed[:0], 1+s2.MaxEncodedLen(len(plain)))
	p.packed = append(p.packed, batchVersion)
	packed := s2.Encode(p.packed[1:cap(p.packed)], plain)
	return p.packed[:1+len(packed)]
}

// Clear starts the next batch.
func (p *UnitPacker) Clear() {
	p.Units, p.plain = 0, p.plain[:0]
	p.sequence.Reset()
}

// Drop removes the units of a policy from the batch.
func (p *UnitPacker) Drop(policy string) {
	var all ingest.UnitSequence
	rest := slices.Clone(p.plain[min(batchHead, len(p.plain)):])
	p.Clear()
	for len(rest) > 0 {
		var u *ingest.Unit
		var err error
		if u, rest, err = all.Cut(rest); err != nil {
			panic(err) // cannot happen, because Add wrote it
		}
		if u.Group.Policy != policy {
			p.Add(u)
		}
	}
}

// DecodeUnitBatch decodes a batch from UnitPacker.Batch. The result shares no memory with encoded.
func DecodeUnitBatch(encoded []byte) (*UnitBatch, error) {
	if len(encoded) == 0 {
		return nil, errContradiction
	}
	cut := new(ingest.UnitSequence).Cut
	switch encoded[0] {
	case batchVersion:
	case 4:
		cut = ingest.NewUnitSequenceWithoutLabels().Cut
	case 3:
		cut = ingest.CutUnitWithoutLabels
	case 2:
		cut = ingest.CutUnitWithoutSteps
	case 1:
		cut = ingest.CutOldUnit
	default:
		return nil, fmt.Errorf("%w: its format is %d, but this build reads %d; run the build that wrote it", ErrNewer, encoded[0], batchVersion)
	}
	if size, err := s2.DecodedLen(encoded[1:]); err != nil || size > mostUnpacked {
		return nil, errContradiction
	}
	plain, err := s2.Decode(nil, encoded[1:])
	if err != nil {
		return nil, fmt.Errorf("it cannot be decompressed: %w", err)
	}
	b, count := &UnitBatch{}, uint64(0)
	for _, number := range []*int64{&b.TS, &b.Run} {
		n := 0
		if *number, n = binary.Varint(plain); n <= 0 {
			return nil, errContradiction
		}
		plain = plain[n:]
	}
	n := 0
	if count, n = binary.Uvarint(plain); n <= 0 {
		return nil, errContradiction
	}
	for plain = plain[n:]; uint64(len(b.Units)) < count; {
		var u *ingest.Unit
		if u, plain, err = cut(plain); err != nil {
			return nil, err
		}
		b.Units = append(b.Units, u)
	}
	if len(plain) > 0 {
		return nil, errContradiction
	}
	return b, nil
}

func liveUnit(wire *ingest.WireUnit) (*ingest.Unit, error) {
	if wire == nil {
		return nil, errContradiction
	}
	return wire.Unit()
}

var errContradiction = errors.New("it is inconsistent")

// bareCount decodes a count that was encoded as a plain number.
func bareCount(body []byte) (*unitCount, error) {
	c := &unitCount{}
	return c, decodeMode.Unmarshal(body, &c.Units)
}

// listedFrame is a frame whose units are lists of fields, followed by the indices of shadow units.
type listedFrame struct {
	Units   []*listedUnit
	Shadows []int
}

// listedUnit has the fields of a unit in the order in which they were encoded.
//
// It is large because it has a field for each field that a unit had.
type listedUnit struct {
	Group            ingest.Group
	Agent, Episode   string
	End              ingest.End
	Mixed            bool
	Versions         Versions
	StartTS, EndTS   int64
	First, Last, Pos Position
	Ord              int32
	Reading, Run     int64

	Length          int64
	HasReturn       bool
	Return          float64
	Reward          Moments
	RewardQ10       float64
	RewardQ90       float64
	LongestConstant int64
	ConstantReward  float64
	Profile         []float32
	ProfileSteps    int64

	ActionKind       ingest.ActionKind
	MixedActionKinds bool
	Actions          []listedCount
	Numeric          []listedMoments

	Events, Backwards, Duplicates, Late, Abandoned, Unfinished int64
}

type listedCount struct {
	Name   string
	N      int64
	Reward float64
}

type listedMoments struct {
	Signal string
	Moments
	Q10, Q90 float64
}

// listedUnits decodes a frame whose units are lists of fields.
func listedUnits(body []byte) (*unitFrame, error) {
	listed, err := Named[listedFrame](body)
	if err != nil {
		return nil, err
	}
	frame := &unitFrame{Units: make([]*ingest.WireUnit, len(listed.Units))}
	units := make([]*ingest.Unit, len(listed.Units))
	for i, u := range listed.Units {
		if u == nil {
			return nil, errContradiction
		}
		units[i] = u.unit()
	}
	for _, place := range listed.Shadows {
		if place < 0 || place >= len(units) {
			return nil, fmt.Errorf("shadow unit %d does not exist", place)
		}
		units[place].Shadow = true
	}
	for i, u := range units {
		frame.Units[i] = ingest.WireUnitOf(u)
	}
	return frame, nil
}

func (l *listedUnit) unit() *ingest.Unit {
	return &ingest.Unit{
		Group: l.Group, Agent: l.Agent, Episode: l.Episode, End: l.End, Mixed: l.Mixed, Versions: ingest.Versions(l.Versions),
		StartTS: l.StartTS, EndTS: l.EndTS, First: ingest.Position(l.First), Last: ingest.Position(l.Last), Pos: ingest.Position(l.Pos),
		Ord: l.Ord, Reading: l.Reading, Run: l.Run, Length: l.Length, HasReturn: l.HasReturn, Return: l.Return,
		Reward: ingest.Moments(l.Reward), RewardQ10: l.RewardQ10, RewardQ90: l.RewardQ90, LongestConstant: l.LongestConstant,
		ConstantReward: l.ConstantReward, Profile: l.Profile, ProfileSteps: l.ProfileSteps,
		ActionKind: l.ActionKind, MixedActionKinds: l.MixedActionKinds,
		Actions: Each(l.Actions, func(c listedCount) ingest.Count { return ingest.Count{Name: c.Name, N: c.N, Reward: c.Reward} }),
		Numeric: Each(l.Numeric, func(m listedMoments) ingest.NamedMoments {
			return ingest.NamedMoments{Signal: m.Signal, Moments: ingest.Moments(m.Moments), Q10: m.Q10, Q90: m.Q90}
		}),
		Events: l.Events, Backwards: l.Backwards, Duplicates: l.Duplicates, Late: l.Late, Abandoned: l.Abandoned, Unfinished: l.Unfinished,
	}
}
