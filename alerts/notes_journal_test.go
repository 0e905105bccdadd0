package alerts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// fakeJournal is a journal in memory without an owner. Its zero value is empty.
type fakeJournal struct {
	holds chan struct{} // if not nil, an append waits for it

	mu      sync.Mutex
	values  map[string]string
	appends int
	fails   error
}

func (j *fakeJournal) Append(ctx context.Context, key string, value []byte) error {
	if j.holds != nil {
		select {
		case <-j.holds:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fails != nil {
		return j.fails
	}
	if key == ownerKey {
		return nil
	}
	j.appends++
	if j.values == nil {
		j.values = map[string]string{}
	}
	j.values[key] = string(value)
	if value == nil {
		delete(j.values, key)
	}
	return nil
}

func (j *fakeJournal) Read(take func(key string, value []byte)) {
	for key, value := range j.held() {
		take(key, []byte(value))
	}
}

func (j *fakeJournal) held() map[string]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.values)
}

func (j *fakeJournal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fails = err
}

func ofPolicy(policy string, f finding.Finding) finding.Finding {
	f.Group.Policy = policy
	return f
}

// partitions returns the partition of a policy whose name is its number.
func partitions(policy string) int32 { return int32(policy[0] - '0') }

// When a partition moves, its alerts and notes move too: the old owner sends nothing about them any more, and the new
// owner only sends changes.
func TestAlertsMoveWithTheirPartition(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		moves, stays := &fakeJournal{}, &fakeJournal{}
		am, trackers := &receiver{status: 200}, map[string]*Tracker{"1": NewTracker(), "2": NewTracker()}
		old := startWith(t, NewNotes(partitions), am)
		old.Join(1, moves)
		old.Join(2, stays)
		for policy, b := range trackers {
			old.Update(b.Apply(ofPolicy(policy, drift("return", 100))))
		}
		synctest.Wait()
		if told := am.taken(); len(told) != 2 || len(moves.held()) != 1 || len(stays.held()) != 1 {
			t.Fatalf("%d alerts are told, and noted %v and %v", len(told), moves.held(), stays.held())
		}
		before := moves.held()
		old.Leave(1)

		elsewhere := &receiver{status: 200}
		next := startWith(t, NewNotes(partitions), elsewhere)
		next.Join(1, moves)
		next.Resync(trackers["1"].Incidents(), nil)
		next.Update(trackers["1"].Apply(ofPolicy("1", quiet(150))))
		pass(2 * resendEvery)
		told := elsewhere.taken()
		if len(told) != 1 || told[0].Labels["policy"] != "1" || told[0].EndsAt.After(told[0].at) {
			t.Errorf("the new one tells %+v", told)
		}
		if maps.Equal(before, moves.held()) || len(moves.held()) != 1 {
			t.Errorf("noted before %v, and after %v", before, moves.held())
		}
		old.Update(NewTracker().Apply(ofPolicy("1", drift("reward", 300)))) // of a worker that was slow to stop
		pass(resendEvery)
		for _, p := range am.taken() {
			if p.Labels["policy"] != "2" {
				t.Errorf("policy %s is told after it has left", p.Labels["policy"])
			}
		}
	})
}

// An instance that was suspended while another one took over does not keep alerts alive that may have resolved there,
// even if it does not know yet.
func TestNothingIsToldByAFormerOwner(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		moves := &fakeJournal{}
		am := &receiver{status: 200}
		n := startWith(t, NewNotes(partitions), am)
		n.Join(1, moves)
		n.Join(2, &fakeJournal{})
		trackers := map[string]*Tracker{"1": NewTracker(), "2": NewTracker()}
		for policy, b := range trackers {
			n.Update(b.Apply(ofPolicy(policy, drift("return", 100))))
		}
		pass(time.Second)
		am.taken()
		moves.fail(fmt.Errorf("append: %w", ingest.ErrFenced))
		n.Update(trackers["1"].Apply(ofPolicy("1", drift("reward", 101))))
		pass(2 * resendEvery)
		told := am.taken()
		for _, p := range told {
			if p.Labels["policy"] == "1" {
				t.Errorf("told: %v", p.Labels)
			}
		}
		if len(told) != 2 {
			t.Errorf("what is still its own is told %d times", len(told))
		}
		n.Join(1, &fakeJournal{}) // it comes back
		n.Resync(trackers["1"].Incidents(), nil)
		pass(time.Second)
		if told := am.taken(); len(told) != 1 || told[0].Labels["policy"] != "1" {
			t.Errorf("back again it tells %+v", told)
		}
	})
}

// Alerts are sent even while a journal cannot be written, and the journal is updated later.
func TestJournalThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b, journal := &receiver{status: 200}, NewTracker(), &fakeJournal{fails: errors.New("no broker")}
		n := startWith(t, NewNotes(partitions), am)
		n.Join(1, journal)
		n.Update(b.Apply(ofPolicy("1", drift("return", 100))))
		n.Update(b.Apply(ofPolicy("1", quiet(150))))
		n.Update(b.Apply(ofPolicy("1", drift("return", 200))))
		pass(2 * resendEvery)
		if len(am.taken()) == 0 || len(journal.held()) > 0 {
			t.Errorf("told nothing, or noted %v", journal.held())
		}
		journal.fail(nil)
		pass(resendEvery)
		n.Update(b.Apply(ofPolicy("1", quiet(250))))
		pass(time.Second)
		written := openNoteJournal(journal)
		if len(written.held) == 0 {
			t.Error("what was owed is not written")
		}
		for key, told := range written.held {
			if !told.Resolved {
				t.Errorf("%v is noted to fire", key)
			}
		}
	})
}

// An instance that has lost a partition does not owe its journal any notes.
func TestJournalOfAnother(t *testing.T) {
	journal := &fakeJournal{fails: fmt.Errorf("append: %w", ingest.ErrFenced)}
	j := openNoteJournal(journal)
	if err := j.add(someNote(1, time.Now())); err != nil {
		t.Errorf("it fails: %v", err)
	}
}

// New alerts do not wait for a journal, nor for pushes that an Alertmanager is accepting.
func TestJournalThatHangs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b, journal := &receiver{status: 200}, NewTracker(), &fakeJournal{holds: make(chan struct{})}
		n := startWith(t, NewNotes(partitions), am)
		n.Join(1, journal)
		n.Join(2, &fakeJournal{})
		n.Update(b.Apply(ofPolicy("1", drift("return", 100))))
		synctest.Wait()
		began := time.Now()
		n.Update(b.Apply(ofPolicy("1", drift("reward", 101))))
		n.Update(b.Apply(ofPolicy("1", quiet(150))))
		n.Update(NewTracker().Apply(ofPolicy("2", drift("return", 100))))
		if waited := time.Since(began); waited > 0 {
			t.Errorf("news waited for %s", waited)
		}
		close(journal.holds)
		pass(time.Second)
		if n.unconfirmed() > 0 {
			t.Errorf("%g alerts are untold", n.unconfirmed())
		}
	})
}

// With any number of Alertmanagers, none resolves an alert while the journals cannot be written.
func TestAlertsAreKeptAliveWithoutAJournal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ams, holds := make([]*receiver, 5), make(chan struct{})
		for i := range ams {
			ams[i] = &receiver{status: 200}
		}
		n := startWith(t, NewNotes(partitions), ams...)
		for partition := range int32(2) {
			n.Join(partition, &fakeJournal{holds: holds})
		}
		const alerts = 3 * maxBatch
		for i := range alerts {
			f := ofPolicy(fmt.Sprint(i%2), drift("return", 100))
			f.Group = ingest.NewGroup(f.Group.Policy, ingest.Label{Name: "env", Value: fmt.Sprint(i)})
			n.Update(NewTracker().Apply(f))
		}
		pass(6 * time.Minute)
		for i, am := range ams {
			ends := map[string]time.Time{}
			for _, p := range am.taken() {
				if end, again := ends[p.Labels["incident"]]; again && p.at.After(end) {
					t.Errorf("alertmanager %d was told again %s too late", i, p.at.Sub(end))
				}
				ends[p.Labels["incident"]] = p.EndsAt
			}
			for _, end := range ends {
				if !time.Now().Before(end) {
					t.Errorf("alertmanager %d takes an alert for resolved", i)
				}
			}
			if len(ends) != alerts {
				t.Errorf("alertmanager %d was told of %d alerts", i, len(ends))
			}
		}
		close(holds)
	})
}

// Keeping an alert alive writes nothing, except once a day. Expired notes are removed from the journal.
func TestJournalStaysSmall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b, journal := &receiver{status: 200}, NewTracker(), &fakeJournal{}
		n := startWith(t, NewNotes(partitions), am)
		n.Join(1, journal)
		n.Update(b.Apply(ofPolicy("1", drift("return", 100))))
		n.Update(b.Apply(ofPolicy("1", quiet(150))))
		pass(time.Second)
		n.Update(b.Apply(ofPolicy("1", drift("return", 200))))
		const days = 6
		pass(days * 24 * time.Hour)
		if len(journal.held()) != 1 {
			t.Errorf("the journal holds %v", journal.held())
		}
		n.stop()
		if journal.appends > days+4 {
			t.Errorf("%d values were appended in %d days", journal.appends, days)
		}
		pass(notesKept + time.Second)
		if left := openNoteJournal(journal).held; len(left) > 0 {
			t.Errorf("%v are left of a service that has been away for long", left)
		}
	})
}
