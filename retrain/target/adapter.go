package target

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/command"
)

// Message is an open request for delivery to its target.
type Message struct {
	ID      string // the same in all attempts: receivers recognize repetitions by it
	Policy  string
	Target  string // its name
	Event   string // type of the body, such as EventRequested
	Body    []byte // of the webhook
	Opened  time.Time
	Expires time.Time
	Token   string // with which the job reports the status of this request only; not part of the body, which others may read
}

// Adapter delivers requests to one target, in the protocol of its service. It is safe for concurrent use.
type Adapter interface {
	// Send makes one attempt, and returns its result no later than the end of ctx. A repeated attempt sends the same
	// under the same id.
	Send(ctx context.Context, m Message) Attempt
}

// bearer returns the value of an Authorization header.
func bearer(token string) string { return "Bearer " + token }

// Means are the dependencies of adapters.
type Means struct {
	Check     func(body []byte) error // checks a body against the published schema
	Transport func(Target) (http.RoundTripper, error)
	Runs      *command.Runner // nil if no target is a command
}

// newAdapter returns the adapter of a target. It reads the target's secrets once, so that an unreadable one fails now
// instead of at the first order. The target must have passed Target.Check.
func newAdapter(t Target, with Means) (Adapter, error) {
	t = t.inCluster()
	transport, err := with.Transport(t)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", t.Name, err)
	}
	line := line{transport: transport, dial: dialer(t.AllowPrivate), timeout: t.Timeout, runs: with.Runs}
	for _, k := range t.kinds() {
		if !k.given() {
			continue
		}
		a, err := k.adapter(line)
		if err != nil {
			return nil, fmt.Errorf("target %s: %w", t.Name, err)
		}
		return promised{a, with.Check, time.Duration(t.Timeout)}, nil
	}
	return nil, fmt.Errorf("target %s: it has no receiver", t.Name)
}

// NewAdapters returns the adapters of targets, by name.
func NewAdapters(targets []Target, with Means) (map[string]Adapter, error) {
	out := make(map[string]Adapter, len(targets))
	for _, t := range targets {
		a, err := newAdapter(t, with)
		if err != nil {
			return nil, err
		}
		out[t.Name] = a
	}
	return out, nil
}

// promised sends only what the published schema promises, and within the target's timeout.
type promised struct {
	Adapter
	Check   func(body []byte) error
	timeout time.Duration
}

func (p promised) Send(ctx context.Context, m Message) Attempt {
	if err := p.Check(m.Body); err != nil {
		return Attempt{Result: ResultInvalid, Err: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	return p.Adapter.Send(ctx, m)
}
