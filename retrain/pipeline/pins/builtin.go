package pins

import (
	"maps"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// ownVersions are the versions of Gymnasium's own environments in Gymnasium 0.26 to 1.4.
var ownVersions = map[string]string{
	"CartPole": "0 1", "MountainCar": "0", "MountainCarContinuous": "0", "Pendulum": "1", "Acrobot": "1", "Blackjack": "1",
	"FrozenLake": "1", "FrozenLake8x8": "1", "CliffWalking": "0 1", "CliffWalkingSlippery": "1", "Taxi": "3 4",
	"LunarLander": "2 3", "LunarLanderContinuous": "2 3", "BipedalWalker": "3", "BipedalWalkerHardcore": "3", "CarRacing": "2 3",
	"Reacher": "2 4 5", "Pusher": "2 4 5", "InvertedPendulum": "2 4 5", "InvertedDoublePendulum": "2 4 5", "HumanoidStandup": "2 4 5",
	"HalfCheetah": "2 3 4 5", "Hopper": "2 3 4 5", "Swimmer": "2 3 4 5", "Walker2d": "2 3 4 5", "Ant": "2 3 4 5", "Humanoid": "2 3 4 5",
}

// sinceGymnasium1 matches ids that exist since Gymnasium 1.0.
var sinceGymnasium1 = pattern.MustCompile(`^(?:LunarLander(?:Continuous)?-v3|CarRacing-v3|\w+-v5)$`)

// Unknown returns why the version of Gymnasium in the requirements does not know an environment, or "" if it may. Ids
// that do not resemble Gymnasium's own may belong to environments that the project registers.
func Unknown(id string, requirements []string) string {
	id = strings.TrimPrefix(id, "gymnasium:")
	name, version, ok := strings.Cut(id, "-v")
	if fault := unknownGame(id); fault != "" || strings.ContainsAny(id, ":/ ") {
		return fault
	}
	if fault := nearlyOwn(name, id); fault != "" || !ok {
		return fault
	}
	for own, versions := range ownVersions {
		switch {
		case own != name && strings.EqualFold(own, name):
			return "must be " + newestOwn(own) + ", not " + id + ": Gymnasium distinguishes capital letters"
		case own == name && !slices.Contains(strings.Fields(versions), version):
			return "must be a version that Gymnasium has, such as " + newestOwn(own) + ", not " + id
		}
	}
	if ownVersions[name] == "" {
		return ""
	}
	at := pinned("gymnasium", requirements)
	switch {
	case at == "":
	case Allowed(">=1.0", at) && BeforeGymnasium1(id):
		return "requires gymnasium before 1.0, not " + at + ": use a later version of the environment, or pin gymnasium==0.29.1"
	case Allowed("<1.0", at) && sinceGymnasium1.MatchString(id):
		return "requires gymnasium 1.0 or later, not " + at
	}
	return ""
}

// ofALE matches ids of Atari games in ale_py's namespace, and ofOldGames ids without it.
var (
	ofALE      = pattern.MustCompile(`^(?:ale_py:)?ALE/\w+(?:-ram)?-v([0-9]+)$`)
	ofOldGames = pattern.MustCompile(`^(?:ale_py:)?(\w+?)(?:-ram)?(?:NoFrameskip|Deterministic)?-v([0-9]+)$`)
)

// unknownGame returns why ale_py does not know the id of a game, or "" if it may or if the id does not belong to a
// game.
func unknownGame(id string) string {
	before, _, _ := strings.Cut(id, "-v")
	if m := ofALE.FindStringSubmatch(id); m != nil {
		if m[1] != "5" {
			return "must be a version that ale_py has, such as " + before + "-v5, not " + id
		}
		return ""
	}
	m := ofOldGames.FindStringSubmatch(id)
	if m == nil || !traits.OfAtari(m[1]+"-v0") || m[2] == "0" || m[2] == "4" {
		return ""
	}
	return "must be a version that ale_py has, such as " + before + "-v4, not " + id
}

// newestOwn returns the id of the newest version of one of Gymnasium's own environments.
func newestOwn(name string) string {
	all := strings.Fields(ownVersions[name])
	return name + "-v" + all[len(all)-1]
}

// nearlyOwn returns the correction if an id seems to be a misspelled id of one of Gymnasium's own environments, or "".
// name is the id without its version.
func nearlyOwn(name, id string) string {
	if name == id && ownVersions[name] != "" {
		return "must include a version, as in " + newestOwn(name) + ": without one, the environment changes with Gymnasium"
	}
	for _, near := range slices.Sorted(maps.Keys(ownVersions)) {
		if ownVersions[name] == "" && len(name) > 5 && !strings.EqualFold(name, near) && slipped(name, near) {
			return "must be " + newestOwn(near) + ", not " + id + ": Gymnasium has no such environment"
		}
	}
	return ""
}

// pinned returns the version of a package in requirements, or "".
func pinned(name string, requirements []string) string {
	for _, r := range requirements {
		if of, version := NameAndVersion(r); of == name {
			return version
		}
	}
	return ""
}

// Lacking returns what to add to the requirements if none of them installs the simulator, or package with environments,
// that an environment needs, or "". Some ids could also belong to the project itself.
func Lacking(id string, requirements []string) string {
	needed := world(id)
	known := len(needed)
	for _, c := range Companions(id) {
		if slices.Contains([]string{"box2d", "mujoco", "mujoco-py"}, c.Package) {
			needed = append(needed, c)
		}
	}
	for i, c := range needed {
		if slices.ContainsFunc(requirements, c.ComesWith) {
			continue
		}
		out := "requires " + c.Package + ": add it to the requirements, such as " + c.Package + "==VERSION"
		if i < known && !strings.Contains(id, ":") {
			out += ", or write MODULE:" + id + " if a module of your own registers it"
		}
		return out
	}
	return ""
}
