package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

// world is a log with several consecutive owners of a scope. Each owner may be suspended at any step, and therefore
// continue long after it has lost the scope. One of them moves at a time.
type world struct {
	*memoryLog
	rng     *rand.Rand
	late    [][]kafkalog.Record // requests without a response, which may still be written
	member  *owner              // owner of the partition according to the group
	owners  []*owner
	faults  bool
	states  int // number of states so far
	confirm int // confirmed saves and notes
}

// owner is a participant with its history. The names of two checkpoints and two notes have histories of the same kind.
type owner struct {
	*world
	yield   func(struct{}) bool
	next    func() (struct{}, bool)
	stop    func()
	crashed bool
	opening bool   // it is taking over the scope
	epoch   uint64 // 0 until it has taken over the scope
	logs    map[string]*lineage
}

// lineage contains the states that an owner found under a name, and those that it tried to save.
type lineage struct {
	found     string
	tried     []string
	confirmed int // number of attempts up to the last success
}

var errCrashed = errors.New("the owner has crashed")

// step lets others move. It fails once the owner has crashed.
func (o *owner) step() error {
	if o.crashed || !o.yield(struct{}{}) {
		o.crashed = true
		return errCrashed
	}
	if o.faults && o.rng.IntN(60) == 0 {
		return errLogFull // a temporary error
	}
	return nil
}

func (o *owner) Read(ctx context.Context, partition int, from, to int64, visit func(kafkalog.Record) error) error {
	if err := o.step(); err != nil {
		return err
	}
	return o.memoryLog.Read(ctx, partition, from, to, visit)
}

// ReadOn needs several responses to reach the end.
func (o *owner) ReadOn(ctx context.Context, partition int, from, _ int64, visit func(kafkalog.Record) error) (int64, error) {
	for {
		if err := o.step(); err != nil {
			return 0, err
		}
		to := o.end
		if o.rng.IntN(2) == 0 {
			to = from + (o.end-from)/2
		}
		if err := o.memoryLog.Read(ctx, partition, from, to, visit); err != nil || to == o.end {
			return to, err
		}
		from = to
	}
}

// AppendFresh retries like a client without a response: a request or its response may be lost, or the request may be
// written later.
func (o *owner) AppendFresh(_ context.Context, _ int, fresh func() []kafkalog.Record) ([]kafkalog.Record, error) {
	for range 3 {
		records := fresh()
		if err := o.step(); errors.Is(err, errCrashed) {
			return nil, err
		}
		fate := 0
		if o.faults {
			fate = o.rng.IntN(12)
		}
		switch fate {
		case 9: // lost
			continue
		case 10: // the answer is lost
			o.write(records)
			continue
		case 11:
			o.late = append(o.late, slices.Clone(records))
			continue
		}
		o.write(records)
		return records, o.after()
	}
	return nil, errLogFull
}

// after is the time between a request and its response.
func (o *owner) after() error {
	if err := o.step(); errors.Is(err, errCrashed) {
		return err
	}
	return nil
}

func (w *world) state() string {
	w.states++
	return fmt.Sprint(w.states)
}

// keep decides whether compaction keeps a tombstone. A topic keeps tombstones long enough for current readers.
func (w *world) keep() bool {
	return w.rng.IntN(2) == 0 || slices.ContainsFunc(w.owners, func(o *owner) bool { return o.opening })
}

// shape returns the parts of a state. All are different, some are long, and some do not exist in every state.
func shape(state string) ingest.Parts {
	p := parts("id", state)
	for _, c := range state {
		p["digit/"+string(c)] = bytes.Repeat([]byte(state+" "), 20)
	}
	return p
}

// unshape returns the state that was loaded, or "" for a mixture.
func unshape(p ingest.Parts) string {
	state := string(p["id"])
	if !maps.EqualFunc(p, shape(state), samePart) {
		return ""
	}
	return state
}

// live runs an owner until it crashes or learns that it has lost the scope.
func (o *owner) live() error {
	held := newLease(o, "state", 0, scope)
	held.chunk, held.giveUp = testChunk, 1+o.rng.IntN(1000)
	o.opening = true
	defer func() { o.opening = false }()
	err := held.begin(context.Background(), func() error {
		if err := o.step(); err != nil {
			return err
		}
		if o.member != o {
			return errors.New("another generation has begun")
		}
		return nil
	})
	if err != nil {
		return err
	}
	logs := map[string]*lineage{"note-x": {}, "note-y": {}}
	for key, text := range held.noteTexts() {
		logs[key].found = text
	}
	s, loaded := openStore(held), map[string]ingest.Parts{}
	for _, name := range []string{"bank-a", "partition-b"} {
		p, err := s.Load(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		logs[name] = &lineage{}
		if err == nil {
			logs[name].found = "mixture"
			if state := unshape(p); state != "" {
				logs[name].found = state
			}
		}
		loaded[name] = p
	}
	o.epoch, o.logs, o.opening = held.epoch, logs, false // opening took no step since it took over the scope
	all := map[string]bool{}
	for {
		names := slices.Sorted(maps.Keys(logs))
		name := names[o.rng.IntN(len(names))]
		state, at := o.state(), logs[name]
		if before, isNote := loaded[name]; isNote || name[0] != 'n' {
			at.tried = append(at.tried, state)
			changed, gone := shape(state), []string(nil)
			for part, data := range before {
				switch now, there := changed[part]; {
				case !there:
					gone = append(gone, part)
				case bytes.Equal(now, data) && !all[name]:
					delete(changed, part)
				}
			}
			if err = s.Save(name, changed, gone); err == nil {
				loaded[name] = shape(state)
			}
			all[name] = errors.Is(err, ingest.ErrPartsLost) || all[name] && err != nil
		} else {
			if o.rng.IntN(4) == 0 {
				state = ""
			}
			at.tried = append(at.tried, state)
			err = held.note(context.Background(), name, []byte(state))
		}
		switch {
		case err == nil:
			at.confirmed = len(at.tried)
			o.confirm++
		case errors.Is(err, ingest.ErrFenced), o.crashed:
			return err
		case !errors.Is(err, errLogFull):
			return err
		}
	}
}

// enter starts a new member, which gets the partition.
func (w *world) enter(t *testing.T) *owner {
	o := &owner{world: w}
	o.next, o.stop = iter.Pull(func(yield func(struct{}) bool) {
		o.yield = yield
		err := o.live()
		if !o.crashed && !errors.Is(err, ingest.ErrFenced) && !errors.Is(err, errLogFull) && o.member == o {
			t.Errorf("an owner ends with %v", err)
		}
	})
	w.member = o
	w.owners = append(w.owners, o)
	return o
}

// check compares the states that each owner found with those of the previous owner.
func (w *world) check(t *testing.T, schedule uint64) {
	t.Helper()
	took := slices.DeleteFunc(slices.Clone(w.owners), func(o *owner) bool { return o.epoch == 0 })
	slices.SortFunc(took, func(a, b *owner) int { return int(a.epoch) - int(b.epoch) })
	for i := 1; i < len(took); i++ {
		if took[i].epoch == took[i-1].epoch {
			t.Fatalf("schedule %d: two owners of epoch %d", schedule, took[i].epoch)
		}
		for name, before := range took[i-1].logs {
			found := took[i].logs[name].found
			allowed := before.tried[max(0, before.confirmed-1):]
			if before.confirmed == 0 {
				allowed = append([]string{before.found}, before.tried...)
			}
			if !slices.Contains(allowed, found) {
				t.Fatalf("schedule %d: the owner of epoch %d finds %q under %s; the one before found %q, tried %q, of which %d up to the last confirmed",
					schedule, took[i].epoch, found, name, before.found, before.tried, before.confirmed)
			}
		}
	}
}

// Owners start, are suspended, resume, lose requests and crash in any order, and the topic is compacted at any time. A
// new owner always finds the last confirmed save of the previous owner, or a later unconfirmed one. It never finds a
// save from after that owner lost the scope, and never a mixture.
func TestLeaseModel(t *testing.T) { leaseModel(t, 100) }

func TestSimLeaseModel(t *testing.T) { leaseModel(t, 700) }

func leaseModel(t *testing.T, schedules uint64) {
	t.Helper()
	took, confirmed := 0, 0
	for schedule := range schedules {
		w := &world{memoryLog: newMemoryLog(), rng: rand.New(rand.NewPCG(schedule, 7)), faults: schedule%4 > 0}
		w.run(t)
		for _, o := range w.owners {
			o.stop()
		}
		w.check(t, schedule)
		if t.Failed() {
			t.Fatalf("in schedule %d", schedule)
		}
		for _, o := range w.owners {
			if o.epoch > 0 {
				took++
			}
		}
		confirmed += w.confirm
	}
	t.Logf("%d owners, %d confirmed writes", took, confirmed)
	if took < int(schedules)*3 || confirmed < took {
		t.Error("hardly anything has happened")
	}
}

// run moves the world, and ends with undisturbed owners.
func (w *world) run(t *testing.T) {
	sleepy := 1 + w.rng.IntN(30)
	for range 400 + w.rng.IntN(400) {
		awake := slices.DeleteFunc(slices.Clone(w.owners), func(o *owner) bool { return o.stop == nil })
		switch event := w.rng.IntN(100); {
		case len(w.owners) == 0 || event < 2 && len(w.owners) < 8:
			w.enter(t)
		case event < 3:
			o := w.owners[w.rng.IntN(len(w.owners))]
			o.crashed = true
			o.stop()
		case event < 6:
			w.compact(w.rng.Int64N(w.end+1), w.keep)
		case event < 8 && len(w.late) > 0:
			i := w.rng.IntN(len(w.late))
			w.write(w.late[i])
			w.late = slices.Delete(w.late, i, i+1)
		default:
			o := awake[w.rng.IntN(len(awake))]
			if o != w.member && w.rng.IntN(sleepy) > 0 {
				o = w.member // owners that have lost the partition are suspended for a long time
			}
			o.next()
		}
	}
	w.faults = false
	for range 3 {
		o := w.enter(t)
		for range 60 {
			if _, lives := o.next(); !lives {
				break
			}
		}
		if o.epoch == 0 {
			t.Error("the last owners cannot take over")
		}
		w.compact(w.end, w.keep)
	}
}
