package target

import (
	"context"
	"errors"
	"fmt"

	"github.com/rewardwatch/rewardwatch/retrain/kubejob"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Kubernetes creates a Kubernetes Job for each request.
type Kubernetes struct {
	kubejob.Config `yaml:",inline"`
}

func defaultKubernetes() Kubernetes {
	return Kubernetes{Config: kubejob.Config{TimeLimit: kubejob.DefaultTimeLimit}}
}

func (k Kubernetes) given() bool     { return k.Given() }
func (k Kubernetes) address() string { return k.Jobs() }

func (k Kubernetes) check(report func(key, msg string)) {
	report = below("kubernetes", report)
	k.Check(report)
	checkBase(k.URL, true, func(string) string { return "" }, report)
}

// inCluster returns the target or, if its Jobs run in the cluster of the service, a copy that permits the address
// of that cluster's API server, which is never public, and trusts its certificate authority.
func (t Target) inCluster() Target {
	if t.Kubernetes.Given() && t.Kubernetes.InCluster() {
		t.AllowPrivate = true
		if t.TLS.CAFile == "" {
			t.TLS.CAFile = kubejob.ServiceAccountCA
		}
	}
	return t
}

// CheckManifest returns the mistakes in the manifest of a target that is a Kubernetes Job, and reports one that cannot be
// read. at is the path of the target, whose mistakes Check reports.
func (t Target) CheckManifest(at string, report func(path, msg string)) []yamlfile.Problem {
	if t.Kubernetes.Manifest == "" {
		return nil
	}
	_, problems, err := kubejob.Load(t.Kubernetes.Config)
	if err != nil {
		report(at+".kubernetes.manifest", err.Error())
	}
	return problems
}

// Clusters returns the clients of the targets that are Kubernetes Jobs, by name.
func Clusters(targets []Target, with Means) (map[string]*kubejob.Client, error) {
	out := map[string]*kubejob.Client{}
	for _, t := range targets {
		if !t.Kubernetes.Given() {
			continue
		}
		transport, err := with.Transport(t.inCluster())
		if err != nil {
			return nil, err
		}
		out[t.Name] = kubejob.NewClient(t.Kubernetes.Config, transport)
	}
	return out, nil
}

// The order in a Job is bounded, in bytes: in one variable as for GitLab, and in all containers together, because
// Kubernetes stores objects of at most 1.5 MiB.
const (
	kubernetesVariable = gitlabVariable
	kubernetesOrders   = 1 << 20
)

// kubernetes is the adapter of Jobs (https://kubernetes.io/docs/reference/kubernetes-api/batch/job-v1/).
type kubernetes struct {
	client   *kubejob.Client
	manifest kubejob.Manifest
	line     line
}

func (k Kubernetes) adapter(line line) (Adapter, error) {
	manifest, problems, err := kubejob.Load(k.Config)
	if err == nil {
		err = yamlfile.ErrorOf(problems)
	}
	if err != nil {
		return nil, fmt.Errorf("kubernetes.manifest: %w", err)
	}
	client := kubejob.NewClient(k.Config, line.transport)
	_, err = client.Token()
	return kubernetes{client, manifest, line}, err
}

// Send creates the Job. If it exists, an earlier attempt has created it. The follower of the Jobs reports its outcome.
func (k kubernetes) Send(ctx context.Context, m Message) Attempt {
	token, err := k.client.Token()
	if err != nil {
		return unsigned(err)
	}
	body, err := k.job(m)
	if err != nil {
		return Attempt{Result: ResultInvalid, Err: err.Error()}
	}
	var headers []string
	if token != "" {
		headers = []string{"Authorization", bearer(token)}
	}
	l := k.line.hiding(token)
	a := l.post(ctx, k.client.Jobs(), body, headers...)
	o := a.Attempt
	if o.Result != ResultRejected && o.Result != ResultThrottled {
		return o
	}
	said := kubejob.ReadStatus(o.Status, a.body)
	if said.Reason == "AlreadyExists" {
		return k.existing(ctx, l, m.ID, o)
	}
	o.Err = l.clean(said.Error())
	return o
}

// existing judges a Job that was there before the attempt o.
func (k kubernetes) existing(ctx context.Context, l line, request string, o Attempt) Attempt {
	err := k.client.Created(ctx, request)
	if err == nil {
		o.Result = ResultDelivered
		return o
	}
	if _, answered := errors.AsType[*kubejob.StatusError](err); !answered && ctx.Err() != nil {
		return l.broken(ctx.Err())
	}
	o.Err = l.clean(err.Error())
	return o
}

// job returns the Job of a message. Its order is shortened if it would not fit into the environment.
func (k kubernetes) job(m Message) ([]byte, error) {
	limit := min(kubernetesVariable, kubernetesOrders/max(1, k.manifest.Containers()))
	order, err := shorten(m.Body, limit, orderVariable)
	if err != nil {
		return nil, err
	}
	return k.manifest.Job(kubejob.Order{Request: m.ID, Policy: m.Policy, Event: m.Event, Body: string(order)})
}

// Printable adds the token with which the service creates Jobs.
func (k Kubernetes) Printable(known Secrets) Secrets {
	if !k.Given() {
		return known
	}
	token, err := kubejob.NewClient(k.Config, nil).Token()
	if err != nil {
		return known // then it is not used either
	}
	return known.with(token)
}
