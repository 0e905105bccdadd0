package retrain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/command"
	"github.com/rewardwatch/rewardwatch/retrain/kubejob"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/target"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// byJob is the reporter recorded for a Job of Kubernetes.
const byJob = "kubernetes"

// CheckManifests returns the mistakes in the manifests of targets, and reports those that cannot be read.
func (c Config) CheckManifests(report func(path, msg string)) (problems []yamlfile.Problem) {
	for i, t := range c.Targets {
		problems = append(problems, t.CheckManifest(fmt.Sprintf("targets[%d]", i), report)...)
	}
	return problems
}

// followJobs makes the follower of the targets that are Kubernetes Jobs, if there is one.
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
	err := d.jobs.Run(ctx, d.ledger.Underway, d.reportJob)
	for errors.Is(err, ledger.ErrSuspended) && d.back(ctx) {
		err = d.jobs.Run(ctx, d.ledger.Underway, d.reportJob)
	}
	return unlessSuspended(err)
}

// reportJob records a report. kubejob.Report has the same words for the states as Report.
func (d *Desk) reportJob(ctx context.Context, request string, r kubejob.Report) error {
	err := d.reportEnd(ctx, request, byJob, command.Report(r))
	if settled(err) {
		return errors.Join(kubejob.ErrSettled, err)
	}
	return err
}
