package consumer

import (
	"context"
	"sync"
)

// phase is what a reader does, as far as the other readers of its partition wait for it.
type phase uint8

const (
	fetching phase = iota // more is known to exist, or it is not known whether there is more
	holding               // it has a batch for the state
	resting               // it has read its partition to the end
	away                  // it has no connection
)

// course is how far a reader has come, by Kafka's times of the messages: the largest so far, in Unix nanoseconds, so
// that it never goes back.
type course struct {
	phase phase
	head  int64 // of the first message of the batch, or of the last message processed
}

// turns are what the readers take that process batches one after the other: those of the partitions of one number or, if
// all partitions are merged, of all of them.
type turns struct {
	sync.Mutex
	passed  *sync.Cond // a reader waits no longer for another one
	readers []*reader
}

func newTurns() *turns {
	t := &turns{}
	t.passed = sync.NewCond(t)
	return t
}

// await takes the turn for the batch of the reader, unless ctx ends first. Batches of several topics are processed in
// the order of Kafka's times of their messages, as far as these are known: what lies in the past is read side by side. At
// the end of a topic nothing waits for it. Nor does anything wait for a topic that cannot be read, unless
// Options.Joined.
//
// With Options.Merged that holds for all partitions, not only for those of one number.
//
// Which units leave a state must not depend on this order: it is another one after a restart if messages have arrived
// meanwhile that are older than those of other topics.
func (p *reader) await(ctx context.Context) (taken bool) {
	p.turn.Lock()
	if len(p.turn.readers) == 1 {
		return true // a batch in hand is finished even if the generation ends
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

// move records what the reader does. The caller holds the turn.
func (p *reader) move(to course) {
	p.course = to
	p.turn.passed.Broadcast()
}

// leave lets the others go on without this reader.
func (p *reader) leave() {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.move(course{away, p.reached})
}

// isHeld reports whether another reader has an older message than one of the time head, or may be about to have one.
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

// splits reports whether the batch in hand must be processed before a message of the time head: another reader has an
// older one.
func (p *reader) splits(head int64) bool {
	if len(p.turn.readers) == 1 || p.intake.empty() {
		return false
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	return p.isHeld(head)
}

// wake makes waiting readers look again.
func (p *partition) wake() {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.turn.passed.Broadcast()
}
