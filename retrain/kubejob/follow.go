package kubejob

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/retrain/training"
)

// lookEvery is how often Jobs are checked.
const lookEvery = 5 * time.Second

// logEvery is how often the log of a running Job is read, in checks. Kubernetes deletes the pods of a Job that
// reaches its time limit, together with their logs.
const logEvery = 6

// logTries is how often the service tries to read a log before it reports without it.
const logTries = 6

// podTries is how often the service asks for the pods of a Job that has ended before it reports without them, if
// its role does not permit that: 5 minutes, in which the role can be corrected.
const podTries = 60

// Follower reports on Jobs. It keeps no state that must survive a restart.
type Follower struct {
	clusters map[string]*cluster // by target
	timeout  func(target string) time.Duration
	log      zerolog.Logger
	every    time.Duration
}

// cluster is where the Jobs of a target run. Only one goroutine uses it.
type cluster struct {
	client *Client
	known  map[string]*followed // by request
}

// followed is what a Follower remembers of a Job.
type followed struct {
	started   bool
	seen      bool   // whether its Job existed
	complaint string // last logged error, "" after a success
	looks     int
	refused   int    // refused requests for its pods since it ended
	tries     int    // failed requests for its log since it ended
	pod       *pod   // last known pod
	log       string // last known log
}

// NewFollower returns a follower of the Jobs of targets. An answer of the API server must arrive within the timeout of
// the target.
func NewFollower(clients map[string]*Client, timeout func(target string) time.Duration, log zerolog.Logger) *Follower {
	f := &Follower{clusters: map[string]*cluster{}, timeout: timeout, log: log, every: lookEvery}
	for target, client := range clients {
		f.clusters[target] = &cluster{client, map[string]*followed{}}
	}
	return f
}

// Run reports on the Jobs of requests until the context ends. underway returns the targets of those that have not ended,
// by request; targets of other kinds are ignored. The error is the first one of underway or of the Reporter, which are
// called concurrently for different targets: a slow API server delays only its own requests.
func (f *Follower) Run(ctx context.Context, underway func(context.Context) (map[string]string, error), report training.Reporter) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	errs := make(chan error, len(f.clusters))
	for target := range f.clusters {
		watching.Go(func() {
			defer cancel()
			errs <- f.watch(ctx, target, underway, report)
		})
	}
	watching.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// watch reports on the Jobs of a target.
func (f *Follower) watch(ctx context.Context, target string, underway func(context.Context) (map[string]string, error), report training.Reporter) error {
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	for {
		requests, err := underway(ctx)
		if err == nil {
			err = f.look(ctx, target, requests, report)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look checks all Jobs of a target once, until its API server does not answer.
func (f *Follower) look(ctx context.Context, target string, underway map[string]string, report training.Reporter) error {
	c := f.clusters[target]
	maps.DeleteFunc(c.known, func(request string, _ *followed) bool { return underway[request] != target })
	for _, request := range slices.Sorted(maps.Keys(underway)) {
		if underway[request] != target {
			continue
		}
		if c.known[request] == nil {
			c.known[request] = &followed{}
		}
		err := f.follow(ctx, c, request, target, report)
		if errors.Is(err, errAway) {
			return nil // each of the others would wait for the timeout too
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errAway means that the API server could not be reached, or that the answer was not from an API server.
var errAway = errors.New("no usable response")

// follow reports how far a Job has got, unless that was reported already. The error is errAway or one of the
// Reporter's.
func (f *Follower) follow(ctx context.Context, c *cluster, request, target string, report training.Reporter) error {
	known := c.known[request]
	looking, cancel := context.WithTimeout(ctx, f.timeout(target))
	defer cancel()
	r, err := known.look(looking, c.client, request)
	switch {
	case err == nil:
		known.complaint = ""
	case known.complaint != err.Error() && ctx.Err() == nil: // logged once: the next look finds it again
		known.complaint = err.Error()
		f.log.Warn().Err(err).Str("request", request).Str("target", target).Msg("failed to check the Job for a request, retrying")
	}
	if errors.Is(err, errAway) {
		return err
	}
	if err != nil || r.State == "" || r.State == training.Started && known.started {
		return nil
	}
	if err := report(ctx, request, r); errors.Is(err, training.ErrSettled) {
		f.log.Info().Err(err).Str("request", request).Str("state", r.State).Str("error", r.Error).Msg("a request no longer accepts reports from its Job")
	} else if err != nil {
		return fmt.Errorf("report the Job of %s: %w", request, err)
	}
	known.started = true
	return nil
}

// look returns the report on a Job, without a state if there is none yet.
func (k *followed) look(ctx context.Context, c *Client, request string) (training.Report, error) {
	j, err := c.job(ctx, request)
	switch {
	case missing(err) && k.seen:
		return training.Report{State: training.Failed, Error: "the Job was deleted before it ended", Log: k.log}, nil
	case missing(err): // it may run elsewhere
		return training.Report{}, fmt.Errorf("%w: the Job was deleted while the service was not running, or the target had a different configuration when the request was delivered; the request stays open until a report arrives or its deadline passes", err)
	case err != nil:
		if _, answered := errors.AsType[*StatusError](err); !answered {
			err = fmt.Errorf("%w: %w", errAway, err)
		}
		return training.Report{}, err
	}
	k.seen = true
	end, over := j.ended()
	if !over {
		if !j.started() {
			return training.Report{}, nil
		}
		k.keep(ctx, c, j)
		return training.Report{State: training.Started}, nil
	}
	pods, err := c.podsOf(ctx, j)
	switch {
	case err == nil:
		return k.ending(ctx, c, j, end, pods)
	case forbidden(err) && k.refused >= podTries-1:
		return k.unseen(j, end, err), nil
	case forbidden(err):
		k.refused++
	}
	return training.Report{}, err
}

// unseen returns the report on a Job that has ended and whose pods the service may not list.
func (k *followed) unseen(j job, end condition, err error) training.Report {
	r := training.Report{State: training.Failed, Error: "the Job succeeded", Log: k.log}
	if end.Type == "Failed" {
		r.Error = j.failure(end)
		if k.pod != nil && k.pod.explain() != "" {
			r.Error += ": " + k.pod.explain()
		}
	}
	r.Error += fmt.Sprintf(", but the service cannot read the version and the exit code from its pods: %v", err)
	return r
}

// keep remembers the pod of a running Job and the end of its log. If that fails, a later check tries again.
func (k *followed) keep(ctx context.Context, c *Client, j job) {
	k.looks++
	if k.looks%logEvery != 1 {
		return
	}
	pods, err := c.podsOf(ctx, j)
	if p := newest(pods); err == nil && p != nil {
		k.pod = p
		if text, err := c.log(ctx, p.Metadata.Name, p.logOf()); err == nil {
			k.log = text
		}
	}
}

// ending returns the report on a Job that has ended. If its log cannot be read, later checks try again a few times.
func (k *followed) ending(ctx context.Context, c *Client, j job, end condition, pods []pod) (training.Report, error) {
	p := chosen(end, pods)
	if p == nil {
		if end.Type == "Failed" {
			p = k.pod
		}
		r := j.report(end, p)
		r.Log = k.log
		return r, nil
	}
	r := j.report(end, p)
	text, err := c.log(ctx, p.Metadata.Name, p.logOf())
	switch {
	case err == nil:
		r.Log = text
	case k.tries < logTries-1 && !missing(err):
		k.tries++
		return training.Report{}, err
	case k.log != "":
		r.Log = k.log
	default:
		r.Log = fmt.Sprintf("(no log: %v)\n", err)
	}
	return r, nil
}
