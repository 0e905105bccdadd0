package app

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
)

// approvalEvery is the interval at which the service checks whether a request still waits for a person. Any instance
// may take the decision.
const approvalEvery = 10 * time.Second

// approvals remembers which alerts carry the link of a request that waits for a person. It need not be saved, since
// restoring a worker reconsiders its incidents.
type approvals struct {
	mu      sync.Mutex
	waiting map[string]approval // by incident
}

// approval is a request that waits, and when to check it again.
type approval struct {
	policy, request string
	next            time.Time
}

// keep remembers a request, or drops it if it no longer waits.
func (p *approvals) keep(i *alerts.Incident, request string, waits bool, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !waits {
		delete(p.waiting, i.ID)
		return
	}
	if p.waiting == nil {
		p.waiting = map[string]approval{}
	}
	p.waiting[i.ID] = approval{policy: i.Group.Policy, request: request, next: now.Add(approvalEvery)}
}

// due returns the requests of a policy to check now, by incident. They count as checked.
func (p *approvals) due(policy string, now time.Time) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out map[string]string
	for incident, w := range p.waiting {
		if w.policy != policy || now.Before(w.next) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[incident], w.next = w.request, now.Add(approvalEvery)
		p.waiting[incident] = w
	}
	return out
}

// forget drops the policies that other instances judge from now on.
func (p *approvals) forget(policies []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.waiting, func(_ string, w approval) bool { return slices.Contains(policies, w.policy) })
}

// askApproval puts the signed link of a request that waits for a person into the alerts of its incident, if that is
// configured, and removes it once the request is decided. An alert without it is better than none, so errors are logged.
func (a *App) askApproval(ctx context.Context, i *alerts.Incident, request string, now time.Time) {
	if !a.cfg.Alerts.ApprovalLinks || request == "" {
		return
	}
	q, err := a.retrain.Request(ctx, request)
	link := ""
	if err == nil {
		link, err = a.retrain.Link(ctx, q)
	}
	if err != nil {
		a.log.Warn().Err(err).Str("request", request).Msg("failed to create the approval link for an alert")
		return
	}
	a.approvals.keep(i, request, link != "" && !i.Closed, now)
	a.notifier.AskApproval(i, request, link)
}
