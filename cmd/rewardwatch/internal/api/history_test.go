package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The history of a signal has the values that the bank kept, with the baseline, and every refusal says what is wrong.
func TestHistoryOfASignal(t *testing.T) {
	v := apitest.SomeView()
	drifting := v.Policies[1].Groups[0].Group
	h := &history.History{}
	for i := range int64(40) {
		h.Begin(i, 1_795_168_800_000_000_000+i*1e10)
		h.Add("return", float64(10-i/20))
		h.Version(i, 1_795_168_800_000_000_000+i*1e10, ingest.Versions{Env: fmt.Sprint(41 + i/20)})
	}
	v.Past = map[ingest.Group]history.Record{drifting: h.Record()}
	s := quietServer(t, Config{}, v, nil)
	labels := ""
	for name, value := range drifting.Map() {
		labels += "&label=" + name + "%3D" + value
	}
	path := "/api/v1/policies/checkout-ranker/history?signal="
	w := ask(s, http.MethodGet, path+"return"+labels)
	var got wire.History
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	checkAgainstOpenAPI(t, "/api/v1/policies/{policy}/history", w.Body.Bytes())
	values, sum := uint32(0), 0.
	for _, p := range got.Spans {
		values, sum = values+p.Values, sum+float64(p.Values)*float64(p.Mean)
	}
	if values != 40 || sum != 20*10+20*9 || *got.Baseline != (wire.Level{Mean: 10, SD: 2}) || got.Unit != "episode" || got.Spans[0].From == nil ||
		len(got.Changes) != 1 || got.Changes[0].Unit != 20 || got.Changes[0].After.Env != "42" {
		t.Errorf("got %s", w.Body)
	}
	if w := ask(s, http.MethodGet, path+"none"+labels); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"baseline":null,"spans":[],"version_changes":[`) {
		t.Errorf("an unknown signal: %d %s", w.Code, w.Body)
	}
	for name, c := range map[string]struct {
		path, says string
		status     int
	}{
		"no signal":          {path, "signal is required", http.StatusBadRequest},
		"another parameter":  {path + "return&group=x", `unknown parameter \"group\"`, http.StatusBadRequest},
		"a label of no form": {path + "return&label=x", "label must be name=value", http.StatusBadRequest},
		"another group":      {path + "return&label=x%3Dy", "group", http.StatusNotFound},
		"another policy":     {"/api/v1/policies/none/history?signal=return", "group", http.StatusNotFound},
	} {
		if w := ask(s, http.MethodGet, c.path); w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s, want %d and %s", name, w.Code, w.Body, c.status, c.says)
		}
	}
	v.NoPast = errors.New("a disk is gone")
	if w := ask(s, http.MethodGet, path+"return"+labels); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "disk") {
		t.Errorf("without a history: %d %s", w.Code, w.Body)
	}
}
