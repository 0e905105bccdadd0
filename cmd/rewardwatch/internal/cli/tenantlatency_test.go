package cli

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
)

// The settings of TestLatencyBesideANoisyTenant.
var (
	noisyRate    = flag.Int("noisy-rate", 2000, "decisions per second of the noisy tenant")
	quietSamples = flag.Int("quiet-samples", 5, "decisions of the quiet tenant that are timed in each of three rounds, with and without noise")
)

// neighbors are two tenants with a topic each, in one service within the test process.
type neighbors struct {
	t      *testing.T
	client *kgo.Client
	at     *instance
	pagers int // number of policies of the quiet tenant that were measured
}

func newNeighbors(t *testing.T) *neighbors {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "quiet", "noisy"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	address := broker.ListenAddrs()[0]
	cfg, err := config.LoadForService(testkit.WriteConfig(t, fmt.Sprintf(`
ingest: {kafka: {brokers: [%q], topics: [{topic: quiet}, {topic: noisy}]}}
checkpoint: {every: 1s}
limits: {streams: 20000}
tenants:
  - {name: quiet, topics: [quiet]}
  - {name: noisy, topics: [noisy], quota: {policies: 20, streams: 1000, units_per_second: 200}}
policies:
  - {match: "quiet:pager-*", guards: {limits: [{name: never, actions: [drop], then: fallback}]}}
  - match: "*"
http: {listen: "127.0.0.1:0"}
`, address)))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &neighbors{t: t, client: client, at: startInstance(t, *cfg, 1)}
}

// judged returns the time from producing a decision of the quiet tenant until it is judged, as shown by its guard.
func (n *neighbors) judged() time.Duration {
	n.t.Helper()
	policy := fmt.Sprint("pager-", n.pagers)
	n.pagers++
	begun := time.Now()
	written := n.client.ProduceSync(n.t.Context(), &kgo.Record{Topic: "quiet", Value: decidedNow(policy, "a", "last", "drop", 1)})
	if err := written.FirstErr(); err != nil {
		n.t.Fatal(err)
	}
	for {
		if s, known := n.at.Pipeline.Guards("quiet:" + policy); known && s.State == guard.Fallback {
			return time.Since(begun)
		}
		if time.Since(begun) > time.Minute {
			n.t.Fatal("a decision of the quiet tenant is not judged")
		}
		<-time.After(time.Millisecond)
	}
}

// flood writes decisions of more policies, groups and agents than the noisy tenant may have, until ctx is done, and
// returns their number.
func (n *neighbors) flood(ctx context.Context, rate int) (written int) {
	const pulses = 20
	rng := rand.New(rand.NewPCG(8, 300))
	pulse := time.NewTicker(time.Second / pulses)
	defer pulse.Stop()
	for {
		select {
		case <-ctx.Done():
			return written
		case <-pulse.C:
		}
		for range rate / pulses {
			body := decidedNow(fmt.Sprint("bot-", rng.IntN(200)), fmt.Sprint("a-", rng.IntN(1000)), fmt.Sprint(written), []string{"a", "b", "c"}[rng.IntN(3)], rng.NormFloat64())
			n.client.Produce(ctx, &kgo.Record{Topic: "noisy", Value: body}, nil)
			written++
		}
		if err := n.client.Flush(ctx); err != nil {
			return written
		}
	}
}

// TestLatencyBesideANoisyTenant measures how long decisions of a quiet tenant wait to be judged beside a tenant that
// floods the service, compared with the time without it. It alternates between both, so that other work of the machine
// affects them equally.
func TestLatencyBesideANoisyTenant(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	n := newNeighbors(t)
	n.judged()
	rng := rand.New(rand.NewPCG(5, 300))
	sample := func() (took []time.Duration) {
		n.judged() // until the preceding decisions are judged
		for range *quietSamples {
			<-time.After(time.Duration(rng.Int64N(int64(100 * time.Millisecond))))
			took = append(took, n.judged())
		}
		return took
	}
	at := func(took []time.Duration, q float64) time.Duration {
		slices.Sort(took)
		return took[int(q*float64(len(took)-1)+.5)]
	}
	var alone, beside []time.Duration
	var flooded time.Duration
	noise, least := 0, math.Inf(1)
	for range 3 {
		without := sample()
		ctx, cancel := context.WithCancel(t.Context())
		var flooding sync.WaitGroup
		begun := time.Now()
		flooding.Go(func() { noise += n.flood(ctx, *noisyRate) })
		with := sample()
		cancel()
		flooding.Wait()
		flooded += time.Since(begun)
		least = min(least, float64(at(with, .5))/float64(at(without, .5)))
		alone, beside = append(alone, without...), append(beside, with...)
	}
	t.Logf("beside %.0f decisions/s of another tenant:", float64(noise)/flooded.Seconds())
	for _, q := range []float64{.5, .9, .99} {
		t.Logf("quantile %g: %s alone, %s beside it, ratio %.2f", q, at(alone, q).Round(time.Millisecond), at(beside, q).Round(time.Millisecond), float64(at(beside, q))/float64(at(alone, q)))
	}
	// The noise would delay each round; other work of the machine only affects one of them.
	if least > 1.5 {
		t.Errorf("beside a noisy tenant, decisions are judged at least %.2f times as late in every round", least)
	}
	if got := n.at.refused(t, "noisy"); got < noise/2 {
		t.Errorf("%d of %d decisions are beyond the quotas", got, noise)
	}
	if got := n.at.refused(t, "quiet"); got > 0 {
		t.Errorf("the quiet tenant has %d decisions too many", got)
	}
}

// refused returns the amount of any kind that a tenant had beyond its quotas.
func (i *instance) refused(t *testing.T, tenant string) int {
	t.Helper()
	families, err := i.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == names.MetricTenantRefused && slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == tenant }) {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return int(sum)
}
