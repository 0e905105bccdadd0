package target

import (
	"encoding/json"
	"fmt"
)

// shortBody is the webhook's body for services with a size limit.
type shortBody struct {
	Type      json.RawMessage            `json:"type"`
	Timestamp json.RawMessage            `json:"timestamp"`
	Data      map[string]json.RawMessage `json:"data"`
	LeftOut   []string                   `json:"left_out"` // missing keys of data, [] if it is complete
}

// spare returns the keys of an order that can be left out, the least needed by a job first. id, policy and other
// identifying keys stay; they suffice to fetch the rest.
func spare() []string {
	return []string{
		"shifts", "causes", "promise", "return_change", "effect", "evidence", "config_from", "contract_from", "onset_interval",
		"baseline", "versions", "signals", "group", "offsets", "contract", "config",
	}
}

// shorten leaves out as much of the body as needed for the result of write to have at most limit bytes. It fails if not
// even the identifying keys fit.
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
	return nil, fmt.Errorf("the request does not fit into %d bytes, even without %v", limit, short.LeftOut)
}
