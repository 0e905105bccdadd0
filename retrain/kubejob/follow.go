package kubejob

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"
)

// ErrSettled means that a request accepts no more reports.
var ErrSettled = errors.New("the request no longer accepts reports")

// Reporter receives how far the Job of a request has got, and the same report again after a crash. An ErrSettled is
// ignored; any other error ends Run.
type Reporter func(ctx context.Context, request string, r Report) error

// lookEvery is how often Jobs are checked.
const lookEvery = 5 * time.Second

// logEvery is how often the log of a running Job is read, in looks: Kubernetes deletes the pods of a Job that reaches
// its time limit, and their logs.
const logEvery = 6

// logTries is how often a log is asked for before a report goes without it.
const logTries = 6

// Follower reports on Jobs. It remembers nothing that a restart must keep.
type Follower struct {
	clients map[string]*Client // by target
	timeout func(target string) time.Duration
	log     zerolog.Logger
	every   time.Duration
	known   map[string]*followed // by request
}

// followed is what a Follower remembers of a Job.
type followed struct {
	started   bool
	seen      bool   // its Job existed
	complaint string // logged last
	looks     int
	tries     int    // of its log, since it has ended
	pod       *pod   // seen last
	log       string // read last
}

// NewFollower returns a follower of the Jobs of targets. An answer of the API server must arrive within the timeout of
// the target.
func NewFollower(clients map[string]*Client, timeout func(target string) time.Duration, log zerolog.Logger) *Follower {
	return &Follower{clients: clients, timeout: timeout, log: log, every: lookEvery, known: map[string]*followed{}}
}

// Run reports on the Jobs of requests until the context ends. underway returns the targets of those that have not ended,
// by request; targets of other kinds are ignored. The error is one of underway or of the Reporter.
func (f *Follower) Run(ctx context.Context, underway func(context.Context) (map[string]string, error), report Reporter) error {
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	for {
		requests, err := underway(ctx)
		if err == nil {
			err = f.look(ctx, requests, report)
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

// look checks all Jobs once.
func (f *Follower) look(ctx context.Context, underway map[string]string, report Reporter) error {
	maps.DeleteFunc(f.known, func(request string, _ *followed) bool { return underway[request] == "" })
	for _, request := range slices.Sorted(maps.Keys(underway)) {
		client := f.clients[underway[request]]
		if client == nil {
			continue
		}
		if f.known[request] == nil {
			f.known[request] = &followed{}
		}
		if err := f.follow(ctx, client, request, underway[request], report); err != nil {
			return err
		}
	}
	return nil
}

// follow reports how far a Job has got, unless that was reported already.
func (f *Follower) follow(ctx context.Context, c *Client, request, target string, report Reporter) error {
	known := f.known[request]
	looking, cancel := context.WithTimeout(ctx, f.timeout(target))
	defer cancel()
	r, err := known.look(looking, c, request)
	if err != nil && known.complaint != err.Error() && ctx.Err() == nil { // logged once: the next look finds it again
		known.complaint = err.Error()
		f.log.Warn().Err(err).Str("request", request).Str("target", target).Msg("failed to check the Job of a request, retrying")
	}
	if err != nil || r.State == "" || r.State == Started && known.started {
		return nil
	}
	if err := report(ctx, request, r); errors.Is(err, ErrSettled) {
		f.log.Info().Err(err).Str("request", request).Str("state", r.State).Str("error", r.Error).Msg("the request of a Job no longer accepts reports")
	} else if err != nil {
		return fmt.Errorf("report the Job of %s: %w", request, err)
	}
	known.started = true
	return nil
}

// look returns the report on a Job, without a state if there is none yet.
func (k *followed) look(ctx context.Context, c *Client, request string) (Report, error) {
	j, err := c.job(ctx, request)
	switch {
	case missing(err) && k.seen:
		return Report{State: Failed, Error: "the Job was deleted before it ended", Log: k.log}, nil
	case missing(err): // it may run elsewhere
		return Report{}, fmt.Errorf("%w: the Job was deleted while the service was not running, or the target of this name was another one when the request was delivered; until a report arrives, the request stays open until its deadline", err)
	case err != nil:
		return Report{}, err
	}
	k.seen = true
	end, over := j.ended()
	if !over {
		if !j.started() {
			return Report{}, nil
		}
		k.keep(ctx, c, j)
		return Report{State: Started}, nil
	}
	pods, err := c.podsOf(ctx, j)
	if err != nil {
		return Report{}, err
	}
	return k.ending(ctx, c, j, end, pods)
}

// keep remembers the pod of a running Job and the end of its log. What fails is tried again.
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

// ending returns the report on a Job that has ended. If its log cannot be read, it is tried again a few times.
func (k *followed) ending(ctx context.Context, c *Client, j job, end condition, pods []pod) (Report, error) {
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
		return Report{}, err
	case k.log != "":
		r.Log = k.log
	default:
		r.Log = fmt.Sprintf("(no log: %v)\n", err)
	}
	return r, nil
}
