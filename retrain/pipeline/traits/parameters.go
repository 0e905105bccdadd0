package traits

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// parameters are the attributes of Gymnasium's own environments that a simulation can draw: numbers that affect an
// episode and that a reset does not change. The MuJoCo environments have none, because their physical parameters are in
// the model.
var parameters = map[string]string{
	"CartPole":              "force_mag gravity length masscart masspole polemass_length tau theta_threshold_radians total_mass x_threshold",
	"MountainCar":           "force goal_position goal_velocity gravity max_position max_speed min_position",
	"MountainCarContinuous": "goal_position goal_velocity max_action max_position max_speed min_action min_position power",
	"Acrobot":               "LINK_COM_POS_1 LINK_COM_POS_2 LINK_LENGTH_1 LINK_LENGTH_2 LINK_MASS_1 LINK_MASS_2 LINK_MOI MAX_VEL_1 MAX_VEL_2 dt torque_noise_max",
	"Pendulum":              "dt g l m max_speed max_torque",
	"LunarLander":           "gravity turbulence_power wind_power", "LunarLanderContinuous": "gravity turbulence_power wind_power",
	"CarRacing": "lap_complete_percent", "BipedalWalker": "", "BipedalWalkerHardcore": "",
	"Reacher": "", "Pusher": "", "InvertedPendulum": "", "InvertedDoublePendulum": "", "HalfCheetah": "", "Hopper": "", "Swimmer": "", "Walker2d": "",
	"Ant": "", "Humanoid": "", "HumanoidStandup": "",
}

var ofVersion = pattern.MustCompile(`^(?:gymnasium:)?(\w+)-v[0-9]+$`)

// NoParameter returns why a simulation cannot draw an attribute of an environment, or "" if it may. It does not check
// private names, which begin with _ and differ between versions.
func NoParameter(id, attribute string) string {
	m := ofVersion.FindStringSubmatch(id)
	if m == nil || strings.HasPrefix(attribute, "_") {
		return ""
	}
	switch all, known := parameters[m[1]]; {
	case !known, slices.Contains(strings.Fields(all), attribute):
		return ""
	case all == "":
		return fmt.Sprintf("must be omitted, because %s has no physical parameters as attributes: make the environment in training.command", id)
	default:
		return fmt.Sprintf("must be a parameter of %s: %s, not %s", id, strings.Join(strings.Fields(all), ", "), attribute)
	}
}
