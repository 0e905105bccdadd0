package engine

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/tenant"
)

// BenchmarkTenants reports how much tenants with quotas add to the cost of an event from its message to the bank, as a
// ratio of CPU times. Two services judge the same messages in turns, so that other work of the machine affects both.
func BenchmarkTenants(b *testing.B) {
	const (
		events = 200_000
		rounds = 9
	)
	for _, kind := range []struct {
		name  string
		steps int
	}{{"episodes of 50 steps", 50}, {"one-step decisions", 1}} {
		b.Run(kind.name, func(b *testing.B) {
			quota := tenant.Quota{Policies: pathPolicies, Streams: 1000, OpenEpisodes: 1000, UnitsPerSecond: 10 * pathRate}
			services := [2]*path{startPath(b, kind.steps, false), startPath(b, kind.steps, false,
				tenant.Config{Name: "ads", Policies: []string{"policy-00*"}, Quota: quota},
				tenant.Config{Name: "shop", Policies: []string{"policy-01*"}, Quota: quota})}
			for _, p := range services {
				p.warm(550 * pathPolicies * kind.steps)
			}
			if with := services[1].tenants.Limit("policy-000"); with == services[0].tenants.Limit("policy-000") {
				b.Fatal("there are no tenants")
			}
			var ratios []float64
			for range b.N * rounds {
				var spent [2]time.Duration
				for i, p := range services {
					p.record(events)
					runtime.GC()
					begun := cpu()
					b.StartTimer()
					p.judge()
					b.StopTimer()
					spent[i] = cpu() - begun
					p.save()
				}
				ratios = append(ratios, float64(spent[1])/float64(spent[0]))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "times-without")
			b.ReportMetric(ratios[len(ratios)/4], "lower-quartile")
			b.ReportMetric(ratios[len(ratios)*3/4], "upper-quartile")
			for _, p := range services {
				_ = p.Stop()
			}
		})
	}
}
