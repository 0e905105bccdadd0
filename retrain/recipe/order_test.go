package recipe

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

func TestOrder(t *testing.T) {
	inc := retraintest.Incident("i1", "ranker")
	inc.Causes = []alerts.RankedCause{{Cause: alerts.CausePolicy, Weight: 1}}
	first := &inc.Alarms[0]
	first.OnsetFrom.First.Offset, first.Onset.First.Offset, first.OnsetTo.First.Offset = 990, 1000, 1010
	first.OnsetFrom.Ordinal, first.OnsetTo.Ordinal, first.OnsetOffsets = 98, 102, []ingest.Range{{First: 990, Last: 1020}}
	first.Return, first.Promise = &finding.Decomposition{Change: -50, PerStep: -50}, finding.Promise{N: 20000, Confidence: finding.ConfidenceNone}
	first.Shifts = []finding.Shift{{
		Signal: "return", Quantity: "return", BaselineMean: 200, CurrentMean: 150, StandardShift: -2, Z: math.Inf(-1), Units: 40, Drifted: true,
	}}
	second := retraintest.Alarm("reward")
	second.After.Policy = "v3"
	second.Effect.MeanShift, second.Effect.CurrentSD = math.Inf(-1), math.NaN()
	second.Offsets = []ingest.Range{{Partition: 0, First: 900, Last: 1050}, {Partition: 3, First: 7, Last: 9}}
	o := newOrder("rr_1", inc, append(inc.Alarms, second))
	check(t, o.instruct(testRecipes(t)["ranker"], onsetOf(inc.Alarms[0])))
	body, err := newBody(o, time.Date(2026, 11, 21, 10, 0, 0, 0, time.FixedZone("", 3600)))
	check(t, err)
	follows, err := NewValidator()
	check(t, err)
	check(t, follows.Check(body))
	var got, want any
	check(t, json.Unmarshal(body, &got))
	check(t, json.Unmarshal([]byte(`{
		"type": "retrain.requested",
		"timestamp": "2026-11-21T09:00:00Z",
		"data": {
			"id": "rr_1", "incident": "i1", "policy": "ranker", "group": {"env": "prod-eu"},
			"signals": ["return", "reward"],
			"cause": "policy", "evidence": ["policy_version changed from v1 to v2 at the onset"],
			"causes": [{"cause": "policy", "weight": 1, "evidence": []}],
			"onset_interval": {"first_unit": 98, "last_unit": 102, "first_ts": null, "last_ts": null, "first_index": 990,
				"last_index": 1010, "offsets": [{"partition": 0, "first": 990, "last": 1020}]},
			"return_change": {"change": -50, "reward_per_step": -50, "episode_length": 0, "action_mix": 0, "rest": 0},
			"promise": {"units": 20000, "arl0": null, "low": null, "high": null, "confidence": "none", "allowance": null, "overlap": null, "weakest": "", "caveats": []},
			"shifts": [{"signal": "return", "quantity": "return", "baseline_mean": 200, "current_mean": 150,
				"standardized_shift": -2, "z": null, "spread_z": 0, "units": 40, "drifted": true}],
			"effect": {
				"return": {"quantity": "return", "baseline_mean": 200, "current_mean": 150, "mean_shift": -50, "baseline_sd": 25, "current_sd": 30, "standardized_shift": -2, "current_units": 40,
					"median_shift": -48, "q10_shift": -55, "q90_shift": -45, "spread_ratio": 1.2, "wasserstein": 50, "moved_at_least": 0.25},
				"reward": {"quantity": "return", "baseline_mean": 200, "current_mean": 150, "mean_shift": null, "baseline_sd": 25, "current_sd": null, "standardized_shift": -2, "current_units": 40,
					"median_shift": -48, "q10_shift": -55, "q90_shift": -45, "spread_ratio": 1.2, "wasserstein": 50, "moved_at_least": 0.25}
			},
			"versions": {
				"before": {"policy_version": "v1", "env_version": "41", "reward_version": "r7"},
				"after": {"policy_version": "v3", "env_version": "41", "reward_version": "r7"}
			},
			"baseline": {"id": "b1", "units": 500},
			"offsets": {
				"drifted": [{"partition": 0, "first": 900, "last": 1100}, {"partition": 3, "first": 7, "last": 9}],
				"baseline": [{"partition": 0, "first": 0, "last": 900}]
			},
			"recipe": "ranker",
			"contract": {
				"objective": "the ranker earns what it did",
				"hypothesis": "return, reward moved as customers changed; policy in prod-eu",
				"expected": {"text": "mean return > 180 over 200 episodes within 24h", "statistic": "mean", "signal": "return",
					"comparison": ">", "value": 180, "over": 200, "unit": "episodes", "within_seconds": 86400},
				"owner": "ranking@shop.example"
			},
			"contract_from": {"objective": "base.yaml:2", "owner": "base.yaml:3", "hypothesis": "ranker.yaml:3", "expected": "ranker.yaml:4"},
			"config": {
				"optimizer": {"name": "adam", "lr": 0.0003}, "seeds": [7], "run": "retrain-rr_1",
				"ranges": [{"partition": 0, "first": 900, "last": 1100}, {"partition": 3, "first": 7, "last": 9}]
			},
			"config_from": {
				"optimizer.name": "base.yaml:5", "optimizer.lr": "ranker.yaml:6", "seeds[0]": "ranker.yaml:7", "run": "ranker.yaml:10",
				"ranges[0].partition": "ranker.yaml:9", "ranges[0].first": "ranker.yaml:9", "ranges[0].last": "ranker.yaml:9",
				"ranges[1].partition": "ranker.yaml:9", "ranges[1].first": "ranker.yaml:9", "ranges[1].last": "ranker.yaml:9"
			}
		}
	}`), &want))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("body\n%s\nwant\n%v", body, want)
	}
	if inc.Alarms[0].Offsets[0].First != 1000 {
		t.Error("the incident was changed")
	}
}
