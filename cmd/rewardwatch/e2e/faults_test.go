//go:build e2e && faults

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// TestFaults subjects the service under load to faults, one after the other, each on a separate topic.
func TestFaults(t *testing.T) {
	proxy := startProxy(t)
	s := setting{broker: startBroker(t, proxy.Listen), binary: build(t)}
	proxy.reach(t, s.broker.address)
	t.Run("killed at random moments", s.killed)
	t.Run("broker restarted", s.brokerRestarted)
	t.Run("connections cut", func(t *testing.T) { s.connectionsCut(t, proxy) })
	t.Run("paused past its session", s.paused)
	t.Run("disk full", s.diskFull)
	t.Run("PostgreSQL restarted", s.postgresqlRestarted)
	t.Run("instances join and leave", s.churned)
}

// brokerRestarted restarts the broker three times.
func (s setting) brokerRestarted(t *testing.T) {
	d := s.disturb(t, "broker-restarted", s.broker.address, 3)
	for _, units := range []int{100, 300, soundFirst} {
		d.judged(t, units)
		s.broker.down(t, 0)
	}
	d.judged(t, soundFirst+spoiltFor)
	d.nothingLostNothingTwice(t)
	d.service.stop(t)
}

// connectionsCut connects the service to the broker through a proxy that cuts all or some of its connections, most
// often while a fetch is inside a record batch, delays them, and is unavailable for a while.
func (s setting) connectionsCut(t *testing.T, proxy *proxy) {
	d := s.disturb(t, "connections-cut", proxy.Listen, 4)
	rng := rand.New(rand.NewPCG(4, 4))
	for i := range 40 {
		pause := time.Duration(rng.Int64N(int64(3 * time.Second)))
		switch i % 4 {
		case 0: // some are silent for a while and are then cut, while the others continue
			pause = 3*time.Second + pause
			proxy.toxic(t, fmt.Sprintf(`{"name":"cut","type":"timeout","toxicity":0.3,"attributes":{"timeout":%d}}`, pause.Milliseconds()-500))
		case 1: // in the middle of an answer, or of the batch in it
			proxy.toxic(t, fmt.Sprintf(`{"name":"cut","type":"limit_data","attributes":{"bytes":%d}}`, 100+rng.IntN(60_000)))
		case 2:
			proxy.toxic(t, fmt.Sprintf(`{"name":"cut","type":"reset_peer","attributes":{"timeout":%d}}`, rng.IntN(1000)))
		case 3:
			proxy.toxic(t, `{"name":"cut","type":"latency","attributes":{"latency":700,"jitter":600}}`)
		}
		wait(t, pause)
		proxy.Toxics.ResetToxics(t.Context())
		if i%10 == 9 {
			proxy.Stop()
			wait(t, time.Duration(rng.Int64N(int64(15*time.Second))))
			if err := proxy.Start(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if lost, err := d.service.samples(ingest.MetricReconnects, map[string]string{"reason": "connection"}); err != nil || lost[0] == 0 {
		t.Errorf("no connection of a partition was cut: %v, %v", lost, err)
	}
	d.judged(t, soundFirst+spoiltFor)
	d.nothingLostNothingTwice(t)
	d.service.stop(t)
}

// paused stops the process for longer than its session in the group, resumes it, and repeats this.
func (s setting) paused(t *testing.T) {
	d := s.disturb(t, "paused", s.broker.address, 5)
	for _, units := range []int{100, soundFirst} {
		d.judged(t, units)
		d.service.signal(t, syscall.SIGSTOP)
		wait(t, 20*time.Second)
		d.service.signal(t, syscall.SIGCONT)
	}
	d.judged(t, soundFirst+spoiltFor)
	d.nothingLostNothingTwice(t)
	d.service.stop(t)
}

// diskFull limits the files of the service to a few bytes, kills it in this state, and removes the limit. In the
// meantime, the service continues, and reports that it cannot save.
func (s setting) diskFull(t *testing.T) {
	d := s.disturb(t, "disk-full", s.broker.address, 6)
	for _, units := range []int{100, soundFirst / 2} {
		d.judged(t, units)
		d.limitFiles(t, 16)
		for _, kind := range []string{"partition", "bank"} {
			eventually(t, "a checkpoint of kind "+kind+" fails", func() error {
				return atLeast(1)(d.service.largest(ingest.MetricCheckpointFailure, map[string]string{"kind": kind}))
			})
		}
		d.judged(t, units+50)
		d.service.kill(t)
		d.service.launch(t)
	}
	d.judged(t, soundFirst-50)
	d.limitFiles(t, 16)
	wait(t, 20*time.Second) // incidents open
	d.limitFiles(t, unix.RLIM_INFINITY)
	d.judged(t, soundFirst+spoiltFor)
	d.nothingLostNothingTwice(t)
	d.service.stop(t)
}

// postgresqlRestarted restarts the ledger's PostgreSQL, stops it while an incident opens, and stops it while a webhook
// is being sent.
func (s setting) postgresqlRestarted(t *testing.T) {
	ledger := startPostgreSQL(t)
	d := s.prepare(t, "postgresql-restarted")
	d.add(t, s.broker.address, ledger)
	d.begin(t, 8)
	d.judged(t, 100)
	ledger.down(t, 0)
	d.judged(t, soundFirst)
	ledger.down(t, 20*time.Second)
	d.judged(t, soundFirst+spoiltFor+soundAgain)
	select {
	case <-d.trainer.arrived:
	case <-time.After(patience):
		t.Fatal("no webhook came")
	}
	ledger.down(t, 5*time.Second)
	d.judged(t, soundFirst+2*spoiltFor+soundAgain)
	d.nothingLostNothingTwice(t)
	d.service.stop(t)
}

// churned makes three instances leave, be killed, be paused beyond their sessions and rejoin, at random times.
// Occasionally, it restarts the broker or the ledger in the meantime.
func (s setting) churned(t *testing.T) {
	ledger := startPostgreSQL(t)
	d := s.cluster(t, "churned", 3, ledger, nil)
	d.begin(t, 10)
	var members []*member
	for _, i := range d.instances {
		members = append(members, &member{service: i})
	}
	rng := rand.New(rand.NewPCG(10, 10))
	for turn := range *kills {
		wait(t, time.Duration(rng.Int64N(int64(killedWithin))))
		members[rng.IntN(len(members))].churn(t, rng)
		switch turn % 20 {
		case 9:
			s.broker.down(t, 0)
		case 19:
			ledger.down(t, 0)
		}
	}
	for _, m := range members {
		m.settle(t)
	}
	d.judged(t, soundFirst+spoiltFor+soundAgain/2)
	d.nothingLostNothingTwice(t)
	d.stop(t)
}

// limitFiles makes every write of the service beyond a size fail, as on a full disk.
func (d *disturbed) limitFiles(t *testing.T, size uint64) {
	t.Helper()
	limit := unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(d.service.process.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Fatal(err)
	}
}

// proxy stands between the service and the broker.
type proxy struct{ *toxiproxy.Proxy }

// startProxy reserves an address, which leads nowhere until reach is called.
func startProxy(t *testing.T) *proxy {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	return &proxy{toxiproxy.NewProxy(server, "kafka", net.JoinHostPort("127.0.0.1", deploytest.FreePorts(t, 1)[0]), "")}
}

// reach directs connections to a broker from now on.
func (p *proxy) reach(t *testing.T, broker string) {
	t.Helper()
	p.Upstream = broker
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
}

// toxic disturbs what the broker sends.
func (p *proxy) toxic(t *testing.T, json string) {
	t.Helper()
	if _, err := p.Toxics.AddToxicJson(strings.NewReader(json)); err != nil {
		t.Fatal(err)
	}
}
