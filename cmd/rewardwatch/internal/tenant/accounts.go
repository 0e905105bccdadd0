package tenant

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// The kinds of quotas: the values of the label kind.
const (
	policies      = "policies"
	groups        = "groups"
	streams       = "streams"
	openEpisodes  = "open_episodes"
	openDecisions = "open_decisions"
	units         = "units"
)

// Accounts count the usage of each tenant, and everything beyond its quota. They are safe for concurrent use.
type Accounts struct {
	tenants List
	streams []*capacity.StreamLimit // by index of the tenant; the last one is for policies without a tenant
	refused *prometheus.CounterVec
	quota   *prometheus.GaugeVec
	full    []atomic.Int64 // by index of the tenant, the time until which it is known to have too many policies, in Unix nanoseconds

	admitting sync.Mutex // held while a policy of a tenant is counted and added
	// Watched calls yield with the policies that are judged. It is set before anything is counted.
	Watched func(yield func(policy string) bool)
}

// Metrics that include the usage of streams, which is counted by the stream limits.
var (
	refusedOpts = prometheus.CounterOpts{
		Name: names.MetricTenantRefused,
		Help: "Policies, groups, streams, episodes, decisions and units that were not judged because of their tenant's quota, by kind.",
	}
	usedDesc    = prometheus.NewDesc(names.MetricTenantUsed, "Policies and streams of a tenant that are judged, by kind.", []string{"tenant", "kind"}, nil)
	policyDesc  = prometheus.NewDesc(names.MetricTenantPolicy, "The tenant that a policy belongs to. Always 1.", []string{"tenant", "policy"}, nil)
	refusedDesc = prometheus.NewDesc(refusedOpts.Name, refusedOpts.Help, []string{"tenant", "kind"}, nil)
)

// NewAccounts returns accounts without any usage. Without tenants, it registers no metric.
func NewAccounts(l List, limits Limits, reg prometheus.Registerer) *Accounts {
	labels := []string{"tenant", "kind"}
	a := &Accounts{
		tenants: l, refused: prometheus.NewCounterVec(refusedOpts, labels), Watched: func(func(string) bool) {},
		quota: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: names.MetricTenantQuota,
			Help: "Quota of a tenant, by kind. Quotas of open episodes, open decisions and units per second are per partition.",
		}, labels),
	}
	a.full = make([]atomic.Int64, len(l))
	parts := map[string][]int{
		streams: l.Streams(limits.Streams), openEpisodes: l.OpenEpisodes(limits.OpenEpisodes), openDecisions: l.OpenDecisions(limits.OpenDecisions),
	}
	for i, most := range parts[streams] {
		a.streams = append(a.streams, capacity.NewStreamLimit(most))
		for kind, part := range parts {
			a.quota.WithLabelValues(a.name(i), kind).Set(float64(part[i]))
		}
		for _, kind := range []string{policies, groups, openEpisodes, openDecisions, units} {
			a.refused.WithLabelValues(a.name(i), kind)
		}
	}
	for _, t := range l {
		if t.Quota.Policies > 0 {
			a.quota.WithLabelValues(t.Name, policies).Set(float64(t.Quota.Policies))
		}
		if t.Quota.UnitsPerSecond > 0 {
			a.quota.WithLabelValues(t.Name, units).Set(t.Quota.UnitsPerSecond)
		}
	}
	if len(l) > 0 {
		reg.MustRegister(a)
	}
	return a
}

// Describe implements prometheus.Collector.
func (a *Accounts) Describe(out chan<- *prometheus.Desc) {
	out <- usedDesc
	out <- policyDesc
	a.quota.Describe(out)
	a.refused.Describe(out)
}

// Collect implements prometheus.Collector.
func (a *Accounts) Collect(out chan<- prometheus.Metric) {
	a.quota.Collect(out)
	a.refused.Collect(out)
	watched := make([]int, len(a.streams))
	for policy := range a.Watched {
		i := a.tenants.Of(policy)
		if watched[i]++; i < len(a.tenants) {
			out <- prometheus.MustNewConstMetric(policyDesc, prometheus.GaugeValue, 1, a.name(i), strings.ToValidUTF8(policy, "\uFFFD"))
		}
	}
	for i, limit := range a.streams {
		out <- prometheus.MustNewConstMetric(usedDesc, prometheus.GaugeValue, float64(watched[i]), a.name(i), policies)
		out <- prometheus.MustNewConstMetric(usedDesc, prometheus.GaugeValue, float64(limit.Taken()), a.name(i), streams)
		out <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(limit.Refused()), a.name(i), streams)
	}
}

// name returns the label of a tenant, or "" for policies without a tenant.
func (a *Accounts) name(i int) string {
	if i < len(a.tenants) {
		return a.tenants[i].Name
	}
	return ""
}

// Over returns the counters for everything in a partition beyond the quota of a tenant, or of the policies without one.
func (a *Accounts) Over(i int) *assemble.Over {
	if a == nil {
		return nil
	}
	of := func(kind string) prometheus.Counter { return a.refused.WithLabelValues(a.name(i), kind) }
	return &assemble.Over{Policies: of(policies), Groups: of(groups), OpenEpisodes: of(openEpisodes), Units: of(units)}
}

// Decisions returns the counter of decisions beyond the quota.
func (a *Accounts) Decisions(i int) prometheus.Counter {
	if a == nil {
		return nil
	}
	return a.refused.WithLabelValues(a.name(i), openDecisions)
}

// Limit returns the stream limit that applies to a policy.
func (a *Accounts) Limit(policy string) *capacity.StreamLimit { return a.streams[a.tenants.Of(policy)] }

// Limits returns the stream limits; the last one is for policies without a tenant.
func (a *Accounts) Limits() []*capacity.StreamLimit { return a.streams }

// recount is the time for which a tenant is known to have too many policies. There may be many units of its excess
// policies, and counting takes long if many policies are judged.
const recount = time.Second

// Full reports whether the tenant of a policy already has the maximum number of other policies, and counts this if so.
func (a *Accounts) Full(policy string, now time.Time) bool {
	i := a.tenants.Of(policy)
	if i == len(a.tenants) || a.tenants[i].Quota.Policies == 0 {
		return false
	}
	if a.full[i].Load() > now.UnixNano() {
		a.refused.WithLabelValues(a.name(i), policies).Inc()
		return true
	}
	if a.others(i, policy) < a.tenants[i].Quota.Policies {
		return false
	}
	a.full[i].Store(now.Add(recount).UnixNano())
	a.refused.WithLabelValues(a.name(i), policies).Inc()
	return true
}

// others returns the number of judged policies of a tenant except one.
func (a *Accounts) others(i int, than string) (n int) {
	for other := range a.Watched {
		if other != than && a.tenants.Of(other) == i {
			n++
		}
	}
	return n
}

// Admit calls add, after which a policy is judged, unless the tenant is full. It reports whether it has called add.
// Partitions with new policies are admitted one after another, because each must count the policies before it.
func (a *Accounts) Admit(policy string, add func()) bool {
	i := a.tenants.Of(policy)
	if i == len(a.tenants) || a.tenants[i].Quota.Policies == 0 {
		add()
		return true
	}
	a.admitting.Lock()
	defer a.admitting.Unlock()
	if a.others(i, policy) >= a.tenants[i].Quota.Policies {
		a.refused.WithLabelValues(a.name(i), policies).Inc()
		return false
	}
	add()
	return true
}
