//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/metrics"
)

// cluster prepares several instances in one group, which share a ledger on PostgreSQL and push to Alertmanager unless
// alerts is nil.
func (s setting) cluster(t *testing.T, topic string, instances int, ledger *postgresql, alerts *alertmanager) *disturbed {
	t.Helper()
	d := s.prepare(t, topic)
	d.alerts = alerts
	d.read = 2 * loadPartitions // of telemetry and of units
	for range instances {
		i := d.add(t, s.broker.address, ledger)
		replaceIn(t, i.config, "\ncheckpoint:\n",
			fmt.Sprintf("\ncluster: {units_topic: %s-units, checkpoints_topic: %[1]s-checkpoints}\n\ncheckpoint:\n", topic))
	}
	return d
}

// nextVersion is the version of the build that replaces the current one.
const nextVersion = "v999.0.0"

// joinedAndLeft kills one of three instances, stops another one, and restarts both. Then it replaces each instance with
// the next build: one before incidents open, one while they open, and one while they are open. Every incident is paged
// once.
func (s setting) joinedAndLeft(t *testing.T) {
	next := buildWith(t, "-ldflags=-X=github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/app.version="+nextVersion)
	alerts := startAlertmanager(t, "group_by: [alertname, policy]", "group_by: ['...']") // one alert per page
	d := s.cluster(t, "joined-and-left", 3, startPostgreSQL(t), alerts)
	d.begin(t, 9)
	d.judged(t, 100)
	first, second := d.owner(t, "spread"), d.owner(t, "apart")
	first.kill(t)
	if second == first {
		second = d.others(first)[0]
	}
	second.stop(t)
	d.judged(t, 250)
	first.launch(t)
	second.launch(t)
	for n, units := range []int{soundFirst - 60, soundFirst + 10, soundFirst + spoiltFor/2} {
		d.judged(t, units)
		d.upgrade(t, d.instances[n], next)
	}
	d.judged(t, soundFirst+spoiltFor)
	d.nothingLostNothingTwice(t)
	d.pagedOnce(t)
	d.stop(t)
}

// upgrade replaces an instance with one of another build, like a rolling upgrade: it returns once the new instance is
// ready.
func (d *disturbed) upgrade(t *testing.T, s *service, binary string) {
	t.Helper()
	before := s.build(t)
	s.stop(t)
	s.binary = binary
	s.start(t)
	if after := s.build(t); after == before || !strings.Contains(after, nextVersion) {
		t.Fatalf("the build %s was replaced by %s", before, after)
	}
}

// pagedOnce checks that each incident that a replay finds is reported once when it opens and at most once when it
// closes, and that nothing else is reported. Another severity is reported as another alert.
func (d *disturbed) pagedOnce(t *testing.T) {
	t.Helper()
	want := map[string]bool{}
	for _, a := range d.replayed {
		want[a.Incident] = true
	}
	eventually(t, "every incident is paged once", func() error {
		told := map[string]bool{}
		for page, times := range d.alerts.pager.incidents() {
			if times != 1 || !want[page.incident] {
				t.Fatalf("%+v was told %d times; a replay finds %v", page, times, want)
			}
			if page.status == "firing" {
				told[page.incident] = true
			}
		}
		if len(told) != len(want) {
			return fmt.Errorf("%v were told; a replay finds %v", told, want)
		}
		return nil
	})
	t.Logf("%d incidents, told by %d pages", len(want), len(d.alerts.pager.incidents()))
}

// owner returns the instance that judges a policy.
func (d *disturbed) owner(t *testing.T, policy string) (owner *service) {
	t.Helper()
	eventually(t, "an instance judges "+policy, func() error {
		for _, s := range d.instances {
			if _, err := s.samples(metrics.MetricUnits, map[string]string{"policy": policy}); err == nil {
				owner = s
				return nil
			}
		}
		return fmt.Errorf("none of %d does", len(d.instances))
	})
	return owner
}

// others returns all instances except one.
func (d *disturbed) others(than *service) (others instances) {
	for _, s := range d.instances {
		if s != than {
			others = append(others, s)
		}
	}
	return others
}

// stop stops all instances as their supervisors would.
func (d *disturbed) stop(t *testing.T) {
	t.Helper()
	for _, s := range d.instances {
		s.stop(t)
	}
}

// member is an instance that starts and ends at random.
type member struct {
	*service
	launched time.Time
	paused   time.Time // zero if it is not paused
}

const (
	pausedFor = 15 * time.Second // minimum duration of a pause, longer than a session of the consumer group
	startsFor = 5 * time.Second  // time that a process may need to handle signals
)

// churn changes the state of an instance: it starts it if it is not running, and otherwise stops, kills or pauses it,
// or resumes it if it has been paused for long enough.
func (m *member) churn(t *testing.T, rng *rand.Rand) {
	t.Helper()
	chance := rng.IntN(3)
	switch {
	case m.process == nil || !m.paused.IsZero():
		if time.Since(m.paused) >= pausedFor {
			m.settle(t)
		}
	case chance == 0 && time.Since(m.launched) > startsFor:
		m.stop(t)
	case chance == 1:
		m.signal(t, syscall.SIGSTOP)
		m.paused = time.Now()
	default:
		m.kill(t)
	}
}

// settle makes sure that an instance is running.
func (m *member) settle(t *testing.T) {
	t.Helper()
	switch {
	case m.process == nil:
		m.launch(t)
		m.launched = time.Now()
	case !m.paused.IsZero():
		m.signal(t, syscall.SIGCONT)
		m.paused = time.Time{}
	}
}
