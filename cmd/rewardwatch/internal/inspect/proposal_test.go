package inspect

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

func TestSettings(t *testing.T) {
	// group returns a group with a number of units and units per day; 0 is without a clock.
	group := func(units int64, perDay float64) GroupInspection {
		g := GroupInspection{Units: units, Steps: &StepsJSON{Mean: 50}, Signals: []SignalJSON{{Signal: "return"}}}
		if g.Clock.Usable = perDay > 0; g.Clock.Usable {
			g.Clock.UnitsPerDay = new(wire.Number(perDay))
		}
		return g
	}
	wide := group(500, 40)
	for n := range 80 {
		wide.Signals = append(wide.Signals, SignalJSON{Signal: fmt.Sprint("observation.", n)})
	}
	wider := wide
	for n := range 80 {
		wider.Signals = append(slices.Clone(wider.Signals), SignalJSON{Signal: fmt.Sprint("reward_component.", n)})
	}
	many := make([]GroupInspection, 30)
	for n := range many {
		many[n] = group(20, 40)
	}
	// clicks returns a group of decisions, a share of which is clicked.
	clicks := func(units int64, perDay, share float64) GroupInspection {
		g := group(units, perDay)
		g.Steps.Mean = 1
		g.Signals = append(g.Signals, SignalJSON{Signal: "outcome.click", Kind: kindZeroOne, Mean: new(wire.Number(share))})
		return g
	}
	// endless returns a group of blocks of steps.
	endless := func(units int64, perDay float64) GroupInspection {
		g := group(units, perDay)
		g.Ends = map[string]int64{"block": units}
		return g
	}
	tests := map[string]struct {
		groups []GroupInspection
		want   []string
	}{
		"blocks of steps":        {[]GroupInspection{endless(13320, 1110)}, nil},
		"many of them":           {[]GroupInspection{endless(13320, 1500)}, []string{"baseline {units: 1000}"}},
		"clicks":                 {[]GroupInspection{clicks(800, 40, .1)}, nil},
		"rare clicks":            {[]GroupInspection{clicks(800, 40, .038)}, nil},
		"rarer clicks":           {[]GroupInspection{clicks(800, 70, .01)}, []string{"baseline {units: 1000}"}},
		"the rarest clicks":      {[]GroupInspection{clicks(400, 1e5, .003)}, []string{"baseline {units: 3300}"}},
		"rare and slow":          {[]GroupInspection{clicks(400, 40, .003)}, nil},
		"hardly any":             {[]GroupInspection{clicks(400, 1e5, .0003)}, []string{"baseline {units: 2000}"}},
		"as the defaults":        {[]GroupInspection{group(400, 40)}, nil},
		"a slow one":             {[]GroupInspection{group(400, 10)}, []string{"baseline {units: 250}"}},
		"a very slow one":        {[]GroupInspection{group(400, 4)}, []string{"baseline {units: 100}"}},
		"a fast one":             {[]GroupInspection{group(400, 100)}, []string{"baseline {units: 1000}"}},
		"a very fast one":        {[]GroupInspection{group(400, 1e5)}, []string{"baseline {units: 2000}"}},
		"too little to tell":     {[]GroupInspection{group(99, 1e5)}, nil},
		"no clock":               {[]GroupInspection{group(750, 0)}, []string{"false_alarms {budget: 1, per: 20000 episodes}"}},
		"no clock, much":         {[]GroupInspection{group(9000, 0)}, []string{"baseline {units: 2000}", "false_alarms {budget: 1, per: 20000 episodes}"}},
		"a clock in one of them": {[]GroupInspection{group(750, 0), group(750, 1)}, nil},
		"small groups":           {many, []string{"group_by []"}},
		"one small group":        {[]GroupInspection{group(20, 40), group(400, 40)}, nil},
		"observations": {[]GroupInspection{wide}, []string{
			`signals ["return", "reward", "episode_length", "action", "action.*", "outcome.*", "reward_component.*"]`,
		}},
		"components too": {[]GroupInspection{wider}, []string{
			`signals ["return", "reward", "episode_length", "action", "action.*", "outcome.*"]`,
		}},
		"nothing": {nil, []string{"false_alarms {budget: 1, per: 1000000 steps}"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			defaults := watch.DefaultConfig()
			var got []string
			for _, s := range settings(PolicyInspection{Groups: tt.groups, groupBy: defaults.GroupBy, falseAlarms: defaults.FalseAlarms}) {
				if got = append(got, s.Key+" "+s.Value); s.Why == "" {
					t.Errorf("%s without a reason", s.Key)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzQuoteYAML(f *testing.F) {
	for _, name := range testkit.HostileNames() {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		name = strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "?")
		if name == "" {
			return // no policy has that name
		}
		cfg, err := config.ParseConfig("fuzz.yml", []byte("ingest: {kafka: {client_id: "+quoteYAML(name)+"}}\n"+
			"policies:\n  - match: "+quoteYAML(escapeGlob(name))+" # why\n"), (*config.Config).CheckAlone)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if got := cfg.Ingest.Kafka.ClientID; got != name {
			t.Errorf("%q reads back as %q", name, got)
		}
		if got := cfg.Policies[0].Match; !signals.Match(got, name) || signals.Match(got, name+"x") {
			t.Errorf("%q is matched by %q: %v", name, got, signals.Match(got, name))
		}
	})
}

// For a policy that learns, only signals with a direction are judged: ratings by people have one, regardless of other
// signals.
func TestRatingsByPeopleHaveADirection(t *testing.T) {
	of := func(names ...string) PolicyInspection {
		g := GroupInspection{}
		for _, name := range names {
			g.Signals = append(g.Signals, SignalJSON{Signal: name})
		}
		return PolicyInspection{Groups: []GroupInspection{g, g}}
	}
	given := of("outcome.rating")
	given.direction = watch.Directions{"outcome.rating": "down"}
	for name, tt := range map[string]struct {
		of               PolicyInspection
		setting, example string
	}{
		"a rating":            {of("return", "outcome.human_rating", "outcome.cost"), `{"outcome.human_rating": up}`, ""},
		"two":                 {of("outcome.csat", "outcome.UserRating"), `{"outcome.csat": up, "outcome.UserRating": up}`, ""},
		"an observed rating":  {of("observation.rating", "outcome.hotel_rating"), "", `#direction: {"outcome.hotel_rating": up} # up`},
		"given by a person":   {given, `{"outcome.rating": down}`, ""},
		"nothing is measured": {of("return"), "", ""},
	} {
		if got := directionSetting(tt.of).Value; got != tt.setting {
			t.Errorf("%s: %s, want %s", name, got, tt.setting)
		}
		if got := directionExample(tt.of); !strings.HasPrefix(got, tt.example) || (got == "") != (tt.example == "") {
			t.Errorf("%s: the example %q, want %q", name, got, tt.example)
		}
	}
}
