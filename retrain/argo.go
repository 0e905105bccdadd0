package retrain

import "context"

// argoEvents is the adapter of event sources of the type webhook
// (https://argoproj.github.io/argo-events/eventsources/setup/webhook/).
type argoEvents struct {
	ArgoEventsTarget
	line line
}

func (a ArgoEventsTarget) adapter(line line) (adapter, error) {
	_, err := readToken(a.TokenFile)
	return argoEvents{a, line}, err
}

func (a argoEvents) send(ctx context.Context, m message) outcome {
	token, err := readToken(a.TokenFile)
	if err != nil {
		return unsigned(err)
	}
	return a.line.post(ctx, a.URL, m.body, "Authorization", bearer(token)).outcome
}
