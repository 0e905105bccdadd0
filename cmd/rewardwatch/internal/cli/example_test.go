package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// exampleFile is the telemetry of docs/getting-started.md.
const exampleFile = "../../../../docs/examples/episodes.ndjson"

// exampleEpisodes returns it: 620 healthy episodes of two landers, and 80 after their environment has changed.
func exampleEpisodes() string {
	rng := rand.New(rand.NewPCG(11, 7))
	ts := time.Date(2025, 9, 1, 10, 0, 0, 0, time.UTC)
	var b strings.Builder
	for i := range 700 {
		mean, world := 200., "41"
		if i >= 620 {
			mean, world = 165, "42"
		}
		ts = ts.Add(time.Duration(2000+rng.IntN(600)) * time.Second)
		line, _ := json.Marshal(struct {
			TS      time.Time `json:"ts"`
			Policy  string    `json:"policy"`
			Version string    `json:"policy_version"`
			Env     string    `json:"env"`
			World   string    `json:"env_version"`
			Agent   string    `json:"agent_id"`
			Episode any       `json:"episode"`
		}{
			ts, "lander", "v3", "prod", world, fmt.Sprint("lander-", 1+i%2),
			map[string]any{"r": math.Round(10*(mean+30*rng.NormFloat64())) / 10, "l": 160 + rng.IntN(60)},
		})
		b.Write(append(line, '\n'))
	}
	return b.String()
}

func TestExampleTelemetry(t *testing.T) { testkit.SameAsFile(t, exampleFile, exampleEpisodes()) }
