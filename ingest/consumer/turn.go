package consumer

import (
	"context"
	"sync"
)

// phase is the activity of a reader, as far as it matters to the other readers of its partition.
type phase uint8

const (
	fetching phase = iota // there are or may be more messages to read
	holding               // has a batch for the state
	resting               // has read its partition to the end
	away                  // has no connection
)

// course describes how far a reader has come by Kafka timestamps. head is the largest timestamp so far, in Unix
// nanoseconds, so it never decreases.
type course struct {
	phase phase
	head  int64 // up to the first message of the batch, or up to the last message processed
}

// turns is the lock that readers take to process their batches one after the other. It is shared by the partitions with
// the same number or, if all partitions are merged, by all partitions.
type turns struct {
	sync.Mutex
	passed  *sync.Cond // signals that a reader may not have to wait any longer
	readers []*reader
}

func newTurns() *turns {
	t := &turns{}
	t.passed = sync.NewCond(t)
	return t
}

// await takes the turn for the reader's batch, unless ctx ends first. Batches of several topics are processed in the
// order of the Kafka timestamps of their messages, as far as these are known, so that old messages of all topics are
// read in parallel. No reader waits for a topic that has been read to its end. Nor does any reader wait for a topic
// that cannot be read, unless Options.Joined is set.
//
// With Options.Merged, this applies to all partitions, not only to those with the same number.
//
// The units that leave a state must not depend on this order. It differs after a restart if messages have arrived in
// the meantime that are older than those of other topics.
func (p *reader) await(ctx context.Context) (taken bool) {
	p.turn.Lock()
	if len(p.turn.readers) == 1 {
		return true // a batch is finished even if the generation ends
	}
	p.move(course{holding, p.head})
	for ctx.Err() == nil && (p.broken || p.isHeld(p.head)) {
		p.turn.passed.Wait()
	}
	if ctx.Err() != nil {
		p.turn.Unlock()
		return false
	}
	return true
}

// move records the activity of the reader. The caller must hold the turn.
func (p *reader) move(to course) {
	p.course = to
	p.turn.passed.Broadcast()
}

// leave lets the other readers continue without this one.
func (p *reader) leave() {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.move(course{away, p.reached})
}

// isHeld reports whether another reader has a message older than head, or may still receive one.
func (p *reader) isHeld(head int64) bool {
	for _, o := range p.turn.readers {
		switch at := o.course; {
		case o == p, at.phase == resting, at.phase == away && !p.c.opts.Joined:
		case at.phase != holding && at.head <= head:
			return true
		case at.phase == holding && (at.head < head || at.head == head && o.topic.at(o.id) < p.topic.at(p.id)):
			return true
		}
	}
	return false
}

// splits reports whether the current batch must be processed before a message with the timestamp head, because another
// reader has an older one.
func (p *reader) splits(head int64) bool {
	if len(p.turn.readers) == 1 || p.intake.empty() {
		return false
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	return p.isHeld(head)
}

// wake makes waiting readers check again whether they can continue.
func (p *partition) wake() {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.turn.passed.Broadcast()
}
