// Package ingest reads agent telemetry: events from Kafka and from files, decoded strictly, refused with a reason,
// and handed in offset order to one Processor a partition.
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

// Processor owns the state fed by one partition. Process is called in offset order by one goroutine; events and the
// memory behind them are valid until it returns. An error from Process stops the service, so that it replays from the
// last checkpoint. Snapshot is called between batches by the same goroutine, and Restore before the first one where
// there is a checkpoint. A checkpoint is there from before the first batch of a partition on: where Restore is not
// called, the partition is new, or an operator has moved its checkpoint away to have it read anew.
type Processor interface {
	Process(ctx context.Context, batch []Event) error
	// Idle says that the partition has been read to where it ended at a time: nothing older is to be expected from it. On
	// a busy partition it comes after a batch, on a quiet one about every fetch wait.
	Idle(ctx context.Context, at time.Time) error
	Snapshot(w io.Writer) error
	Restore(r io.Reader) error
}

// Handler gives each partition of a consumer-group generation its processor.
type Handler interface {
	// Begin says that a generation begins, and how many partitions the topic has. Those that are not assigned then are
	// read elsewhere, or by nobody until the group notices that a member has died.
	Begin(partitions int)
	// Assign makes the processor of a partition before it is restored and fed.
	Assign(partition int32) (Processor, error)
	// Revoke lets go of it, after its last Process and its last Snapshot have returned.
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
type CheckpointStore interface {
	Load(name string) (Parts, error)
	Save(name string, changed Parts, gone []string) error
}

// ErrPartsLost says that parts that were saved before have been found damaged: the next save must be given all parts.
var ErrPartsLost = errors.New("parts that were saved before are damaged")
