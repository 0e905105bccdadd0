package retrain

import (
	"context"
	"encoding/json"
	"time"
)

// cloudEvents is the adapter of receivers of CloudEvents over HTTP
// (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md).
type cloudEvents struct {
	CloudEventsTarget
	line line
}

// cloudEvent is an event in structured content mode. Source and ID together name it.
type cloudEvent struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Subject         string          `json:"subject"` // the policy
	Time            time.Time       `json:"time"`    // when the request was opened
	DataContentType string          `json:"datacontenttype"`
	Data            json.RawMessage `json:"data"` // of the webhook's body
}

func (c CloudEventsTarget) adapter(line line) (adapter, error) {
	_, err := c.headers()
	return cloudEvents{c, line}, err
}

func (c CloudEventsTarget) headers() ([]string, error) {
	headers := []string{"Content-Type", "application/cloudevents+json; charset=utf-8"}
	if c.TokenFile == "" {
		return headers, nil
	}
	token, err := readToken(c.TokenFile)
	return append(headers, "Authorization", bearer(token)), err
}

func (c cloudEvents) send(ctx context.Context, m message) outcome {
	headers, err := c.headers()
	if err != nil {
		return unsigned(err)
	}
	body, err := newCloudEvent(m)
	if err != nil {
		return outcome{result: ResultInvalid, err: err.Error()}
	}
	return c.line.post(ctx, c.URL, body, headers...).outcome
}

func newCloudEvent(m message) ([]byte, error) {
	var whole struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(m.body, &whole); err != nil {
		return nil, err
	}
	return json.Marshal(cloudEvent{
		SpecVersion: "1.0", ID: m.id, Source: "/rewardwatch", Type: "rewardwatch." + m.event, Subject: m.policy,
		Time: m.opened.UTC(), DataContentType: "application/json", Data: whole.Data,
	})
}
