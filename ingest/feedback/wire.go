package feedback

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// stateFormat is the format of a frame of open decisions. Field numbers are never reused; see package saved for the
// rules.
var stateFormat = saved.Format[stateWire]{Version: 1}

// headFormat is the format of the head before the frames.
var headFormat = saved.Format[headWire]{Version: 1}

// A frame contains at most inFrame decisions, and is complete once its texts have frameBytes. The bound is required
// because package saved limits the size of decompressed data, and could not read larger frames.
const (
	inFrame    = 4096
	frameBytes = 16 << 20
)

// headWire precedes the frames, which contain Decisions decisions in total.
type headWire struct {
	Decisions  int         `cbor:"1,keyasint"`
	Seq        uint64      `cbor:"2,keyasint"`
	Ended      []uint64    `cbor:"3,keyasint"`           // hashes of the most recently closed decisions, ascending
	EndedFirst []uint64    `cbor:"4,keyasint"`           // the ones before them
	Shares     []shareWire `cbor:"5,keyasint,omitempty"` // of all shares except the last
}

// stateWire is a frame. Its lists contain the values that its decisions share.
type stateWire struct {
	Policies   []policyWire     `cbor:"1,keyasint,omitempty"`
	Groups     []groupWire      `cbor:"2,keyasint,omitempty"`
	Versions   []saved.Versions `cbor:"3,keyasint,omitempty"`
	Layouts    []string         `cbor:"4,keyasint,omitempty"`
	Categories []string         `cbor:"5,keyasint,omitempty"`
	Decisions  []decisionWire   `cbor:"6,keyasint,omitempty"` // in the order in which they were opened

	// Earlier builds wrote all decisions in a single frame, and the fields of headWire here.
	Seq        uint64   `cbor:"7,keyasint,omitempty"`
	Ended      []uint64 `cbor:"8,keyasint,omitempty"`
	EndedFirst []uint64 `cbor:"9,keyasint,omitempty"`
}

type policyWire struct {
	Name    string  `cbor:"1,keyasint"`
	Moments []int64 `cbor:"2,keyasint"` // horizons and window, in nanoseconds
	Key     string  `cbor:"3,keyasint"`
}

type groupWire struct {
	Group  ingest.Group `cbor:"1,keyasint"`
	Shadow bool         `cbor:"2,keyasint,omitempty"`
	Labels ingest.Group `cbor:"3,keyasint,omitzero"`
}

// decisionWire is the wire form of a decision. Field 3 was used by earlier builds. Policy, Group, Versions, Layout and
// Category are indices into the lists of stateWire.
type decisionWire struct {
	Seq        uint64              `cbor:"1,keyasint"`
	TS         int64               `cbor:"2,keyasint"`
	Delay      int64               `cbor:"4,keyasint"`
	First      saved.Position      `cbor:"5,keyasint"`
	Last       saved.Position      `cbor:"6,keyasint"`
	Records    int64               `cbor:"7,keyasint,omitempty"`
	Reward     float64             `cbor:"8,keyasint"`
	Seen       [seenRecords]uint32 `cbor:"9,keyasint"`
	Text       []byte              `cbor:"10,keyasint"`
	KeySize    uint16              `cbor:"11,keyasint"`
	AgentSize  uint16              `cbor:"12,keyasint,omitempty"`
	Policy     uint32              `cbor:"13,keyasint,omitempty"`
	Group      uint32              `cbor:"14,keyasint,omitempty"`
	Versions   uint32              `cbor:"15,keyasint,omitempty"`
	Layout     uint32              `cbor:"16,keyasint,omitempty"`
	Category   uint32              `cbor:"17,keyasint,omitempty"`
	Stage      uint8               `cbor:"18,keyasint,omitempty"`
	ActionKind uint8               `cbor:"19,keyasint,omitempty"`
	Flags      uint8               `cbor:"20,keyasint,omitempty"`
}

// Snapshot writes the open decisions. It keeps only one frame in memory. The same decisions always produce the same
// bytes.
func (j *Joiner) Snapshot(w io.Writer) error {
	open := j.store.inOrder()
	err := headFormat.WriteFrame(w, &headWire{
		Decisions: len(open), Seq: j.store.seq, Shares: j.sharesWire(),
		Ended: slices.Sorted(maps.Keys(j.rest().ended.now)), EndedFirst: slices.Sorted(maps.Keys(j.rest().ended.before)),
	})
	var packer saved.Packer
	decisions := make([]decisionWire, 0, min(inFrame, len(open)))
	for len(open) > 0 && err == nil {
		frame := j.frame(open, decisions)
		err = stateFormat.WritePacked(w, &packer, frame)
		open = open[len(frame.Decisions):]
	}
	if err != nil {
		return fmt.Errorf("write open decisions: %w", err)
	}
	return nil
}

// inOrder returns the slots of the open decisions in the order in which they were opened.
func (s *store) inOrder() []uint32 {
	open := make([]uint32, 0, s.n)
	for slot := range uint32(len(s.slabs) * slab) {
		if s.at(slot).seq != 0 {
			open = append(open, slot)
		}
	}
	slices.SortFunc(open, func(a, b uint32) int { return cmp.Compare(s.at(a).seq, s.at(b).seq) })
	return open
}

// frame returns a frame with the first of the given decisions. It reuses memory.
func (j *Joiner) frame(open []uint32, memory []decisionWire) *stateWire {
	w := &stateWire{Decisions: memory[:0]}
	n := newNumbering(j, w)
	for _, slot := range open[:min(inFrame, len(open))] {
		if n.bytes >= frameBytes {
			break
		}
		w.Decisions = append(w.Decisions, n.wire(j.store.at(slot)))
	}
	return w
}

// numbering numbers shared values in the order of their first use, so that equal states have equal snapshots.
type numbering struct {
	j                                         *Joiner
	w                                         *stateWire
	policy, group, versions, layout, category map[uint32]uint32
	bytes                                     int // of the texts
}

func newNumbering(j *Joiner, w *stateWire) *numbering {
	empty := func() map[uint32]uint32 { return map[uint32]uint32{} }
	return &numbering{j: j, w: w, policy: empty(), group: empty(), versions: empty(), layout: empty(), category: empty()}
}

// number returns the number of a shared value in the snapshot. It calls first when the value is used for the first
// time.
func number(numbers map[uint32]uint32, live uint32, first func()) uint32 {
	n, known := numbers[live]
	if !known {
		n = uint32(len(numbers))
		numbers[live] = n
		first()
	}
	return n
}

func (n *numbering) wire(d *decision) decisionWire {
	s := n.j.store
	w := decisionWire{
		Seq: d.seq, TS: d.ts, Delay: d.delay, First: saved.Position(d.first), Last: saved.Position(d.last),
		Records: int64(d.records), Reward: d.reward, Seen: d.seen, Text: s.texts.get(d.text), KeySize: d.keySize, AgentSize: d.agentSize,
		Stage: d.stage, ActionKind: uint8(d.actionKind), Flags: d.flags,
	}
	n.bytes += len(w.Text)
	w.Policy = number(n.policy, d.policy, func() {
		p := n.j.byNumber[d.policy]
		n.w.Policies = append(n.w.Policies, policyWire{p.name, p.rules.nanoseconds(), p.rules.config.Key})
	})
	w.Layout = number(n.layout, d.layout, func() {
		n.w.Layouts = append(n.w.Layouts, s.layouts.keys[d.layout])
		n.bytes += len(s.layouts.keys[d.layout])
	})
	if !d.has(flagDecided) {
		return w
	}
	w.Group = number(n.group, d.group, func() {
		k := s.groups.keys[d.group]
		n.w.Groups = append(n.w.Groups, groupWire{k.group, k.shadow, k.labels})
		n.bytes += len(k.group.String()) + len(k.labels.String())
	})
	w.Versions = number(n.versions, d.versions, func() {
		v := s.versions.keys[d.versions]
		n.w.Versions = append(n.w.Versions, saved.Versions(v))
		n.bytes += len(v.Policy) + len(v.Env) + len(v.Reward)
	})
	w.Category = number(n.category, d.category, func() {
		n.w.Categories = append(n.w.Categories, s.categories.keys[d.category])
		n.bytes += len(s.categories.keys[d.category])
	})
	return w
}

func (r *rules) nanoseconds() []int64 {
	out := make([]int64, len(r.moments))
	for i, m := range r.moments {
		out[i] = int64(m)
	}
	return out
}

var errInconsistent = errors.New("the snapshot is inconsistent")

// Restore replaces the open decisions with those that Snapshot wrote. clock is the event time up to which the partition
// had been read. Decisions are dropped and counted if their policy no longer has delayed feedback, or if the configured
// key or group_by labels have changed. If the window or the horizons have changed, units are emitted at those moments
// that are still ahead. After an error, the joiner is empty.
func (j *Joiner) Restore(r io.Reader, clock int64) error {
	return j.restored(func() error { return j.readFrames(r, clock) })
}

// RestoreWhole is like Restore for the format of earlier builds: all decisions in one part, which is empty if there are
// none.
func (j *Joiner) RestoreWhole(part []byte, clock int64) error {
	return j.restored(func() error {
		if len(part) == 0 {
			return nil
		}
		w, err := stateFormat.Decode(part)
		if err != nil {
			return err
		}
		if err := j.restore(w, clock); err != nil {
			return err
		}
		return j.resume(&headWire{Decisions: len(w.Decisions), Seq: w.Seq, Ended: w.Ended, EndedFirst: w.EndedFirst})
	})
}

// Saved returns the bytes that Snapshot wrote, for a joiner that restores them later.
func Saved(r io.Reader) ([]byte, error) {
	var whole bytes.Buffer
	if _, err := eachFrame(io.TeeReader(r, &whole), func(*stateWire) error { return nil }); err != nil {
		return nil, err
	}
	return whole.Bytes(), nil
}

// restored empties the joiner and calls read. If that fails, it empties the joiner again.
func (j *Joiner) restored(read func() error) error {
	j.metrics.open.Sub(float64(j.store.n))
	j.reset()
	if err := read(); err != nil {
		j.metrics.open.Sub(float64(j.store.n))
		j.reset()
		return fmt.Errorf("read open decisions: %w", err)
	}
	return nil
}

func (j *Joiner) readFrames(r io.Reader, clock int64) error {
	head, err := eachFrame(r, func(w *stateWire) error { return j.restore(w, clock) })
	if err != nil {
		return err
	}
	return j.resume(head)
}

// eachFrame reads the output of Snapshot, and passes each frame to take. It returns the head.
func eachFrame(r io.Reader, take func(*stateWire) error) (*headWire, error) {
	head, err := headFormat.ReadFrame(r)
	if err != nil {
		return nil, err
	}
	for left := head.Decisions; left > 0; {
		w, err := stateFormat.ReadPacked(r)
		if err != nil {
			return nil, err
		}
		if n := len(w.Decisions); n == 0 || n > left {
			return nil, errInconsistent
		}
		left -= len(w.Decisions)
		if err := take(w); err != nil {
			return nil, err
		}
	}
	return head, nil
}

// resume restores the state that does not belong to a single decision.
func (j *Joiner) resume(head *headWire) error {
	if j.store.seq > head.Seq {
		return errInconsistent
	}
	j.store.seq = head.Seq
	j.resumeShares(head)
	j.trim()
	return nil
}

// restore adds the decisions of a frame.
func (j *Joiner) restore(w *stateWire, clock int64) error {
	changed := make([]bool, len(w.Policies))
	for i, p := range w.Policies {
		live := j.policy(p.Name)
		changed[i] = live != nil && !live.beyond && !slices.Equal(live.rules.nanoseconds(), p.Moments)
	}
	for i := range w.Decisions {
		d := &w.Decisions[i]
		if !d.valid(w) {
			return errInconsistent
		}
		p := j.policy(w.Policies[d.Policy].Name)
		if p == nil || p.beyond || p.rules.config.Key != w.Policies[d.Policy].Key || d.decided() && !assemble.Divides(p.groupBy, w.Groups[d.Group].Group) {
			j.metrics.dropped.Inc()
			continue
		}
		if err := j.reopen(p, d, w, changed[d.Policy], clock); err != nil {
			return err
		}
	}
	return nil
}

// valid reports whether the indices and sizes of a decision are valid.
func (d *decisionWire) valid(w *stateWire) bool {
	inside := func(n uint32, of int) bool { return int64(n) < int64(of) }
	if !inside(d.Policy, len(w.Policies)) || !inside(d.Layout, len(w.Layouts)) || d.Seq == 0 || d.Records < 0 || d.Records > math.MaxUint32 {
		return false
	}
	if names := int(d.KeySize) + int(d.AgentSize); names > len(d.Text) || !fits(w.Layouts[d.Layout], d.Text[names:]) {
		return false
	}
	if int(d.Stage) >= len(w.Policies[d.Policy].Moments) || d.ActionKind > uint8(ingest.ActionNumeric) {
		return false
	}
	return !d.decided() ||
		inside(d.Group, len(w.Groups)) && inside(d.Versions, len(w.Versions)) && inside(d.Category, len(w.Categories)) &&
			w.Groups[d.Group].Group.Policy == w.Policies[d.Policy].Name
}

func (d *decisionWire) decided() bool { return d.Flags&flagDecided != 0 }

// reopen restores one decision.
func (j *Joiner) reopen(p *policy, w *decisionWire, from *stateWire, changed bool, clock int64) error {
	key := w.Text[:w.KeySize]
	known, hash := j.store.find(p.number, p.hash(key), key)
	if known != nil || w.Seq <= j.store.seq {
		return errInconsistent
	}
	d, slot := j.store.add(hash)
	d.seq, j.store.seq = w.Seq, w.Seq
	d.ts, d.delay = w.TS, w.Delay
	d.first, d.last = ingest.Position(w.First), ingest.Position(w.Last)
	d.records, d.reward, d.seen = uint32(w.Records), w.Reward, w.Seen
	d.policy, d.stage, d.flags, d.actionKind = p.number, w.Stage, w.Flags, ingest.ActionKind(w.ActionKind)
	d.text, d.keySize, d.agentSize = j.store.texts.hold(w.Text), w.KeySize, w.AgentSize
	d.layout = j.store.layouts.take(from.Layouts[w.Layout])
	if d.has(flagDecided) {
		g := from.Groups[w.Group]
		d.group = j.store.groups.take(groupKey{g.Group, g.Shadow, g.Labels})
		d.versions = j.store.versions.take(ingest.Versions(from.Versions[w.Versions]))
		d.category = j.store.categories.take(from.Categories[w.Category])
	}
	if changed {
		p.rules.reschedule(d, clock)
	}
	p.open++
	p.share.open++
	j.metrics.open.Inc()
	j.store.schedule(d, slot)
	j.account()
	return nil
}

// reschedule sets the first moment of a decision that is still ahead of the clock.
func (r *rules) reschedule(d *decision, clock int64) {
	at := 0
	for at < r.last() && (!d.has(flagDecided) || d.ts+int64(r.moments[at]) < clock) {
		at++
	}
	d.stage = uint8(at)
}
