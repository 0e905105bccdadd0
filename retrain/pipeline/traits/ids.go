package traits

import (
	"path"
	"regexp"
	"strings"
)

var (
	// ofGymnasium are the ids that Gymnasium knows by itself, or with the packages that it loads.
	ofGymnasium = regexp.MustCompile(`^(?:(?:ALE|phys2d|tabular|gym|GymV2\w*)/.*|(?:CartPole|Pendulum|Acrobot|MountainCar(?:Continuous)?|LunarLander(?:Continuous)?|BipedalWalker(?:Hardcore)?|CarRacing|Hopper|HalfCheetah|Ant|Walker2d|Humanoid(?:Standup)?|Swimmer|Reacher|Pusher|Inverted(?:Double)?Pendulum|FrozenLake(?:8x8)?|Taxi|Blackjack|CliffWalking|\w+(?:NoFrameskip|Deterministic|-ram\w*))-v[0-9]+)$`)
	// ofWorlds is a module that is named after environments.
	ofWorlds = regexp.MustCompile(`gym|env`)
	notOfID  = regexp.MustCompile(`[^a-z0-9]+`)
)

// OfGymnasium reports whether an id is one that Gymnasium knows without another import.
func OfGymnasium(id string) bool { return ofGymnasium.MatchString(id) }

// ofGames are the ids that ale_py registers when it is imported.
var ofGames = regexp.MustCompile(`^ALE/|^\w+(?:NoFrameskip|Deterministic|-ram\w*)-v[0-9]+$`)

// OfAtari reports whether an id is that of an Atari game, which Gymnasium knows once ale_py is imported.
func OfAtari(id string) bool { return ofGames.MatchString(id) }

// Registers reports whether a module may register an environment, by their names.
func Registers(module, id string) bool {
	plain := func(s string) string { return notOfID.ReplaceAllString(strings.ToLower(s), "") }
	first := plain(id)
	return module != "gym" && module != "gymnasium" && (ofWorlds.MatchString(module) || strings.Contains(plain(module), first[:min(4, len(first))]))
}

var versionOfID = regexp.MustCompile(`-v[0-9]+$`)

// Mentions reports whether a text has the name of an environment in some spelling.
func Mentions(text, env string) bool {
	plain := notOfID.ReplaceAllString(strings.ToLower(versionOfID.ReplaceAllString(path.Base(env), "")), "")
	return plain != "" && strings.Contains(notOfID.ReplaceAllString(strings.ToLower(text), ""), plain)
}
