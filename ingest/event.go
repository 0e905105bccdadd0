// Package ingest reads agent telemetry: events from Kafka and from files, decoded strictly, refused with a reason,
// and handed in offset order to one Processor a partition. It also reads topics of the service's own, in whole messages.
package ingest

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"
)

// Position says where a record stands: the partition and offset of its message, and its index inside that message
// (a message may carry several records, one a line). In files Partition is 0, Offset counts records from 0 over all
// input, refused ones included, and Record is 0.
type Position struct {
	Partition int32
	Offset    int64
	Record    int32
}

// Before reports whether p was read earlier than q. Both must be of one partition.
func (p Position) Before(q Position) bool {
	if p.Offset != q.Offset {
		return p.Offset < q.Offset
	}
	return p.Record < q.Record
}

// String gives partition/offset, followed by /record where the message held several.
func (p Position) String() string {
	s := strconv.Itoa(int(p.Partition)) + "/" + strconv.FormatInt(p.Offset, 10)
	if p.Record > 0 {
		s += "/" + strconv.Itoa(int(p.Record))
	}
	return s
}

// ActionKind says how an action is judged: by the shares of its categories, or as numbers.
type ActionKind uint8

// The kinds of an action. Strings, booleans and integral numbers are categories; other numbers and arrays are numeric.
const (
	ActionNone ActionKind = iota
	ActionCategory
	ActionNumeric
)

// Action is what the agent did in a step.
type Action struct {
	Kind     ActionKind
	Category string    // of ActionCategory: the string, "true"/"false", or the integer in base 10
	Values   []float64 // of ActionNumeric: one number, or the components of an array in order; of an integer: itself
	Scalar   bool      // the action was one number and not an array
}

// Value is a named number, such as one outcome or one component of the observation. X may be NaN or infinite: that is
// a telemetry fault for the bank to find, not a decode error.
type Value struct {
	Name string
	X    float64
}

// Label is a name and its text.
type Label struct {
	Name, Value string
}

// Versions are the builds that produced an event; "" where the telemetry does not say.
type Versions struct {
	Policy, Env, Reward string
}

// Event is one telemetry record: a step of one agent, or the summary of an episode. Strings and slices are valid only
// until the Processor that was given the event returns, except those documented as interned.
type Event struct {
	Pos Position
	// TS is the record's own time in Unix nanoseconds, 0 where it has none.
	TS int64

	Policy   string // interned
	Env      string // interned
	Versions Versions
	Labels   []Label // names interned

	AgentID   string // "" where absent; not interned
	EpisodeID string // "" where absent; not interned
	Step      int64  // -1 where absent

	Action           Action // Category interned
	Reward           float64
	HasReward        bool
	RewardComponents []Value // names interned, as of all Values here
	Observation      []Value // an array's components are named "0", "1", ...
	Outcomes         []Value

	Terminated, Truncated bool

	// HasEpisode marks a record that carries its episode's summary: the return and the length in steps.
	HasEpisode bool
	Return     float64
	Length     int64 // -1 where the summary had none
}

// State is what one partition feeds: a Processor or a MessageProcessor. One goroutine calls its methods, but for those of
// the Handler. An error stops the service, so that it replays from the last checkpoint; one that wraps ErrFenced makes the
// consumer let go of the partition instead.
//
// Snapshot is called between batches, and Restore before the first one where there is a checkpoint. A checkpoint is there
// from before the first batch of a partition on: where Restore is not called, the partition is new, or an operator has
// moved its checkpoint away to have it read anew.
type State interface {
	// Idle says that the partition has been read to where it ended at a time: nothing older is to be expected from it. On
	// a busy partition it comes after a batch, on a quiet one about every fetch wait.
	Idle(ctx context.Context, at time.Time) error
	Snapshot(w io.Writer) error
	Restore(r io.Reader) error
}

// Processor is a State that takes events, in offset order. They and the memory behind them are valid until Process
// returns.
type Processor interface {
	State
	Process(ctx context.Context, batch []Event) error
}

// Message is a whole message of a topic. Its Position has no record.
type Message struct {
	Pos   Position
	Value []byte
}

// MessageProcessor is a State that takes whole messages, in offset order. They and the memory behind them are valid until
// ProcessMessages returns. Tombstones and the markers of transactions are left out, and so is what looks like a marker: six
// bytes that begin with two zeros. A message above the limit of the configuration ends the consumer.
type MessageProcessor interface {
	State
	ProcessMessages(ctx context.Context, batch []Message) error
}

// Handler gives each partition of a consumer-group generation its state. All but Ending are called one after the other
// for one partition; Revoke of several partitions may come at once.
type Handler interface {
	// Begin says that a generation begins, and how many partitions the topic has. Those that are not assigned then are
	// read elsewhere, or by nobody until the group notices that a member has died.
	Begin(partitions int)
	// Assign makes the state of a partition, a Processor or a MessageProcessor, before it is restored and fed. The store
	// has the checkpoints that belong to the partition, until Revoke has returned. After an error there is no Revoke.
	Assign(partition int32, store CheckpointStore) (State, error)
	// Ending says that the generation ends, and with it all its partitions: what waits for room in Process must return,
	// once its batch is finished. It is called while they are still fed, and returns before the first Revoke.
	Ending()
	// Revoke lets go of a partition, after its last batch and its last Snapshot.
	Revoke(partition int32)
}

// Parts is the state of a checkpoint, or of those of its parts that changed, by the names of the parts.
type Parts map[string][]byte

// CheckpointStore keeps checkpoints by name. Load gives all parts as one save left them: fs.ErrNotExist where there was
// none, and another error where there was one but it cannot be trusted. It may go back to the save before the last where
// that one is damaged, never further.
//
// Save is given the parts that changed since the last save or load by this store, and the names of those that are gone;
// without a load before it, all parts. It returns when they are durable, and does not keep the memory. After an error the
// save before holds, and the same parts, or newer ones, must be given again; after ErrPartsLost all parts. A save of
// nothing makes what the last one saved safe from a fallback: both of the last two saves have it then.
//
// LoadParts gives parts as they are in the last save or load by this store, or an error: it never gives those of another.
type CheckpointStore interface {
	Load(name string) (Parts, error)
	LoadParts(name string, parts []string) (Parts, error)
	Save(name string, changed Parts, gone []string) error
}

// Stores gives the store of the checkpoints that belong to a partition which was just assigned. owner proves, by
// committing an offset in the generation, that the partition is still this member's: it fails once another generation has
// begun, and may be called until Open returns. Where Open fails, it is tried again until the generation ends. It may be
// called for several partitions at once.
type Stores interface {
	Open(ctx context.Context, topic string, partition int32, owner func() error) (CheckpointStore, error)
}

// ErrFenced says that a later owner of a partition has taken over its checkpoints: this one may not save them any more,
// and lets go of the partition.
var ErrFenced = errors.New("the checkpoints have been taken over by a later owner of the partition")

// ErrPartsLost says that parts that were saved before could not be read back: the next save must be given all parts.
var ErrPartsLost = errors.New("parts that were saved before cannot be read")
