package traits

import (
	"path"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// games are the names of Atari games, which also have plain ids such as Breakout-v4.
const games = `(?:Adventure|AirRaid|Alien|Amidar|Assault|Asterix|Asteroids|Atlantis|BankHeist|BattleZone|BeamRider|Berzerk|Bowling|Boxing|Breakout|Carnival|Centipede|ChopperCommand|CrazyClimber|Defender|DemonAttack|DoubleDunk|ElevatorAction|Enduro|FishingDerby|Freeway|Frostbite|Gopher|Gravitar|Hero|IceHockey|Jamesbond|JourneyEscape|Kangaroo|Krull|KungFuMaster|MontezumaRevenge|MsPacman|NameThisGame|Phoenix|Pitfall|Pong|Pooyan|PrivateEye|Qbert|Riverraid|RoadRunner|Robotank|Seaquest|Skiing|Solaris|SpaceInvaders|StarGunner|Tennis|TimePilot|Tutankham|UpNDown|Venture|VideoPinball|WizardOfWor|YarsRevenge|Zaxxon)`

var (
	// ofGymnasium matches ids that Gymnasium knows itself, or through packages that it loads.
	ofGymnasium = pattern.MustCompile(`^(?:(?:ALE|phys2d|tabular|gym|GymV2\w*)/.*|(?:CartPole|Pendulum|Acrobot|MountainCar(?:Continuous)?|LunarLander(?:Continuous)?|BipedalWalker(?:Hardcore)?|CarRacing|Hopper|HalfCheetah|Ant|Walker2d|Humanoid(?:Standup)?|Swimmer|Reacher|Pusher|Inverted(?:Double)?Pendulum|FrozenLake(?:8x8)?|Taxi|Blackjack|CliffWalking|` + games + `|\w+(?:NoFrameskip|Deterministic|-ram\w*))-v[0-9]+)$`)
	// ofWorlds matches names of modules that suggest environments.
	ofWorlds = pattern.MustCompile(`gym|env`)
	notOfID  = pattern.MustCompile(`[^a-z0-9]+`)
)

// OfGymnasium reports whether Gymnasium knows an id without another import.
func OfGymnasium(id string) bool { return ofGymnasium.MatchString(id) }

// OfGames matches the ids that ale_py registers when it is imported.
var OfGames = pattern.MustCompile(`^ALE/|^(?:` + games + `|\w+(?:NoFrameskip|Deterministic|-ram\w*))-v[0-9]+$`)

// OfAtari reports whether an id belongs to an Atari game, which Gymnasium knows once ale_py is imported.
func OfAtari(id string) bool { return OfGames.MatchString(id) }

// Registers reports whether a module may register an environment, judging by their names.
func Registers(module, id string) bool {
	plain := func(s string) string { return notOfID.ReplaceAllString(strings.ToLower(s), "") }
	first := plain(id)
	return module != "gym" && module != "gymnasium" && (ofWorlds.MatchString(module) || strings.Contains(plain(module), first[:min(4, len(first))]))
}

// ofLibraries matches words about the implementation at the end of a project's name, which may otherwise be that of an
// environment.
var ofLibraries = pattern.MustCompile(`(?i)(?:[-_](?:d?rl|ppo|dqn|sac|a2c|td3|ddpg|pytorch|torch|tf2?|jax|sb3|agent|gym|project|reinforcement|learning))+$`)

// NamedFor reports whether the name of a file contains the name of its project without such words.
func NamedFor(file, project string) bool {
	plain := func(s string) string { return notOfID.ReplaceAllString(strings.ToLower(s), "") }
	named := plain(ofLibraries.ReplaceAllString(project, ""))
	return len(named) >= 6 && strings.Contains(plain(path.Base(file)), named)
}

var versionOfID = pattern.MustCompile(`-v[0-9]+$`)

// Mentions reports whether a text contains the name of an environment in any spelling.
func Mentions(text, env string) bool {
	plain := notOfID.ReplaceAllString(strings.ToLower(versionOfID.ReplaceAllString(path.Base(env), "")), "")
	return plain != "" && strings.Contains(notOfID.ReplaceAllString(strings.ToLower(text), ""), plain)
}

// Alike reports whether one of the words in a text is part of the name of an environment, or contains that name, in any
// spelling.
func Alike(words, env string) bool {
	plain := func(s string) string { return notOfID.ReplaceAllString(strings.ToLower(s), "") }
	name := plain(versionOfID.ReplaceAllString(path.Base(env[strings.LastIndex(env, ":")+1:]), ""))
	for word := range strings.FieldsSeq(words) {
		if w := plain(word); w != "" && (strings.Contains(name, w) || strings.Contains(w, name)) {
			return true
		}
	}
	return false
}
