package traits

import (
	"path"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// games are those of Atari, which also have ids without anything else before the version: Breakout-v4.
const games = `(?:Adventure|AirRaid|Alien|Amidar|Assault|Asterix|Asteroids|Atlantis|BankHeist|BattleZone|BeamRider|Berzerk|Bowling|Boxing|Breakout|Carnival|Centipede|ChopperCommand|CrazyClimber|Defender|DemonAttack|DoubleDunk|ElevatorAction|Enduro|FishingDerby|Freeway|Frostbite|Gopher|Gravitar|Hero|IceHockey|Jamesbond|JourneyEscape|Kangaroo|Krull|KungFuMaster|MontezumaRevenge|MsPacman|NameThisGame|Phoenix|Pitfall|Pong|Pooyan|PrivateEye|Qbert|Riverraid|RoadRunner|Robotank|Seaquest|Skiing|Solaris|SpaceInvaders|StarGunner|Tennis|TimePilot|Tutankham|UpNDown|Venture|VideoPinball|WizardOfWor|YarsRevenge|Zaxxon)`

var (
	// ofGymnasium are the ids that Gymnasium knows by itself, or with the packages that it loads.
	ofGymnasium = pattern.MustCompile(`^(?:(?:ALE|phys2d|tabular|gym|GymV2\w*)/.*|(?:CartPole|Pendulum|Acrobot|MountainCar(?:Continuous)?|LunarLander(?:Continuous)?|BipedalWalker(?:Hardcore)?|CarRacing|Hopper|HalfCheetah|Ant|Walker2d|Humanoid(?:Standup)?|Swimmer|Reacher|Pusher|Inverted(?:Double)?Pendulum|FrozenLake(?:8x8)?|Taxi|Blackjack|CliffWalking|` + games + `|\w+(?:NoFrameskip|Deterministic|-ram\w*))-v[0-9]+)$`)
	// ofWorlds is a module that is named after environments.
	ofWorlds = pattern.MustCompile(`gym|env`)
	notOfID  = pattern.MustCompile(`[^a-z0-9]+`)
)

// OfGymnasium reports whether an id is one that Gymnasium knows without another import.
func OfGymnasium(id string) bool { return ofGymnasium.MatchString(id) }

// OfGames are the ids that ale_py registers when it is imported.
var OfGames = pattern.MustCompile(`^ALE/|^(?:` + games + `|\w+(?:NoFrameskip|Deterministic|-ram\w*))-v[0-9]+$`)

// OfAtari reports whether an id is that of an Atari game, which Gymnasium knows once ale_py is imported.
func OfAtari(id string) bool { return OfGames.MatchString(id) }

// Registers reports whether a module may register an environment, by their names.
func Registers(module, id string) bool {
	plain := func(s string) string { return notOfID.ReplaceAllString(strings.ToLower(s), "") }
	first := plain(id)
	return module != "gym" && module != "gymnasium" && (ofWorlds.MatchString(module) || strings.Contains(plain(module), first[:min(4, len(first))]))
}

// ofLibraries ends the names of projects that are named for an environment.
var ofLibraries = pattern.MustCompile(`(?i)(?:[-_](?:d?rl|ppo|dqn|sac|a2c|td3|ddpg|pytorch|torch|tf2?|jax|sb3|agent|gym|project|reinforcement|learning))+$`)

// NamedFor reports whether the name of a file has that of its project, without the words that say how it is made.
func NamedFor(file, project string) bool {
	plain := func(s string) string { return notOfID.ReplaceAllString(strings.ToLower(s), "") }
	named := plain(ofLibraries.ReplaceAllString(project, ""))
	return len(named) >= 6 && strings.Contains(plain(path.Base(file)), named)
}

var versionOfID = pattern.MustCompile(`-v[0-9]+$`)

// Mentions reports whether a text has the name of an environment in some spelling.
func Mentions(text, env string) bool {
	plain := notOfID.ReplaceAllString(strings.ToLower(versionOfID.ReplaceAllString(path.Base(env), "")), "")
	return plain != "" && strings.Contains(notOfID.ReplaceAllString(strings.ToLower(text), ""), plain)
}
