package retrain

import (
	"context"
	"fmt"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/kubejob"
	"github.com/rewardwatch/rewardwatch/retrain/target"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// byJob is the reporter recorded for a Job of Kubernetes.
const byJob = "kubernetes"

// CheckManifests returns the mistakes in the targets' manifests, and reports manifests that cannot be read.
func (c Config) CheckManifests(report func(path, msg string)) (problems []yamlfile.Problem) {
	for i, t := range c.Targets {
		problems = append(problems, t.CheckManifest(fmt.Sprintf("targets[%d]", i), report)...)
	}
	return problems
}

// followJobs creates the follower of the targets that are Kubernetes Jobs, if there are any.
func (d *Desk) followJobs(with target.Means) error {
	clients, err := target.Clusters(d.cfg.Targets, with)
	if err != nil || len(clients) == 0 {
		return err
	}
	d.jobs = kubejob.NewFollower(clients, func(name string) time.Duration {
		t, _ := d.cfg.target(name)
		return time.Duration(t.Timeout)
	}, d.log)
	return nil
}

// watchJobs reports on Jobs until ctx ends or the ledger fails.
func (d *Desk) watchJobs(ctx context.Context) error {
	if d.jobs == nil {
		<-ctx.Done()
		return nil
	}
	return d.watch(ctx, func() error { return d.jobs.Run(ctx, d.ledger.Underway, d.reporter(byJob)) })
}
