package inspect

import (
	"hash/maphash"
	"math"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/feedback"
)

// Limits on the data that is kept to find the field that decisions share with their feedback.
const (
	joinedKeys   = 8       // candidates, in addition to the two ids
	joinedValues = 500_000 // values of one candidate
	joinedAll    = 750_000 // values of all candidates together, about 100 MB
	joinedEarly  = 16      // feedback records that wait for one decision
	joinedNames  = 8       // names of numbers in feedback
)

// Conditions for feedback to count as delayed and as separate records.
const (
	leastJoined    = 20  // decisions, and feedback records
	matchedShare   = .5  // minimum share of feedback that has the key of a decision
	repeatedShare  = .05 // maximum share of decisions whose key an earlier decision had
	rewardedShare  = .05 // maximum share of decisions that have a reward or an outcome themselves
	endedShare     = .95 // if more of the decisions have feedback that ends their episode, episodes work without joining
	answeredShare  = .95 // if this share of the decisions has feedback, missing feedback is missing, and not 0
	earliestFactor = 3   // the window is at least this many times a horizon
)

// joining measures how the decisions of a policy are joined with separate feedback records: by which field, and after
// which delay.
type joining struct {
	given     feedback.Config // if not enabled, the key is searched for
	seed      maphash.Seed
	keys      []*joinKey
	decisions int64
	rewarded  int64 // decisions that have a reward or an outcome themselves
	records   int64 // feedback records
	names     []*feedbackValue
	ratings   ratings
	kept      int // number of values of all candidates, and of waiting feedback records
}

// joinKey is a field that decisions and feedback may share.
type joinKey struct {
	feedback.Config // only its key is set
	full            bool
	decided         map[uint64]*joinedDecision // by hash of the key
	waiting         map[uint64][]joinedPlace   // feedback whose decision has not arrived yet
	waits           int                        // number of waiting records
	decisions       int64
	repeated        int64 // decisions whose key an earlier decision had
	answered        int64 // decisions with feedback
	ended           int64 // decisions with feedback that ends their episode
	records         int64 // feedback records with the key
	among           int64 // feedback records with or without the key, until there were too many keys
	matched         int64 // feedback records with the key of a decision
	late            int64 // of matched, records that arrived after the given window
	elsewhere       int64 // of matched, records in another partition than their decision
	timed           int64 // of matched, records that have a time and whose decision has one
	delays          lengthSample
}

type joinedPlace struct {
	ts        int64
	partition int32
	ends      bool
}

type joinedDecision struct {
	joinedPlace
	answered bool
}

// feedbackValue summarizes a number in feedback, by its name in feedback.default.
type feedbackValue struct {
	name       string
	least, max float64
	whole      bool
}

func newJoining(given feedback.Config) *joining {
	return &joining{given: given, seed: maphash.MakeSeed()}
}

// see adds one event.
func (j *joining) see(e *ingest.Event) {
	hasNumbers := e.HasReward || len(e.Outcomes) > 0 || len(e.RewardComponents) > 0
	decides := feedback.IsDecision(e)
	switch {
	case decides:
		j.decisions++
		j.ratings.decides(e)
		if hasNumbers {
			j.rewarded++
		}
	case !hasNumbers || e.HasEpisode:
		return
	default:
		j.records++
		j.values(e)
		j.ratings.see(e)
	}
	for _, k := range j.candidates(e) {
		if k.full {
			continue
		}
		k.among = j.records
		if key := k.KeyOf(e); key != "" {
			before := k.size()
			k.see(e, decides, maphash.String(j.seed, key), time.Duration(j.given.Window))
			j.kept += k.size() - before
		}
	}
	for j.kept > joinedAll {
		j.drop()
	}
}

// drop drops the candidate that matches the fewest feedback records, or the last of several. While more is kept than
// allowed, there are at least two candidates.
func (j *joining) drop() {
	var worst *joinKey
	for _, k := range j.keys {
		if k.decided != nil && (worst == nil || k.matched <= worst.matched) {
			worst = k
		}
	}
	j.kept -= worst.size()
	worst.full, worst.decided, worst.waiting, worst.waits = true, nil, nil, 0
}

// size returns the number of kept values of the candidate, including feedback records that wait.
func (k *joinKey) size() int { return len(k.decided) + k.waits }

// candidates returns the fields that may be the key, including those that an event is the first to have.
func (j *joining) candidates(e *ingest.Event) []*joinKey {
	if len(j.keys) == 0 {
		if j.given.Enabled() {
			j.add(j.given.Key)
			return j.keys
		}
		j.add("episode_id")
		j.add("agent_id")
	}
	if j.given.Enabled() || len(j.keys) == joinedKeys+2 {
		return j.keys
	}
	for _, l := range e.Labels {
		if !slices.ContainsFunc(j.keys, func(k *joinKey) bool { return k.Key == "labels."+l.Name }) && len(j.keys) < joinedKeys+2 {
			j.add("labels." + l.Name)
		}
	}
	return j.keys
}

func (j *joining) add(key string) {
	j.keys = append(j.keys, &joinKey{
		Config: feedback.Config{Key: key}, decided: map[uint64]*joinedDecision{}, waiting: map[uint64][]joinedPlace{}, delays: newLengthSample(),
	})
}

// values records the numbers in feedback.
func (j *joining) values(e *ingest.Event) {
	if e.HasReward {
		j.value("reward", e.Reward)
	}
	for _, v := range e.Outcomes {
		j.value("outcome."+v.Name, v.X)
	}
	for _, v := range e.RewardComponents {
		j.value("reward_component."+v.Name, v.X)
	}
}

func (j *joining) value(name string, x float64) {
	i := slices.IndexFunc(j.names, func(v *feedbackValue) bool { return v.name == name })
	if i < 0 {
		if len(j.names) == joinedNames {
			return
		}
		i = len(j.names)
		j.names = append(j.names, &feedbackValue{name: name, least: x, max: x, whole: true})
	}
	v := j.names[i]
	v.least, v.max, v.whole = min(v.least, x), max(v.max, x), v.whole && x == math.Trunc(x)
}

// rating reports whether the numbers look like grades, for which a missing value is not 0.
func (v *feedbackValue) rating() bool {
	return v.whole && v.least >= 1 && v.max > v.least && v.max <= 10
}

// see adds a decision or a feedback record that has the key.
func (k *joinKey) see(e *ingest.Event, decides bool, hash uint64, window time.Duration) {
	here := joinedPlace{e.TS, e.Pos.Partition.Number(), e.Terminated || e.Truncated}
	decided := k.decided[hash]
	switch {
	case decides && decided != nil:
		k.decisions++
		k.repeated++
		decided.joinedPlace = here
	case decides:
		k.decisions++
		decided = &joinedDecision{joinedPlace: here}
		k.decided[hash] = decided
		for _, early := range k.waiting[hash] {
			k.match(decided, early, window)
		}
		k.waits -= len(k.waiting[hash])
		delete(k.waiting, hash)
	default:
		k.records++
		switch waiting := k.waiting[hash]; {
		case decided != nil:
			k.match(decided, here, window)
		case len(waiting) < joinedEarly:
			k.waiting[hash] = append(waiting, here)
			k.waits++
		}
	}
	mostlyRepeated := k.decisions > 1000 && k.repeated*2 > k.decisions
	if k.full = mostlyRepeated || k.size() >= joinedValues; k.full && mostlyRepeated {
		k.decided, k.waiting, k.waits = nil, nil, 0 // decisions do not have this key
	}
}

// match counts a feedback record whose decision is known.
func (k *joinKey) match(d *joinedDecision, f joinedPlace, window time.Duration) {
	k.matched++
	if !d.answered {
		d.answered = true
		k.answered++
	}
	if f.ends && !d.ends {
		d.ends = true
		k.ended++
	}
	if f.partition != d.partition {
		k.elsewhere++
	}
	if f.ts == 0 || d.ts == 0 {
		return
	}
	k.timed++
	delay := max(0, time.Duration(f.ts-d.ts))
	k.delays.add(delay.Seconds())
	if window > 0 && delay > window {
		k.late++
	}
}

// best returns the key, or nil if decisions and feedback are not separate.
func (j *joining) best() *joinKey {
	if j.given.Enabled() {
		if len(j.keys) == 0 {
			return nil
		}
		return j.keys[0]
	}
	if j.decisions < leastJoined || j.records < leastJoined || float64(j.rewarded) > rewardedShare*float64(j.decisions) {
		return nil
	}
	var best *joinKey
	for _, k := range j.keys {
		of := float64(k.decisions)
		if float64(k.matched) < matchedShare*float64(k.among) || float64(k.repeated) > repeatedShare*of || k.timed == 0 ||
			float64(k.ended) > endedShare*of {
			continue
		}
		if best == nil || k.matched > best.matched {
			best = k
		}
	}
	return best
}
