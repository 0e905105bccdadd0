package target

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// CloudEvents is an endpoint that receives CloudEvents 1.0 over HTTP.
type CloudEvents struct {
	URL       string `yaml:"url"`        // endpoint of the receiver
	TokenFile string `yaml:"token_file"` // optional bearer token
}

func (c CloudEvents) given() bool     { return c != CloudEvents{} }
func (c CloudEvents) address() string { return c.URL }

func (c CloudEvents) check(report func(key, msg string)) {
	if msg := checkURL(c.URL); msg != "" {
		report("cloudevents.url", msg)
	}
}

// cloudEvents is the adapter of receivers of CloudEvents over HTTP
// (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md).
type cloudEvents struct {
	CloudEvents
	line line
}

// cloudEvent is an event in structured content mode. Source and ID together identify it.
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

func (c CloudEvents) adapter(line line) (Adapter, error) {
	_, err := c.headers()
	return cloudEvents{c, line}, err
}

func (c CloudEvents) headers() ([]string, error) {
	headers := []string{"Content-Type", "application/cloudevents+json; charset=utf-8"}
	if c.TokenFile == "" {
		return headers, nil
	}
	token, err := ingest.ReadToken(c.TokenFile)
	return append(headers, "Authorization", bearer(token)), err
}

func (c cloudEvents) Send(ctx context.Context, m Message) Attempt {
	headers, err := c.headers()
	if err != nil {
		return unsigned(err)
	}
	body, err := newCloudEvent(m)
	if err != nil {
		return Attempt{Result: ResultInvalid, Err: err.Error()}
	}
	return c.line.post(ctx, c.URL, body, headers...).Attempt
}

func newCloudEvent(m Message) ([]byte, error) {
	var whole struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(m.Body, &whole); err != nil {
		return nil, err
	}
	return json.Marshal(cloudEvent{
		SpecVersion: "1.0", ID: m.ID, Source: "/rewardwatch", Type: "rewardwatch." + m.Event, Subject: m.Policy,
		Time: m.Opened.UTC(), DataContentType: "application/json", Data: whole.Data,
	})
}
