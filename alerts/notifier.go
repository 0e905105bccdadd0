package alerts

import (
	"context"
	"errors"
	"fmt"
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
	// resendEvery is the interval at which a firing alert is sent again, and firingFor how long Alertmanager then keeps it
	// firing. So the alerts of a notifier that is gone for good resolve, and a live one can miss three sends.
	resendEvery = 30 * time.Second
	firingFor   = 4 * resendEvery
	// resolvedFor is how long a resolved alert is offered to an Alertmanager that does not accept it. By then its last
	// firing state has long expired there.
	resolvedFor = 15 * time.Minute

	minBackoff = time.Second
	maxBackoff = resendEvery
	maxBatch   = 64 // alerts per push
)

// Notifier pushes incidents and telemetry faults to Alertmanagers and keeps them alive while they last. It holds the
// latest state of each, not a queue: a slow Alertmanager delays alerts, but none is lost. Update and Resync may be
// called by several goroutines.
type Notifier struct {
	log     zerolog.Logger
	metrics notifierMetrics
	senders []*sender
	notes   *Notes
	links   Links

	mu       sync.Mutex
	alerts   map[string]*tracked // by key
	asked    map[string]string   // approval links of the incidents' retrain requests, by key
	revision uint64              // newest revision of any alert, so that an alert that starts again does not count as accepted
}

// tracked is an alert with the newest state that each Alertmanager has accepted.
type tracked struct {
	alert
	startsAt time.Time
	endsAt   time.Time  // when it resolved; zero while it fires
	revision uint64     // of the newest state that must be pushed at once
	accepted []accepted // of each sender
	first    time.Time  // when one first accepted this firing
}

// accepted is the newest state of an alert that an Alertmanager has accepted, and when it was sent; zero if none.
type accepted struct {
	revision uint64
	at       time.Time
	over     bool // before a crash, it accepted the end of this firing: there is nothing left to send
}

// NewNotifier returns a notifier for every URL of a configuration that has passed Check. Without URLs it does nothing.
// States that were already sent, according to the notes, are not sent again; notes may be nil. NewNotifier fails if a
// secret or a certificate cannot be used.
func NewNotifier(cfg AlertmanagerConfig, links Links, notes *Notes, log zerolog.Logger, reg prometheus.Registerer) (*Notifier, error) {
	transport, err := cfg.transport()
	if err != nil {
		return nil, fmt.Errorf("alertmanager: %w", err)
	}
	n := &Notifier{log: log, notes: notes, links: links, alerts: map[string]*tracked{}, asked: map[string]string{}}
	n.metrics = newNotifierMetrics(reg, len(cfg.URLs), n.unconfirmed)
	client := &http.Client{
		Transport: transport, Timeout: time.Duration(cfg.Timeout),
		// A redirected POST becomes a GET, which is answered with 200 but delivers no alert.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for i, url := range cfg.URLs {
		n.senders = append(n.senders, &sender{
			index: i, url: strings.TrimSuffix(url, "/") + "/api/v2/alerts", client: client, wake: make(chan struct{}, 1),
		})
	}
	return n, nil
}

// Join loads what was sent about the policies of a partition, which this instance judges from now on. The caller then
// resyncs their incidents and faults. Join is called only if the notes are those of several instances.
func (n *Notifier) Join(partition int32, journal Journal) { n.notes.join(partition, journal) }

// Leave drops the alerts of the policies of a partition without notifying Alertmanager: another instance judges them
// now and sends their alerts. It is called only if the notes are those of several instances.
func (n *Notifier) Leave(partition int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes.leave(partition)
	n.dropStrays()
}

// dropStrays drops the alerts of policies that another instance judges. The caller holds the lock.
func (n *Notifier) dropStrays() {
	maps.DeleteFunc(n.alerts, func(key string, t *tracked) bool {
		stray := !n.notes.here(t.labels["policy"])
		if stray {
			delete(n.asked, key)
		}
		return stray
	})
}

// Resync takes over the open incidents and faults that were restored at startup. It skips closed and muted ones: their
// remaining alerts in Alertmanager expire on their own.
func (n *Notifier) Resync(incidents []Incident, faults []Fault) {
	n.mu.Lock()
	for k := range incidents {
		if i := &incidents[k]; !i.Closed && !i.IsMuted() {
			n.putIncident(i)
		}
	}
	for k := range faults {
		if f := &faults[k]; !f.Ended {
			n.put(faultKey(f), n.links.faultAlert(f))
		}
	}
	n.mu.Unlock()
	n.wake()
}

// Update takes the changes of a Tracker and returns immediately. An alert that is new, has resolved, or has different
// signals or a different cause is pushed immediately. Updated scores are sent with the next push that keeps the alert
// alive.
func (n *Notifier) Update(changes []Change) {
	n.mu.Lock()
	news := false
	for _, c := range changes {
		switch {
		case c.Fault != nil:
			news = n.put(faultKey(c.Fault), n.links.faultAlert(c.Fault)) || news
		case c.Incident != nil:
			news = n.putIncident(c.Incident) || news
		}
	}
	n.mu.Unlock()
	if news {
		n.wake()
	}
}

// putIncident stores the latest state of an incident's alert. When that resolves, so does the alert that asks for an
// approval. It reports whether there is something to push at once. The caller holds the lock.
func (n *Notifier) putIncident(i *Incident) bool {
	a := n.links.incidentAlert(i)
	news := n.put(incidentKey(i), a)
	if a.resolved {
		news = n.put(approvalKey(i), n.links.approvalAlert(i, "", "")) || news
	}
	return news
}

// put stores the latest state of an alert and reports whether it must be pushed at once. The caller holds the lock.
func (n *Notifier) put(key string, a alert) bool {
	if len(n.senders) == 0 || !n.notes.here(a.labels["policy"]) {
		return false // otherwise it would count as unconfirmed, or be kept alive, for ever
	}
	n.forget()
	now := time.Now()
	t := n.alerts[key]
	relabelled := t != nil && !t.resolved && !maps.Equal(t.labels, a.labels)
	if relabelled {
		n.end(key, t, a, now)
		t = nil
	}
	if a.resolved {
		delete(n.asked, key)
	} else if link := n.asked[key]; link != "" {
		a.annotations[approvalURL] = link
	}
	if t == nil && a.resolved {
		return relabelled // otherwise it was never sent, for example because it was muted
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
	if begins && !relabelled {
		n.recall(key, t)
	}
	return true
}

// end resolves an alert that continues with other labels, such as another severity, which Alertmanager treats as a
// different alert. The last message says so, or people would believe that the incident has closed. The caller holds the
// lock.
func (n *Notifier) end(key string, t *tracked, next alert, now time.Time) {
	ended := *t
	n.revision++
	ended.resolved, ended.endsAt, ended.revision = true, now, n.revision
	from, to := t.labels["severity"], next.labels["severity"]
	if !next.resolved {
		ended.annotations = maps.Clone(t.annotations) // a push may be reading it
		ended.annotations["summary"] += "; the incident continues with severity " + to
		ended.annotations["description"] = "The severity of the incident changed from " + from + " to " + to + ". This alert resolves, and an alert with the new severity fires."
	}
	n.alerts[key+" "+from] = &ended
}

// AskApproval sets the address at which people approve or reject an incident's retrain request that is waiting for
// approval; "" if it is no longer waiting. The address is added to the alert of the incident. Alertmanager does not
// repeat a message because of it, so a separate alert, RetrainAwaitsApproval, sends the address to the channels that
// were notified of the incident. Firing alerts are pushed immediately.
func (n *Notifier) AskApproval(i *Incident, request, link string) {
	n.mu.Lock()
	news := n.ask(i, request, link)
	n.mu.Unlock()
	if news {
		n.wake()
	}
}

// ask stores the address for the alerts, and reports whether one must be pushed. The caller holds the lock.
func (n *Notifier) ask(i *Incident, request, link string) bool {
	key := incidentKey(i)
	if n.asked[key] == link || len(n.senders) == 0 || i.Closed || i.IsMuted() {
		return false
	}
	n.asked[key] = link
	if link == "" {
		delete(n.asked, key)
	}
	news := n.put(approvalKey(i), n.links.approvalAlert(i, request, link))
	t := n.alerts[key]
	if t == nil || t.resolved {
		return news
	}
	t.annotations = maps.Clone(t.annotations) // a push may be reading it
	t.annotations[approvalURL] = link
	if link == "" {
		delete(t.annotations, approvalURL)
	}
	n.revision++
	t.revision = n.revision
	return true
}

// recall restores from the notes what each Alertmanager was sent of an alert before a crash. The caller holds the lock.
func (n *Notifier) recall(key string, t *tracked) {
	for i, s := range n.senders {
		told, any := n.notes.last(s.url, key, t.labels["policy"], t.identity)
		switch {
		case any && told.Resolved:
			t.accepted[i].over = true
		case any && told.Summary == t.annotations["summary"]:
			t.accepted[i] = accepted{revision: t.revision, at: told.At}
			t.since(told.At)
		}
	}
}

// since remembers the first time that an Alertmanager accepted the alert.
func (t *tracked) since(at time.Time) {
	if t.first.IsZero() || at.Before(t.first) {
		t.first = at
	}
}

// knows reports whether an Alertmanager has accepted the current state of an alert.
func (t *tracked) knows(sender int) bool {
	last := t.accepted[sender]
	return last.over || last.revision == t.revision
}

// startOf returns the time at which an alert starts, by the events' clock if there is one. A start in the future
// becomes now, because Alertmanager refuses alerts that start after their end.
func startOf(a alert, now time.Time) time.Time {
	start := time.Unix(0, a.startTS)
	if a.startTS == 0 || start.After(now) {
		return now
	}
	return start
}

// forget drops resolved alerts that every Alertmanager has accepted or that are no longer offered. The caller holds the
// lock.
func (n *Notifier) forget() {
	now := time.Now()
	maps.DeleteFunc(n.alerts, func(_ string, t *tracked) bool {
		return t.resolved && (t.acceptedByAll() || now.Sub(t.endsAt) > resolvedFor)
	})
}

func (t *tracked) acceptedByAll() bool { return t.takers() == len(t.accepted) }

// takers returns the number of Alertmanagers that have accepted the current state of an alert.
func (t *tracked) takers() int {
	n := 0
	for i := range t.accepted {
		if t.knows(i) {
			n++
		}
	}
	return n
}

// unconfirmed returns the number of alerts that no Alertmanager has accepted in their current state.
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

// wake tells every sender that there is something new to push.
func (n *Notifier) wake() {
	for _, s := range n.senders {
		select {
		case s.wake <- struct{}{}:
		default: // an earlier signal is still pending
		}
	}
}

// Run pushes until the context ends. It then finishes the pushes in progress, pushes alerts that have not been accepted
// once more, and returns nil. Each batch of at most maxBatch alerts may take the configured timeout. Firing alerts are
// not resolved: the service takes them over after a restart.
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

// serve pushes to one Alertmanager until the context ends.
func (n *Notifier) serve(ctx context.Context, s *sender) {
	push := context.WithoutCancel(ctx) // the end of ctx does not interrupt a push; the client's timeout bounds it
	failures := 0
	for ctx.Err() == nil {
		wait, wake := time.Duration(0), s.wake
		if err := n.pushDue(push, s); err != nil {
			failures++
			wait = backoff(failures)
			wake = nil // a new alert does not shorten the backoff
			n.log.Warn().Err(err).Str("alertmanager", s.url).Stringer("retry_in", wait).Msg("Alertmanager did not accept alerts")
		} else {
			failures = 0
			wait = n.untilDue(s)
		}
		sleep(ctx, wait, wake)
	}
	if err := n.pushDue(push, s); err != nil {
		n.log.Error().Err(err).Str("alertmanager", s.url).Msg("stopping before Alertmanager has accepted all alerts")
	}
}

// backoff doubles from minBackoff to maxBackoff, less a random part of up to a half, so that several instances do not
// retry at the same moment.
func backoff(failures int) time.Duration {
	d := maxBackoff
	if shift := failures - 1; shift < 10 {
		d = min(minBackoff<<shift, maxBackoff)
	}
	return d - rand.N(d/2)
}

// sleep waits for a time, a wake-up, or the end of the context.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}

// pushDue offers an Alertmanager everything that it has not accepted yet or that must be kept alive, and then records
// what it accepted. A refused batch does not hold up the others; an Alertmanager that cannot be reached does.
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

// due returns what to offer to an Alertmanager now, sorted by key.
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

// ours drops the offers about policies that another instance judges by now, which this process may not know yet.
// Without this, alerts that have resolved there would fire again.
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

// dueIn returns the time until an alert must be offered to an Alertmanager: 0 if it has not accepted the current state,
// false if there is nothing more to send.
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
	return message{Labels: t.labels, Annotations: t.annotations, StartsAt: t.startsAt.UTC(), EndsAt: end.UTC(), Generator: t.generator}
}

// remember records what an Alertmanager has accepted.
func (n *Notifier) remember(told []note) {
	if err := n.notes.add(told); err != nil { // without the lock: Update and Resync must not wait for a disk or a broker
		n.log.Error().Err(err).Msg("failed to record sent alerts; they may be sent again after a crash")
	}
}

// taken marks a batch as accepted by an Alertmanager and returns its notes. An alert that has changed since stays due.
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
		t.since(o.at)
		told = append(told, o.note(s.url))
	}
	n.forget()
	return told
}

// untilDue returns the time until the next alert must be offered to an Alertmanager.
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

func approvalKey(i *Incident) string { return "approval/" + i.ID }

// faultKey depends on the group alone, as the labels of the alert do.
func faultKey(f *Fault) string {
	return "fault/" + groupKey(f.Group)
}

// groupKey returns an unambiguous text for a group.
func groupKey(g ingest.Group) string {
	key := string(appendText(nil, g.Policy))
	for _, l := range g.Labels() {
		key += string(appendText(appendText(nil, l.Name), l.Value))
	}
	return key
}
