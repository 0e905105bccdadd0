package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/fxamacker/cbor/v2"
)

// A record of the units topic:
//
//	magic (2) | version (1) | kind (1) | CBOR with integer keys | CRC-32C of all before (4, little endian)
//
// Magic, version and checksum stay where they are in every version.
const (
	unitMagic        = "ru"
	unitVersion      = 1
	unitKind         = 'u'
	markKind         = 'm'
	unitHeaderSize   = len(unitMagic) + 2
	unitChecksumSize = 4
	// maxMarkPartitions is more than any topic has: what a mark says of their number becomes memory.
	maxMarkPartitions = 1 << 20
)

// ErrUnitVersion says that a record of the units topic is whole and of a version that this build does not read.
var ErrUnitVersion = errors.New("the record is of another version of the units topic")

// ErrUnitDamaged says that bytes are no record of the units topic as it was written.
var ErrUnitDamaged = errors.New("the record is damaged")

// UnitMark says how far a partition of the telemetry topic has been read. It stands behind all units that the partition
// gave by then.
type UnitMark struct {
	Partition  int32 `cbor:"1,keyasint"`
	Partitions int32 `cbor:"2,keyasint"` // that the telemetry topic has
	TS         int64 `cbor:"3,keyasint"` // largest event time that can be believed, in Unix nanoseconds
	Run        int64 `cbor:"4,keyasint"` // among units of that time, see Unit
	End        int64 `cbor:"5,keyasint"` // when the partition had been read to its end, in Unix nanoseconds; 0 where more was known to be there
	At         int64 `cbor:"6,keyasint"` // when this was written, in Unix nanoseconds
}

// wireUnit is a Unit as it is written. The keys are part of the format. Its positions lie in one partition.
type wireUnit struct {
	Policy    string       `cbor:"1,keyasint"`
	Labels    string       `cbor:"2,keyasint,omitempty"`
	Agent     string       `cbor:"3,keyasint,omitempty"`
	Episode   string       `cbor:"4,keyasint,omitempty"`
	End       End          `cbor:"5,keyasint,omitempty"`
	Mixed     bool         `cbor:"6,keyasint,omitempty"`
	Versions  wireVersions `cbor:"7,keyasint,omitzero"`
	StartTS   int64        `cbor:"8,keyasint,omitempty"`
	EndTS     int64        `cbor:"9,keyasint,omitempty"`
	Partition int32        `cbor:"10,keyasint,omitempty"`
	First     wirePosition `cbor:"11,keyasint"`
	Last      wirePosition `cbor:"12,keyasint"`
	Pos       wirePosition `cbor:"13,keyasint"`
	Ord       int32        `cbor:"14,keyasint,omitempty"`
	Reading   int64        `cbor:"15,keyasint,omitempty"`
	Run       int64        `cbor:"16,keyasint,omitempty"`

	Length          int64       `cbor:"17,keyasint,omitempty"`
	HasReturn       bool        `cbor:"18,keyasint,omitempty"`
	Return          float64     `cbor:"19,keyasint"`
	Reward          wireMoments `cbor:"20,keyasint,omitzero"`
	RewardQ10       float64     `cbor:"21,keyasint"`
	RewardQ90       float64     `cbor:"22,keyasint"`
	LongestConstant int64       `cbor:"23,keyasint,omitempty"`
	ConstantReward  float64     `cbor:"24,keyasint"`
	Profile         []byte      `cbor:"25,keyasint,omitempty"` // float32, little endian
	ProfileSteps    int64       `cbor:"26,keyasint,omitempty"`

	ActionKind       ActionKind    `cbor:"27,keyasint,omitempty"`
	MixedActionKinds bool          `cbor:"28,keyasint,omitempty"`
	Actions          []wireCount   `cbor:"29,keyasint,omitempty"`
	Numeric          []wireNumeric `cbor:"30,keyasint,omitempty"`

	Events     int64 `cbor:"31,keyasint,omitempty"`
	Backwards  int64 `cbor:"32,keyasint,omitempty"`
	Duplicates int64 `cbor:"33,keyasint,omitempty"`
	Abandoned  int64 `cbor:"34,keyasint,omitempty"`
	Shadow     bool  `cbor:"35,keyasint,omitempty"`
}

type wireVersions struct {
	_                   struct{} `cbor:",toarray"`
	Policy, Env, Reward string
}

type wirePosition struct {
	_      struct{} `cbor:",toarray"`
	Offset int64
	Record int32
}

type wireMoments struct {
	_                  struct{} `cbor:",toarray"`
	N, NonFinite       int64
	Mean, M2, Min, Max float64
	Positive, Negative float64
}

type wireCount struct {
	_      struct{} `cbor:",toarray"`
	Name   string
	N      int64
	Reward float64
}

type wireNumeric struct {
	_        struct{} `cbor:",toarray"`
	Signal   string
	Moments  wireMoments
	Q10, Q90 float64
}

// UnitRecords writes and reads the records of the units topic. It may be used by several goroutines.
type UnitRecords struct {
	encode cbor.EncMode
	decode cbor.DecMode
}

// NewUnitRecords makes a codec.
func NewUnitRecords() (*UnitRecords, error) {
	// Numbers take the shortest form that gives them back bit by bit, NaN and infinities included.
	encode, err := cbor.EncOptions{ShortestFloat: cbor.ShortestFloat16, NaNConvert: cbor.NaNConvertNone, InfConvert: cbor.InfConvertNone}.EncMode()
	if err != nil {
		return nil, fmt.Errorf("records of units: %w", err)
	}
	decode, err := cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid, TagsMd: cbor.TagsForbidden}.DecMode()
	if err != nil {
		return nil, fmt.Errorf("records of units: %w", err)
	}
	return &UnitRecords{encode, decode}, nil
}

// Unit writes a unit. Its positions must be in one partition, as those of every unit are.
func (r *UnitRecords) Unit(u *Unit) ([]byte, error) { return r.write(unitKind, wireOf(u)) }

// Mark writes a mark.
func (r *UnitRecords) Mark(m UnitMark) ([]byte, error) { return r.write(markKind, m) }

func (r *UnitRecords) write(kind byte, body any) ([]byte, error) {
	b := bytes.NewBuffer(append(make([]byte, 0, 512), unitMagic...))
	b.WriteByte(unitVersion)
	b.WriteByte(kind)
	if err := r.encode.NewEncoder(b).Encode(body); err != nil {
		return nil, fmt.Errorf("write a record of the units topic: %w", err)
	}
	return binary.LittleEndian.AppendUint32(b.Bytes(), castagnoli(b.Bytes())), nil
}

// Read reads a record: a unit, which shares no memory with it, or a mark. The error is ErrUnitVersion or ErrUnitDamaged.
func (r *UnitRecords) Read(b []byte) (*Unit, *UnitMark, error) {
	end := len(b) - unitChecksumSize
	if end < unitHeaderSize || !bytes.HasPrefix(b, []byte(unitMagic)) {
		return nil, nil, fmt.Errorf("%w: it does not begin as one", ErrUnitDamaged)
	}
	if castagnoli(b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return nil, nil, fmt.Errorf("%w: its checksum does not match", ErrUnitDamaged)
	}
	if version := b[len(unitMagic)]; version != unitVersion {
		return nil, nil, fmt.Errorf("%w: it has version %d, and this build reads version %d; run one build in all instances of the group, "+
			"and read the topic to its end with the old one before the new one takes over", ErrUnitVersion, version, unitVersion)
	}
	body := b[unitHeaderSize:end]
	switch b[unitHeaderSize-1] {
	case unitKind:
		var w wireUnit
		if err := r.decode.Unmarshal(body, &w); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrUnitDamaged, err)
		}
		u, err := w.unit()
		return u, nil, err
	case markKind:
		var m UnitMark
		if err := r.decode.Unmarshal(body, &m); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrUnitDamaged, err)
		}
		return nil, &m, m.check()
	}
	return nil, nil, fmt.Errorf("%w: its kind is %q", ErrUnitDamaged, b[unitHeaderSize-1])
}

func (m *UnitMark) check() error {
	if m.Partition < 0 || m.Partition >= m.Partitions || m.Partitions > maxMarkPartitions {
		return fmt.Errorf("%w: partition %d of %d", ErrUnitDamaged, m.Partition, m.Partitions)
	}
	return nil
}

func wireOf(u *Unit) *wireUnit {
	at := func(p Position) wirePosition { return wirePosition{Offset: p.Offset, Record: p.Record} }
	w := &wireUnit{
		Policy: u.Group.Policy, Labels: u.Group.labels, Agent: u.Agent, Episode: u.Episode, End: u.End, Mixed: u.Mixed,
		Versions: wireVersions{Policy: u.Versions.Policy, Env: u.Versions.Env, Reward: u.Versions.Reward},
		StartTS:  u.StartTS, EndTS: u.EndTS, Partition: u.Pos.Partition, First: at(u.First), Last: at(u.Last), Pos: at(u.Pos),
		Ord: u.Ord, Reading: u.Reading, Run: u.Run, Length: u.Length, HasReturn: u.HasReturn, Return: u.Return,
		Reward: wireMomentsOf(u.Reward), RewardQ10: u.RewardQ10, RewardQ90: u.RewardQ90,
		LongestConstant: u.LongestConstant, ConstantReward: u.ConstantReward, ProfileSteps: u.ProfileSteps,
		ActionKind: u.ActionKind, MixedActionKinds: u.MixedActionKinds,
		Events: u.Events, Backwards: u.Backwards, Duplicates: u.Duplicates, Abandoned: u.Abandoned, Shadow: u.Shadow,
	}
	for _, x := range u.Profile {
		w.Profile = binary.LittleEndian.AppendUint32(w.Profile, math.Float32bits(x))
	}
	for _, a := range u.Actions {
		w.Actions = append(w.Actions, wireCount{Name: a.Name, N: a.N, Reward: a.Reward})
	}
	for _, n := range u.Numeric {
		w.Numeric = append(w.Numeric, wireNumeric{Signal: n.Signal, Moments: wireMomentsOf(n.Moments), Q10: n.Q10, Q90: n.Q90})
	}
	return w
}

// unit is the reverse of wireOf.
func (w *wireUnit) unit() (*Unit, error) {
	if w.End > EndBlock || w.ActionKind > ActionNumeric || w.Partition < 0 || len(w.Profile)%4 != 0 {
		return nil, fmt.Errorf("%w: its values are impossible", ErrUnitDamaged)
	}
	at := func(p wirePosition) Position {
		return Position{Partition: w.Partition, Offset: p.Offset, Record: p.Record}
	}
	u := &Unit{
		Group: Group{Policy: w.Policy, labels: w.Labels}, Agent: w.Agent, Episode: w.Episode, End: w.End, Mixed: w.Mixed,
		Versions: Versions{Policy: w.Versions.Policy, Env: w.Versions.Env, Reward: w.Versions.Reward},
		StartTS:  w.StartTS, EndTS: w.EndTS, First: at(w.First), Last: at(w.Last), Pos: at(w.Pos),
		Ord: w.Ord, Reading: w.Reading, Run: w.Run, Length: w.Length, HasReturn: w.HasReturn, Return: w.Return,
		Reward: w.Reward.moments(), RewardQ10: w.RewardQ10, RewardQ90: w.RewardQ90,
		LongestConstant: w.LongestConstant, ConstantReward: w.ConstantReward, ProfileSteps: w.ProfileSteps,
		ActionKind: w.ActionKind, MixedActionKinds: w.MixedActionKinds,
		Events: w.Events, Backwards: w.Backwards, Duplicates: w.Duplicates, Abandoned: w.Abandoned, Shadow: w.Shadow,
	}
	for rest := w.Profile; len(rest) > 0; rest = rest[4:] {
		u.Profile = append(u.Profile, math.Float32frombits(binary.LittleEndian.Uint32(rest)))
	}
	for _, a := range w.Actions {
		u.Actions = append(u.Actions, Count{Name: a.Name, N: a.N, Reward: a.Reward})
	}
	for _, n := range w.Numeric {
		u.Numeric = append(u.Numeric, NamedMoments{Signal: n.Signal, Moments: n.Moments.moments(), Q10: n.Q10, Q90: n.Q90})
	}
	return u, nil
}

func wireMomentsOf(m Moments) wireMoments {
	return wireMoments{
		N: m.N, NonFinite: m.NonFinite, Mean: m.Mean, M2: m.M2, Min: m.Min, Max: m.Max, Positive: m.Positive, Negative: m.Negative,
	}
}

func (w wireMoments) moments() Moments {
	return Moments{
		N: w.N, NonFinite: w.NonFinite, Mean: w.Mean, M2: w.M2, Min: w.Min, Max: w.Max, Positive: w.Positive, Negative: w.Negative,
	}
}
