package target

import (
	"context"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// ArgoEvents is an Argo Events event source of type webhook.
type ArgoEvents struct {
	URL       string `yaml:"url"`        // endpoint of the event source
	TokenFile string `yaml:"token_file"` // token of its `authSecret`
}

func (a ArgoEvents) given() bool     { return a != ArgoEvents{} }
func (a ArgoEvents) address() string { return a.URL }

func (a ArgoEvents) check(report func(key, msg string)) {
	checkEndpoint(a.URL, a.TokenFile, below("argo_events", report))
}

// argoEvents is the adapter of event sources of the type webhook
// (https://argoproj.github.io/argo-events/eventsources/setup/webhook/).
type argoEvents struct {
	ArgoEvents
	line line
}

func (a ArgoEvents) adapter(line line) (Adapter, error) {
	_, err := ingest.ReadToken(a.TokenFile)
	return argoEvents{a, line}, err
}

func (a argoEvents) Send(ctx context.Context, m Message) Attempt {
	token, err := ingest.ReadToken(a.TokenFile)
	if err != nil {
		return unsigned(err)
	}
	return a.line.post(ctx, a.URL, m.Body, "Authorization", bearer(token)).Attempt
}
