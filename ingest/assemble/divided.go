package assemble

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Part configures the assembler for a part of all policies.
type Part struct {
	Name string // "" for the policies that belong to no other part
	Config
	// UnitsPerSecond is the maximum rate of units that Admits accepts, averaged over burst seconds of their own time. 0
	// means no limit.
	UnitsPerSecond float64
	Over           *Over // nil if nothing is counted
}

// Over counts what exceeded the limits of a part.
type Over struct {
	Policies, Groups, OpenEpisodes, Units prometheus.Counter
}

func (o *Over) policy() {
	if o != nil {
		o.Policies.Inc()
	}
}

func (o *Over) group() {
	if o != nil {
		o.Groups.Inc()
	}
}

func (o *Over) episode() {
	if o != nil {
		o.OpenEpisodes.Inc()
	}
}

func (o *Over) unit() {
	if o != nil {
		o.Units.Inc()
	}
}

// Divided aggregates the events of one partition with one assembler per part of the policies. A part that reaches its
// limits does not affect the units of the others. It is not safe for concurrent use.
type Divided struct {
	of    func(policy string) int
	parts []*part // the last one is for the policies of no other part

	known map[string]int // index of the part by policy
	last  string         // policy of the previous event
	at    int            // index of its part
}

type part struct {
	*Assembler
	name  string
	rate  rate
	over  *Over
	whole func(policy string) bool // Config.Watched, regardless of the part
}

// mostKnown is the maximum number of policies whose parts are cached.
const mostKnown = 20_000

// NewDivided returns assemblers without state for the parts of all policies. There must be at least one part. of
// returns the index of a policy's part, and must always return the same index for a policy.
func NewDivided(parts []Part, of func(policy string) int, m *Metrics) *Divided {
	d := &Divided{of: of, known: map[string]int{}}
	for i, p := range parts {
		made := &part{name: p.Name, rate: rate{perSecond: p.UnitsPerSecond}, over: p.Over, whole: p.Watched}
		if len(parts) > 1 {
			p.Watched = func(policy string) bool { return of(policy) == i && (made.whole == nil || made.whole(policy)) }
		}
		made.Assembler = New(p.Config, m)
		made.Assembler.over = p.Over
		d.parts = append(d.parts, made)
	}
	return d
}

// part returns the part of a policy.
func (d *Divided) part(policy string) *part {
	if len(d.parts) == 1 {
		return d.parts[0]
	}
	if d.last == policy && policy != "" {
		return d.parts[d.at]
	}
	at, known := d.known[policy]
	if !known {
		if len(d.known) >= mostKnown {
			clear(d.known)
		}
		at = d.of(policy)
		policy = strings.Clone(policy)
		d.known[policy] = at
	}
	d.last, d.at = policy, at
	return d.parts[at]
}

// Fold calls Fold of the assembler for the event's policy.
func (d *Divided) Fold(e *ingest.Event, emit func(*ingest.Unit)) (first ingest.Position, taken bool) {
	return d.part(e.Policy).Fold(e, emit)
}

// FoldApart calls FoldApart of the assembler for the event's policy.
func (d *Divided) FoldApart(e *ingest.Event, emit func(*ingest.Unit), decided func(*ingest.Decision)) (first ingest.Position, taken bool) {
	return d.part(e.Policy).FoldApart(e, emit, decided)
}

// Admits reports whether a unit is within the rate of its part, and counts it if it is. end is its end time, and clock
// is the time up to which the partition has been read, both in Unix nanoseconds. An end later than clock is not
// credible, and is replaced by the latest credible end in the part. A unit whose end is unknown is admitted and not
// counted.
func (d *Divided) Admits(policy string, end, clock int64) bool {
	if len(d.parts) == 1 && d.parts[0].rate.perSecond == 0 {
		return true
	}
	p := d.part(policy)
	if end > clock {
		end = p.rate.ts
	}
	if p.rate.take(end) {
		return true
	}
	p.over.unit()
	return false
}

// Forget calls Forget of the assembler for the policy.
func (d *Divided) Forget(policy string) { d.part(policy).Forget(policy) }

// Open returns the number of open episodes of all parts.
func (d *Divided) Open() (n int) {
	for _, p := range d.parts {
		n += len(p.open)
	}
	return n
}

// Watches reports whether an assembler of any part has state of a watched policy.
func (d *Divided) Watches() bool {
	return slices.ContainsFunc(d.parts, func(p *part) bool { return p.Watches() })
}

// Close removes the open episodes of all parts from the metrics.
func (d *Divided) Close() {
	for _, p := range d.parts {
		p.Close()
	}
}

// partWire is the wire form of a part that has a name.
type partWire struct {
	Name  string  `cbor:"1,keyasint"`
	State []byte  `cbor:"2,keyasint"` // of its assembler
	Rate  float64 `cbor:"3,keyasint,omitempty"`
	TS    int64   `cbor:"4,keyasint,omitempty"` // of the rate
}

// Snapshot writes the state of all parts. If there is only one, the snapshot is that of its assembler.
func (d *Divided) Snapshot(w io.Writer) error {
	rest := len(d.parts) - 1
	h := d.parts[rest].state()
	for _, p := range d.parts[:rest] {
		var b bytes.Buffer
		if err := p.Snapshot(&b); err != nil {
			return err
		}
		h.Parts = append(h.Parts, &partWire{Name: p.name, State: b.Bytes(), Rate: p.rate.used, TS: p.rate.ts})
	}
	return writeState(w, h)
}

// Restore replaces the state of all parts with a snapshot. A part that is missing in the snapshot takes over the state
// of its policies from the last part. The open episodes of policies that have moved in other ways are dropped and
// counted. After an error, the assemblers are empty.
func (d *Divided) Restore(r io.Reader) error {
	err := d.restore(r)
	if err != nil {
		for _, p := range d.parts {
			p.Close()
		}
	}
	return err
}

func (d *Divided) restore(r io.Reader) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("restore open episodes: %w", err)
	}
	h, err := stateFormat.Decode(body)
	if err != nil {
		return fmt.Errorf("restore open episodes: %w", err)
	}
	saved := map[string]*partWire{}
	for _, w := range h.Parts {
		if w == nil || saved[w.Name] != nil {
			return fmt.Errorf("restore open episodes: %w", errInconsistent)
		}
		saved[w.Name] = w
	}
	rest := len(d.parts) - 1
	d.parts[rest].elsewhere = func(policy string) bool {
		at := d.of(policy)
		return at != rest && saved[d.parts[at].name] == nil // otherwise, that part takes it over
	}
	for _, p := range d.parts {
		state := body
		w := saved[p.name]
		switch {
		case p == d.parts[rest]:
		case w != nil:
			state, p.rate.used, p.rate.ts = w.State, w.Rate, w.TS
		default:
			p.elsewhere = func(policy string) bool { return d.parts[d.of(policy)] != p }
		}
		if err := p.Restore(bytes.NewReader(state)); err != nil {
			return err
		}
		delete(saved, p.name)
	}
	for _, w := range saved { // of parts that no longer exist
		if gone, err := stateFormat.Decode(w.State); err == nil {
			d.parts[rest].metrics.dropped.Add(float64(len(gone.Episodes)))
		}
	}
	return nil
}

// burst is the number of seconds over which a rate is averaged.
const burst = 10

// rate limits units by their own time. It is a leaky bucket that drains perSecond units per second.
type rate struct {
	perSecond float64
	used      float64 // units in the bucket at ts
	ts        int64   // latest time of a unit, in Unix nanoseconds; 0 before the first unit
}

// take reports whether a unit that ended at ts is within the rate, and counts it if it is. ts is 0 if unknown.
func (r *rate) take(ts int64) bool {
	if r.perSecond == 0 || ts == 0 {
		return true
	}
	if ts > r.ts {
		r.used = max(0, r.used-float64(ts-r.ts)/1e9*r.perSecond)
		r.ts = ts
	}
	if r.used+1 > max(1, burst*r.perSecond) {
		return false
	}
	r.used++
	return true
}
