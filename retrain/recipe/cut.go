package recipe

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// CutAgain widens the drifted offsets in a webhook's body to those of the firing alarms, also where a recipe has copied
// them into the config or the contract. Everything else stays, as a person may have seen it.
func CutAgain(body []byte, inc alerts.Incident, now time.Time) (cut []byte, changed bool, err error) {
	var message, data map[string]json.RawMessage
	var is struct {
		Signals []string `json:"signals"`
		Offsets *offsets `json:"offsets"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return nil, false, err
	}
	if err := json.Unmarshal(message["data"], &data); err != nil {
		return nil, false, err
	}
	if err := json.Unmarshal(message["data"], &is); err != nil || is.Offsets == nil {
		return nil, false, err
	}
	before := is.Offsets.Drifted
	after := driftedNow(before, is.Signals, inc)
	if slices.Equal(before, after) {
		return nil, false, nil
	}
	is.Offsets.Drifted, is.Offsets.CutAt = after, now.UTC()
	if data["offsets"], err = json.Marshal(is.Offsets); err != nil {
		return nil, false, err
	}
	if data["contract"], _, err = exchanged(data["contract"], before, after); err != nil {
		return nil, false, err
	}
	var paths []string
	if data["config"], paths, err = exchanged(data["config"], before, after); err != nil {
		return nil, false, err
	}
	if data["config_from"], err = traced(data["config_from"], paths, after); err != nil {
		return nil, false, err
	}
	if message["data"], err = json.Marshal(data); err != nil {
		return nil, false, err
	}
	cut, err = json.Marshal(message)
	return cut, true, err
}

// driftedNow widens ranges by those of the alarms of the firing signals.
func driftedNow(ranges []ingest.Range, signals []string, inc alerts.Incident) []ingest.Range {
	out := slices.Clone(ranges)
	for _, a := range inc.Alarms {
		if !a.Resolved && slices.Contains(signals, a.Signal) {
			out = ingest.Widen(out, a.Offsets...)
		}
	}
	return out
}

// exchanged replaces ranges in JSON, wherever a template has inserted them. It reports the paths whose whole value was
// the ranges.
func exchanged(text json.RawMessage, before, after []ingest.Range) (_ json.RawMessage, paths []string, err error) {
	if len(before) == 0 {
		return text, nil, nil
	}
	x := exchange{}
	if x.fromText, x.from, err = bothForms(before); err != nil {
		return nil, nil, err
	}
	if x.toText, x.to, err = bothForms(after); err != nil {
		return nil, nil, err
	}
	var value any
	if err := decode(text, &value); err != nil {
		return nil, nil, err
	}
	out, err := json.Marshal(x.in("", value))
	return out, x.paths, err
}

// bothForms returns the form of ranges within a text, and their form as a whole value.
func bothForms(ranges []ingest.Range) (text string, value any, err error) {
	written, err := json.Marshal(ranges)
	if err == nil {
		err = decode(written, &value)
	}
	return string(written), value, err
}

type exchange struct {
	from, to         any
	fromText, toText string
	paths            []string
}

func (x *exchange) in(path string, value any) any {
	if reflect.DeepEqual(value, x.from) {
		x.paths = append(x.paths, path)
		return x.to
	}
	switch value := value.(type) {
	case string:
		return strings.ReplaceAll(value, x.fromText, x.toText)
	case []any:
		for i := range value {
			value[i] = x.in(fmt.Sprintf("%s[%d]", path, i), value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = x.in(yamlfile.JoinAny(path, key), value[key])
		}
	}
	return value
}

// traced gives each leaf of the ranges at the paths the origin of the ranges that they replace.
func traced(text json.RawMessage, paths []string, after []ingest.Range) (json.RawMessage, error) {
	from := map[string]string{}
	if err := json.Unmarshal(text, &from); err != nil || len(paths) == 0 {
		return text, err
	}
	for _, path := range paths {
		for i := range after {
			for _, key := range []string{"partition", "first", "last"} {
				from[fmt.Sprintf("%s[%d].%s", path, i, key)] = from[path+"[0]."+key]
			}
		}
	}
	return json.Marshal(from)
}
