package alerts

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Times of the notifier.
const (
	// resendEvery is how often a firing alert is sent again, and firingFor how long Alertmanager then holds it to fire.
	// A notifier that has died for good resolves its alerts by that; three sends may fail before one that lives does.
	resendEvery = 30 * time.Second
	firingFor   = 4 * resendEvery
	// resolvedFor is how long a resolved alert is offered to an Alertmanager that does not take it. By then its last
	// firing state has long run out there.
	resolvedFor = 15 * time.Minute

	minBackoff = time.Second
	maxBackoff = resendEvery
	maxBatch   = 64 // alerts a push
)

// Notifier pushes incidents and telemetry faults to Alertmanagers and keeps them alive while they last. It holds
// the latest state of each, not a queue: a slow Alertmanager delays what is told, and loses nothing of it. Update and
// Resync may be called from several goroutines.
type Notifier struct {
	log     zerolog.Logger
	metrics notifierMetrics
	senders []*sender
	notes   *Notes

	mu       sync.Mutex
	alerts   map[string]*tracked // by key
	revision uint64              // the newest of any alert: one that starts again must not be taken for accepted
}

// tracked is an alert with what every Alertmanager knows of it.
type tracked struct {
	alert
	startsAt time.Time
	endsAt   time.Time  // when it resolved; zero while it fires
	revision uint64     // of the newest state that is to be told at once
	accepted []accepted // of each sender
}

// accepted is the newest state of an alert that an Alertmanager has taken, and when it was sent; zero where none.
type accepted struct {
	revision uint64
	at       time.Time
	over     bool // it has taken the end of this firing, before a crash: there is nothing left to tell
}

// NewNotifier makes a notifier for every URL of a configuration that has passed Check. Without URLs it does nothing. What
// the notes say was told before is not told again; they may be nil.
func NewNotifier(cfg AlertmanagerConfig, notes *Notes, log zerolog.Logger, reg prometheus.Registerer) *Notifier {
	n := &Notifier{log: log, notes: notes, alerts: map[string]*tracked{}}
	n.metrics = newNotifierMetrics(reg, n.unconfirmed)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	client := &http.Client{
		Transport: transport, Timeout: time.Duration(cfg.Timeout),
		// A POST that is redirected becomes a GET, which is answered with 200 and tells nobody.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for i, url := range cfg.URLs {
		n.senders = append(n.senders, &sender{
			index: i, url: strings.TrimSuffix(url, "/") + "/api/v2/alerts", client: client, wake: make(chan struct{}, 1),
		})
	}
	return n
}

// Join takes up what was told of the policies of a partition, of which their incidents and faults are resynced next: it says
// that they are judged here from now on. It is called where the notes are those of several instances.
func (n *Notifier) Join(partition int32, journal Journal) { n.notes.join(partition, journal) }

// Leave forgets the alerts of the policies of a partition, without a word to Alertmanager: they are judged elsewhere now, and
// told from there. It is called where the notes are those of several instances.
func (n *Notifier) Leave(partition int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes.leave(partition)
	n.dropStrays()
}

// dropStrays forgets the alerts of policies that are judged elsewhere. The caller holds the lock.
func (n *Notifier) dropStrays() {
	maps.DeleteFunc(n.alerts, func(_ string, t *tracked) bool { return !n.notes.here(t.labels["policy"]) })
}

// Resync takes over the open incidents and faults that were restored at a start. Closed and muted ones are left out:
// what Alertmanager still holds of them runs out by itself.
func (n *Notifier) Resync(incidents []Incident, faults []Fault) {
	n.mu.Lock()
	for k := range incidents {
		if i := &incidents[k]; !i.Closed && !i.IsMuted() {
			n.put(incidentKey(i), incidentAlert(i))
		}
	}
	for k := range faults {
		if f := &faults[k]; !f.Ended {
			n.put(faultKey(f), faultAlert(f))
		}
	}
	n.mu.Unlock()
	n.wake()
}

// Update takes the changes of a Book and returns at once. A new alert, a resolved one and one with other signals or
// another cause are pushed at once; renewed scores go out with the next push that keeps the alert alive.
func (n *Notifier) Update(changes []Change) {
	n.mu.Lock()
	news := false
	for _, c := range changes {
		switch {
		case c.Fault != nil:
			news = n.put(faultKey(c.Fault), faultAlert(c.Fault)) || news
		case c.Incident != nil:
			news = n.put(incidentKey(c.Incident), incidentAlert(c.Incident)) || news
		}
	}
	n.mu.Unlock()
	if news {
		n.wake()
	}
}

// put stores the latest state of an alert and reports whether it is to be told at once. The caller holds the lock.
func (n *Notifier) put(key string, a alert) bool {
	if len(n.senders) == 0 || !n.notes.here(a.labels["policy"]) {
		return false // or it would count as unconfirmed, or be kept alive, for ever
	}
	n.forget()
	now := time.Now()
	t := n.alerts[key]
	if t == nil && a.resolved {
		return false // nobody has been told of it, as while it was muted
	}
	if t == nil || (t.resolved && !a.resolved) {
		t = &tracked{startsAt: startOf(a, now), accepted: make([]accepted, len(n.senders))}
		n.alerts[key] = t
	}
	if a.resolved {
		a.identity = t.identity // of the firing that ends
	}
	begins := t.revision == 0
	news := begins || t.resolved != a.resolved || t.annotations["summary"] != a.annotations["summary"]
	t.alert = a
	if !news {
		return false
	}
	n.revision++
	t.revision = n.revision
	if a.resolved {
		t.endsAt = now
	}
	if begins {
		n.recall(key, t)
	}
	return true
}

// recall takes from the notes what each Alertmanager was told of an alert before a crash. The caller holds the lock.
func (n *Notifier) recall(key string, t *tracked) {
	for i, s := range n.senders {
		told, any := n.notes.last(s.url, key, t.labels["policy"], t.identity)
		switch {
		case any && told.Resolved:
			t.accepted[i].over = true
		case any && told.Summary == t.annotations["summary"]:
			t.accepted[i] = accepted{revision: t.revision, at: told.At}
		}
	}
}

// knows reports whether an Alertmanager has taken the present state of an alert.
func (t *tracked) knows(sender int) bool {
	last := t.accepted[sender]
	return last.over || last.revision == t.revision
}

// startOf gives the time at which an alert starts, by the events' clock where it has one. Alertmanager refuses alerts
// that start after their end, so that a clock that runs ahead is cut to now.
func startOf(a alert, now time.Time) time.Time {
	start := time.Unix(0, a.startTS)
	if a.startTS == 0 || start.After(now) {
		return now
	}
	return start
}

// forget drops resolved alerts that every Alertmanager has taken or will not take any more. The caller holds the lock.
func (n *Notifier) forget() {
	now := time.Now()
	maps.DeleteFunc(n.alerts, func(_ string, t *tracked) bool {
		return t.resolved && (t.acceptedByAll() || now.Sub(t.endsAt) > resolvedFor)
	})
}

func (t *tracked) acceptedByAll() bool { return t.takers() == len(t.accepted) }

// takers counts the Alertmanagers that have taken the present state of an alert.
func (t *tracked) takers() int {
	n := 0
	for i := range t.accepted {
		if t.knows(i) {
			n++
		}
	}
	return n
}

// unconfirmed counts the alerts that no Alertmanager has accepted in their current state.
func (n *Notifier) unconfirmed() float64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, t := range n.alerts {
		if t.takers() == 0 {
			count++
		}
	}
	return float64(count)
}

// wake tells every sender that there is news.
func (n *Notifier) wake() {
	for _, s := range n.senders {
		select {
		case s.wake <- struct{}{}:
		default: // it has yet to look at the news before these
		}
	}
}

// Run pushes until the context ends; then it finishes the pushes that are under way, offers once more what has not
// been accepted, and returns nil; each batch of at most maxBatch alerts may take the configured timeout. Alerts that fire are not resolved by
// that: the next start takes them over.
func (n *Notifier) Run(ctx context.Context) error {
	var senders sync.WaitGroup
	for _, s := range n.senders {
		senders.Go(func() { n.serve(ctx, s) })
	}
	senders.Wait()
	for _, s := range n.senders {
		s.client.CloseIdleConnections()
	}
	return nil
}

// serve pushes to one Alertmanager.
func (n *Notifier) serve(ctx context.Context, s *sender) {
	push := context.WithoutCancel(ctx) // a push under way is finished; the client's timeout bounds it
	failures := 0
	for ctx.Err() == nil {
		wait, wake := time.Duration(0), s.wake
		if err := n.pushDue(push, s); err != nil {
			failures++
			wait = backoff(failures)
			wake = nil // news does not shorten the backoff
			n.log.Warn().Err(err).Str("alertmanager", s.url).Dur("retry_in", wait).Msg("alertmanager did not accept alerts")
		} else {
			failures = 0
			wait = n.untilDue(s)
		}
		sleep(ctx, wait, wake)
	}
	if err := n.pushDue(push, s); err != nil {
		n.log.Error().Err(err).Str("alertmanager", s.url).Msg("stopping with alerts that alertmanager did not accept")
	}
}

// backoff doubles from minBackoff to maxBackoff and takes off up to a half at random, so that several instances do not
// come back all at once.
func backoff(failures int) time.Duration {
	d := maxBackoff
	if shift := failures - 1; shift < 10 {
		d = min(minBackoff<<shift, maxBackoff)
	}
	return d - rand.N(d/2)
}

// sleep waits for a time, news, or the end of the context.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}

// pushDue offers an Alertmanager everything that it has not accepted yet or that is to be kept alive, and then remembers what
// was accepted. A batch that it refuses does not hold up the others; one that does not reach it does.
func (n *Notifier) pushDue(ctx context.Context, s *sender) error {
	var refused []error
	var told []note
	defer func() { n.remember(told) }()
	for batch := range slices.Chunk(n.ours(n.due(s)), maxBatch) {
		err := s.push(ctx, batch)
		n.metrics.pushed(err)
		switch {
		case err == nil:
			told = append(told, n.taken(s, batch)...)
		case errors.Is(err, errRefused):
			refused = append(refused, err)
		default:
			return errors.Join(append(refused, err)...)
		}
	}
	return errors.Join(refused...)
}

// offer is one state of an alert on its way to an Alertmanager.
type offer struct {
	key      string
	identity string
	resolved bool
	revision uint64
	at       time.Time
	message  message
}

// due gives what is to be offered to an Alertmanager now, sorted by key.
func (n *Notifier) due(s *sender) []offer {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget()
	now := time.Now()
	var out []offer
	for _, key := range slices.Sorted(maps.Keys(n.alerts)) {
		t := n.alerts[key]
		if wait, ok := t.dueIn(s.index, now); ok && wait <= 0 {
			out = append(out, offer{
				key: key, identity: t.identity, resolved: t.resolved, revision: t.revision, at: now, message: t.message(now),
			})
		}
	}
	return out
}

// ours leaves out the offers about policies that are judged elsewhere by now, of which this process may not have heard yet:
// what has resolved there would fire again.
func (n *Notifier) ours(offers []offer) []offer {
	policies := make([]string, len(offers))
	for i := range offers {
		policies[i] = offers[i].policy()
	}
	n.notes.check(policies)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dropStrays()
	return slices.DeleteFunc(offers, func(o offer) bool { return !n.notes.here(o.policy()) })
}

func (o *offer) policy() string { return o.message.Labels["policy"] }

// dueIn says how long it is until an alert is to be offered to an Alertmanager, 0 where it has not accepted the
// current state; false where it knows all that there will be to tell.
func (t *tracked) dueIn(sender int, now time.Time) (time.Duration, bool) {
	last := t.accepted[sender]
	switch {
	case last.over:
		return 0, false
	case last.revision != t.revision:
		return 0, true
	case t.resolved:
		return 0, false
	default:
		return last.at.Add(resendEvery).Sub(now), true
	}
}

func (t *tracked) message(now time.Time) message {
	end := now.Add(firingFor)
	if t.resolved {
		end = t.endsAt
	}
	return message{Labels: t.labels, Annotations: t.annotations, StartsAt: t.startsAt.UTC(), EndsAt: end.UTC()}
}

// remember notes what an Alertmanager has taken.
func (n *Notifier) remember(told []note) {
	if err := n.notes.add(told); err != nil { // without the lock: nobody who brings news waits for a disk or a broker
		n.log.Error().Err(err).Msg("after a crash, alerts that were told may be told again")
	}
}

// taken remembers what an Alertmanager has taken, and gives its notes. An alert that changed meanwhile stays due.
func (n *Notifier) taken(s *sender, batch []offer) []note {
	n.mu.Lock()
	defer n.mu.Unlock()
	var told []note
	for _, o := range batch {
		t := n.alerts[o.key]
		if t == nil {
			continue
		}
		t.accepted[s.index] = accepted{revision: o.revision, at: o.at}
		told = append(told, o.note(s.url))
	}
	n.forget()
	return told
}

// untilDue gives the time until the next alert is to be offered to an Alertmanager.
func (n *Notifier) untilDue(s *sender) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, next := time.Now(), resendEvery
	for _, t := range n.alerts {
		if wait, ok := t.dueIn(s.index, now); ok {
			next = min(next, wait)
		}
	}
	return max(next, 0)
}

func incidentKey(i *Incident) string { return "incident/" + i.ID }

// faultKey is of the group alone, as the labels of its alert are.
func faultKey(f *Fault) string {
	return "fault/" + groupKey(f.Group)
}

// groupKey is an unambiguous text of a group.
func groupKey(g ingest.Group) string {
	key := string(appendText(nil, g.Policy))
	for _, l := range g.Labels() {
		key += string(appendText(appendText(nil, l.Name), l.Value))
	}
	return key
}
