// Package ingest defines what its subpackages share: events and units, messages and event formats, the states that
// receive them, and the stores for their checkpoints.
package ingest

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"
)

// Position is the position of a record: the partition and offset of its message, and its index inside that message,
// which may contain several records, one per line. In files, Partition is 0, Offset counts all records of the input
// from 0, including refused and skipped ones, and Record is 0 unless a line contains several.
type Position struct {
	Offset    int64
	Partition Partition
	Record    int32
}

// Before reports whether p was read before q. Both must be in the same partition.
func (p Position) Before(q Position) bool {
	if p.Offset != q.Offset {
		return p.Offset < q.Offset
	}
	return p.Record < q.Record
}

// String returns partition/offset, followed by /record if the message held several. The topic is not included.
func (p Position) String() string {
	s := p.Partition.String() + "/" + strconv.FormatInt(p.Offset, 10)
	if p.Record > 0 {
		s += "/" + strconv.Itoa(int(p.Record))
	}
	return s
}

// ActionKind says whether an action is compared by the frequencies of its categories or as numbers.
type ActionKind uint8

// The kinds of actions. Strings, booleans and integers are categories; other numbers and arrays are numeric.
const (
	ActionNone ActionKind = iota
	ActionCategory
	ActionNumeric
)

// Action is what the agent did in a step.
type Action struct {
	Kind     ActionKind
	Category string    // for ActionCategory: the string, "true"/"false", or the integer in base 10
	Values   []float64 // for ActionNumeric: the number, or the components of an array in order; for an integer, its value
	Scalar   bool      // the action was one number and not an array
}

// Prob is a probability, or the density of a numeric action. Known is false if the telemetry has none. P is as logged,
// and may be invalid.
type Prob struct {
	P     float64
	Known bool
}

// Value is a named number, such as one outcome or one component of the observation. X may be NaN or infinite: that is a
// telemetry fault for the bank to detect, not a decode error.
type Value struct {
	Name string
	X    float64
}

// Label is a name and its value.
type Label struct {
	Name, Value string
}

// Versions are the builds that produced an event; "" if the telemetry does not say.
type Versions struct {
	Policy, Env, Reward string
}

// Event is one telemetry record: a step of one agent, or the summary of an episode. Strings and slices are valid only
// until Process returns, except those documented as interned.
//
// It is large because it has a field for each telemetry field. For a new field, also extend memberValue in
// ingest/telemetry/decoder.go, and predictedvalues.go next to it. A number logged with each step becomes a signal
// through a kind in ingest/assemble/signals.go: aggregate it in tally.go, and accept its name in IsSignal
// (detectors/signals/glob.go). Any other field must be added to tally and its wire form, to Unit and WireUnit, and to
// unitWire, Joined and addTo in detectors/blocks; Readings in detectors/stream/quantity.go reads it. Either isPlain
// (assemble/single.go) and isPlainDecision (unitsequence.go) must reject decisions that have the field, or Decision
// (decision.go) must have it too. List the field in cmd/rewardwatch/internal/inspect/gather.go,
// ingest/mapping/fields.go and the Python emitter's checks.py.
type Event struct {
	Pos Position
	// TS is the record's own time in Unix nanoseconds, 0 if it has none.
	TS int64

	Policy   string // interned
	Env      string // interned
	Versions Versions
	Labels   []Label // names interned

	AgentID   string // "" if absent; not interned
	EpisodeID string // "" if absent; not interned
	Step      int64  // -1 if absent

	Action           Action // Category interned
	ActionProb       Prob   // given by the acting policy to the action
	TargetProb       Prob   // given by the accepted policy to the same action
	Reward           float64
	HasReward        bool
	RewardComponents []Value // names interned, as in all Values here
	Observation      []Value // an array's components are named "0", "1", ...
	Outcomes         []Value

	Terminated, Truncated bool

	// HasEpisode marks a record that carries its episode's summary: the return and the length in steps.
	HasEpisode bool
	Return     float64
	Length     int64 // -1 if the summary had none

	// AsRecorded is nil unless the Decoder was asked for it. It stays valid after Process returns.
	AsRecorded *AsRecorded
}

// NextEvent extends dst by an event that is empty but reuses the capacity of its slices.
func NextEvent(dst []Event, pos Position) ([]Event, *Event) {
	if len(dst) < cap(dst) {
		dst = dst[:len(dst)+1]
	} else {
		dst = append(dst, Event{})
	}
	ev := &dst[len(dst)-1]
	*ev = Event{
		Pos: pos, Step: -1, Length: -1,
		Labels: ev.Labels[:0], Action: Action{Values: ev.Action.Values[:0]},
		RewardComponents: ev.RewardComponents[:0], Observation: ev.Observation[:0], Outcomes: ev.Outcomes[:0],
	}
	return dst, ev
}

// State receives the records of one partition, or of the partitions with the same number in several topics; it is a
// Processor or a MessageProcessor. Its methods are not called concurrently. An error stops the service, which then
// replays from the last checkpoint. An error that wraps ErrFenced makes the consumer drop the partition instead.
//
// Snapshot is called between batches. Restore is called before the first batch if there is a checkpoint. The first
// checkpoint of a partition is saved before its first batch. So if Restore is not called, the partition is new, or an
// operator has moved its checkpoint away to read it again.
type State interface {
	// Idle reports that the partition has been read to its end as of at: no older records will arrive from it. It is
	// called after a batch on a busy partition, and about once per fetch wait on a quiet one.
	Idle(ctx context.Context, at time.Time) error
	Snapshot(w io.Writer) error
	Restore(r io.Reader) error
}

// Processor is a State that processes events, in offset order. The events and their memory are valid until Process
// returns.
type Processor interface {
	State
	Process(ctx context.Context, batch []Event) error
}

// Recognizer is a Processor that recognizes redelivered messages. Their events are not processed again.
type Recognizer interface {
	// Seen reports whether a message was seen before, and remembers it until after the next snapshots.
	Seen(m *Message) bool
}

// Shrinking is a State whose snapshot can become smaller even if nothing is read, once its content is durable
// elsewhere.
type Shrinking interface {
	// Shrunk reports whether a snapshot would be smaller than the last one taken or restored.
	Shrunk() bool
}

// Renewing is a State that can restore a snapshot which becomes invalid once the state has received events.
type Renewing interface {
	// Renewed reports whether such a snapshot was restored. If so, nothing is read until a new snapshot is durable.
	Renewed() bool
}

// Durable is a State that keeps data in addition to its snapshots.
type Durable interface {
	// Saved reports that the most recent snapshot is durable: from now on, only it and the previous one may be
	// restored.
	Saved()
}

// Several is a Processor that distinguishes the topics it reads from. Each of its batches is from one topic.
type Several interface {
	// From names the topics by index, in order. It is called before Restore.
	From(topics []int)
	// Reached is called instead of Idle when one of several topics has been read to its end. For a State that does not
	// implement Several, Idle is called once all topics have been read to their ends.
	Reached(ctx context.Context, topic int, at time.Time) error
}

// MessageProcessor is a State that processes whole messages, in offset order. The messages and their memory are valid
// until ProcessMessages returns. Tombstones and transaction markers are skipped, as is anything that looks like a
// marker: six bytes that begin with two zeros. A message above the configured limit stops the consumer.
type MessageProcessor interface {
	State
	ProcessMessages(ctx context.Context, batch []Message) error
}

// Handler provides the State of each partition of a consumer-group generation. For one partition, no methods except
// Ending are called concurrently; Revoke may run for several partitions at once.
type Handler interface {
	// Begin starts a generation. The largest topic has the given number of partitions. Partitions that are not assigned
	// afterwards are read elsewhere, or not at all until the group notices that a member has died.
	Begin(partitions int)
	// Confirm reports that, at the given time, the topic had no more partitions than Begin reported. It is called
	// immediately after Begin, and then about once per second until the generation ends, from any goroutine.
	Confirm(at time.Time)
	// Assign returns the state of a partition, a Processor or a MessageProcessor, before it is restored and receives
	// records. The store holds the partition's checkpoints until Revoke has returned. After an error there is no
	// Revoke.
	Assign(partition int32, store CheckpointStore) (State, error)
	// Ending announces the end of the generation and of all its partitions: a Process call that waits for room must finish
	// its batch and return. Ending is called while partitions still receive records, and returns before their last
	// Snapshot.
	Ending()
	// Revoke releases a partition, after its last batch and its last Snapshot.
	Revoke(partition int32)
}

// Parts contains the state of a checkpoint, or only its changed parts, by part name.
type Parts map[string][]byte

// CheckpointStore keeps checkpoints by name.
//
// Load returns all parts as one save left them. The error is fs.ErrNotExist if there was no save, and any other error
// if the saved data is damaged. If the last save is damaged, Load may return the previous one, but no older one.
//
// Save takes the parts that changed since the store's last save or load, and the names of removed parts; without an
// earlier load, it takes all parts. It returns when they are durable, and does not retain the memory. After an error
// the previous save holds, and the next Save must include the same parts or newer ones; after ErrPartsLost it must
// include all parts. After an empty save, the last two saves contain the same parts, so a fallback loses nothing.
//
// LoadParts returns parts as of the store's last save or load, or an error. It never returns those of another save.
type CheckpointStore interface {
	Load(name string) (Parts, error)
	LoadParts(name string, parts []string) (Parts, error)
	Save(name string, changed Parts, gone []string) error
}

// Stores opens the checkpoint store of a newly assigned partition. owner proves, by committing an offset in the
// generation, that the partition is still this member's. It fails once another generation has begun, and may be called
// until Open returns. A failed Open is repeated until the generation ends. Open may be called for several partitions at
// once.
type Stores interface {
	Open(ctx context.Context, topic string, partition int32, owner func() error) (CheckpointStore, error)
}

// ErrFenced means that a later owner of a partition has taken over its checkpoints: the previous owner can no longer
// save them, and drops the partition.
var ErrFenced = errors.New("the checkpoints belong to a newer owner of the partition")

// ErrPartsLost means that previously saved parts could not be read back: the next save must include all parts.
var ErrPartsLost = errors.New("saved parts cannot be read")
