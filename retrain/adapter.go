package retrain

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/command"
)

// message is an open request as its target is told of it.
type message struct {
	id      string // the same over all attempts: receivers know a repetition by it
	policy  string
	target  string // its name
	event   string // type of the body, such as EventRequested
	body    []byte // the webhook's
	opened  time.Time
	expires time.Time
}

// adapter tells one target of requests, in the way of its service. It is safe for concurrent use.
type adapter interface {
	// send makes one attempt, of which it gives the outcome when ctx ends at the latest. An attempt that is repeated says
	// the same under the same id.
	send(ctx context.Context, m message) outcome
}

// means is what adapters are made with.
type means struct {
	schema    schema
	transport func(Target) http.RoundTripper
	runs      *command.Runner // nil where no target is a command
}

// newAdapter makes the adapter of a target, and reads its secrets once, so that an unreadable one is an error now and not
// when the first order is due. The target must have passed Config.Check.
func newAdapter(t Target, with means) (adapter, error) {
	line := line{transport: with.transport(t), dial: dialer(t.AllowPrivate), timeout: t.Timeout, runs: with.runs}
	for _, k := range t.kinds() {
		if !k.given() {
			continue
		}
		a, err := k.adapter(line)
		if err != nil {
			return nil, fmt.Errorf("target %s: %w", t.Name, err)
		}
		return promised{a, with.schema, time.Duration(t.Timeout)}, nil
	}
	return nil, fmt.Errorf("target %s: it does not say whom to tell", t.Name)
}

func newAdapters(targets []Target, with means) (map[string]adapter, error) {
	out := make(map[string]adapter, len(targets))
	for _, t := range targets {
		a, err := newAdapter(t, with)
		if err != nil {
			return nil, err
		}
		out[t.Name] = a
	}
	return out, nil
}

// promised sends nothing but what the published schema promises, and within the target's timeout.
type promised struct {
	adapter
	schema  schema
	timeout time.Duration
}

func (p promised) send(ctx context.Context, m message) outcome {
	if err := p.schema.check(m.body); err != nil {
		return outcome{result: ResultInvalid, err: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	return p.adapter.send(ctx, m)
}
