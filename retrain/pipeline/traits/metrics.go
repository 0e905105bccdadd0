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

// Misspelled returns the metric of the evaluation that a name is meant to be, or "" if it may be the name of another one.
func Misspelled(metric string) string {
	for _, known := range measured {
		distance := nearest.Distance(strings.ToLower(metric), strings.ToLower(known))
		if metric != known && len(metric) > 4 && (distance <= 1 || distance == 2 && len(metric) == len(known)) {
			return known
		}
	}
	return ""
}

// Unreported returns why the metric of a constraint has no value in an environment unless a wrapper adds it, or "" if it
// may have one. id is the ID of the environment.
func Unreported(id, metric string) string {
	if slices.Contains(measured, metric) || metric == "" || metric != strings.TrimSpace(metric) || Misspelled(metric) != "" { // reported elsewhere
		return ""
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
	return fmt.Sprintf("%s reports no %s in info, without which the evaluation fails: add it in a wrapper, or use one of %s",
		id, metric, strings.Join(append([]string{"return", "episode_length"}, strings.Fields(reported)...), ", "))
}
