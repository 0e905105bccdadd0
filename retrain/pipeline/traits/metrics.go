package traits

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/nearest"
)

// measured are the metrics that the generated evaluation computes itself.
var measured = []string{"return", "episode_length", truncated}

// infos are the names of the numbers that Gymnasium environments add to info at the last step. It lacks the MuJoCo
// environments, whose names depend on the version.
var infos = map[string]string{
	"CartPole": "", "MountainCar": "", "MountainCarContinuous": "", "Acrobot": "", "Pendulum": "", "LunarLander": "", "LunarLanderContinuous": "",
	"BipedalWalker": "", "BipedalWalkerHardcore": "", "CarRacing": "lap_finished", "FrozenLake": "prob", "FrozenLake8x8": "prob", "CliffWalking": "prob",
	"Taxi": "prob", "Blackjack": "",
}

// ofGames are the names of the numbers that Atari games add to info.
const ofGames = "lives episode_frame_number frame_number"

// Unreported returns why the metric of a constraint has no value in an environment, or "" if it may have one.
func Unreported(id, metric string) string {
	if slices.Contains(measured, metric) || metric == "" || metric != strings.TrimSpace(metric) { // another mistake, reported elsewhere
		return ""
	}
	for _, known := range measured {
		if near := nearest.Distance(strings.ToLower(metric), strings.ToLower(known)); near <= 2 && len(metric) > 4 {
			return fmt.Sprintf("must be %s, not %s", known, metric)
		}
	}
	id = strings.TrimPrefix(strings.TrimPrefix(id, "ale_py:"), "gymnasium:")
	name, _, _ := strings.Cut(id, "-v")
	reported, known := infos[name]
	if OfAtari(id) {
		reported, known = ofGames, true
	}
	if !known || slices.Contains(strings.Fields(reported), metric) {
		return ""
	}
	return fmt.Sprintf("must be %s, because %s reports no %s in info; to add it, wrap the environment in a module and use its id, MODULE:ID",
		strings.Join(append([]string{"return", "episode_length"}, strings.Fields(reported)...), ", "), id, metric)
}
