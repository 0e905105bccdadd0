package retrain

import (
	"encoding/json"
	"fmt"
)

// shortBody is the webhook's body for services that take no more than so much.
type shortBody struct {
	Type      json.RawMessage            `json:"type"`
	Timestamp json.RawMessage            `json:"timestamp"`
	Data      map[string]json.RawMessage `json:"data"`
	LeftOut   []string                   `json:"left_out"` // keys of data that are not there, [] where it is whole
}

// spare gives the keys of an order that can be left out, what a job needs least first. Left are id, policy and others
// that say which order it is, by which the rest can be asked for.
func spare() []string {
	return []string{
		"shifts", "causes", "promise", "return_change", "effect", "evidence", "config_from", "contract_from", "onset_interval",
		"baseline", "versions", "signals", "group", "offsets", "contract", "config",
	}
}

// shorten gives the body with as much left out as makes what write makes of it at most limit bytes long. It fails where
// not even what names the order fits.
func shorten(body []byte, limit int, write func(shortBody) ([]byte, error)) ([]byte, error) {
	short := shortBody{LeftOut: []string{}}
	if err := json.Unmarshal(body, &short); err != nil {
		return nil, fmt.Errorf("read the order: %w", err)
	}
	for _, key := range append(spare(), "") {
		text, err := write(short)
		if err != nil || len(text) <= limit {
			return text, err
		}
		if _, there := short.Data[key]; there {
			delete(short.Data, key)
			short.LeftOut = append(short.LeftOut, key)
		}
	}
	return nil, fmt.Errorf("the order does not fit into %d bytes, not even with %v left out", limit, short.LeftOut)
}
