package pins

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// Interfaces are what programs call that only old versions of packages have, or other packages alone: the first file that
// does. It is large because each kind of call is a field.
type Interfaces struct {
	Keras2 string // what Keras 3 does not have
	TF1    string // what TensorFlow 2 does not have

	Tensorboard string // torch.utils.tensorboard, which torch does not bring along

	Progress string // what shows the bar of Stable-Baselines3, which does not bring along what draws it

	Movies string // what writes MP4 with imageio, which does not bring along what encodes it

	Video string // what records videos of Gymnasium, which does not bring along what writes them

	gym, rendering, hydra string // what Gym 0.26, Gym 0.22 and Hydra 1 do not have
	agents, games         string // what Ray 2.4 and PettingZoo 1.22 do not have
	specs, vectors, since string // what Ray 2.50 and Gymnasium 1 do not have, and what only Gymnasium 1 has
	keys, trees           string // what JAX 0.4.24 and 0.6 do not have
	trainers, functions   string // what Tianshou 2 and Tianshou 1 do not have
	particles, second     string // what PettingZoo 1.26 and 1.23 do not have
	together              string // what PettingZoo 1.22 does not have, of agents that act together
	scorers               string // what d3rlpy 2 does not have
	aliases               string // what NumPy 1.24 does not have

	Drawn string // what draws a model of Keras, which does not bring along what does

	pools, makes              string // what makes environments of EnvPool, which brings its simulators along, and others
	rendered, renders, oldGym string // what has environments draw what happens, also with Gym before 0.26, and what imports that

	systems map[string]string // the first file that needs a package of the system

	zoo map[string]string // the first file with each family of environments of PettingZoo
}

const (
	// importsRLlib is an import of RLlib, and what follows.
	importsRLlib = `(?m:^[ \t]*(?:(?:from|import)[ \t]+ray\.rllib\b|from[ \t]+ray[ \t]+import[ \t]+[^\n]*\brllib\b))(?s:.*)`
	// goneNames are wrappers that Gymnasium 1 no longer has, and goneWrapper the end of an import of one.
	goneNames   = `(?:FrameStack|LazyFrames|StepAPICompatibility)\b`
	goneWrapper = `[\w.]*[ \t]+import[ \t]+(?:\([^)]*|[^\n(]*)\b` + goneNames
)

var (
	ofKeras2 = pattern.MustCompile(`_make_predict_function\b|manual_variable_initialization\b|\bnp_utils\b|\.(?:fit|predict|evaluate)_generator\(|\bkeras\.(?:engine|layers\.(?:merge|core|convolutional|advanced_activations))\b|\boptimizers\.legacy\b|tensorflow\.python\.keras\b|\b(?:Adam|RMSprop|SGD|Nadam|Adamax|Adagrad)\([ \t]*lr[ \t]*=`)
	ofTF1    = pattern.MustCompile(`\b(?:tf|tensorflow)\.contrib\b|\btf\.(?:placeholder|Session|get_variable|variable_scope|global_variables_initializer)\(`)
	asTF1    = pattern.MustCompile(`compat\.v1 as tf\b|\btf = \w+\.compat\.v1\b`)

	// ofGym are the seed, the four results of a step, also of the environments of a repository, and the list of all.
	ofGym          = pattern.MustCompile(`(?m:^[ \t]+return[ \t]+[\w.()]+,[ \t]*[\w.]+,[ \t]*(?:[\w.]*done\w*|terminal),[ \t]*(?:[\w.]*info\w*|\{\}|dict\(\))[ \t]*$)|\benvs?\.seed\(|\bregistry\.(?:all\(\)|env_specs)|(?m:^[ \t]*[\w.]+,[ \t]*[\w.]+,[ \t]*(?:[\w.]*done\w*|dones?|terminal|d),[ \t]*[\w.]+[ \t]*=[ \t]*[\w.\[\]]+\.step\()`)
	ofRendering    = pattern.MustCompile(`\bclassic_control(?:[ \t]+import[ \t]+|\.)rendering\b|\bwrappers\.Monitor\(|from gym\.wrappers import Monitor\b`)
	ofTensorboard  = pattern.MustCompile(`(?m)^(?:from|import)[ \t]+torch\.utils\.tensorboard\b`)
	ofProgress     = pattern.MustCompile(`\bprogress_bar[ \t]*=[ \t]*True\b`)
	ofMovies       = pattern.MustCompile(`\b(?:mimsave|mimwrite|get_writer)\((?s:.{0,400})\.mp4\b|\.mp4\b(?s:.{0,400})\b(?:mimsave|mimwrite|get_writer)\(`)
	ofVideo        = pattern.MustCompile(`\bRecordVideo\(`)
	hasTensorboard = pattern.MustCompile(`^(?i)(?:tensorboard|tensorflow|tf-nightly)$|^stable.baselines3\[.*extra`)

	// ofSpecs are the names that RLlib changed, which Ray 2.31 still has. Rollouts count as those of a config only.
	ofSpecs = pattern.MustCompile(`\b(?:Single|Multi)AgentRLModuleSpec\b|\brl_module\.(?:marl_module|tf)\b|` + importsRLlib + `(?:\.exploration\([ \t\n]*(?:explore|exploration_config)\b|(?i:config|cfg)(?:(?:\(|\.\w+\()[^\n]*\))?\.rollouts\(|[cC]onfig\b(?s:.*)\n[ \t]*\.rollouts\()`)
	// ofKeys and ofTrees are names that JAX removed.
	ofKeys  = pattern.MustCompile(`(?m:^from jax\.config import\b)|\bjax\.random\.KeyArray\b|\bfrom jax\.random import\b[^\n]*\bKeyArray\b`)
	ofTrees = pattern.MustCompile(`\bjax\.tree_(?:map|leaves|flatten|unflatten|structure|reduce)\(`)
	// ofVectors are names that Gymnasium changed in its first version.
	ofVectors = pattern.MustCompile(`(?s:\bgymnasium\b.*)(?:\b(?:gym|gymnasium)\.vector\.make\(|\bfinal_observation\b|["']final_info["'])`)
	// ofWrappers are the uses of wrappers that its first version no longer has, and ownWrappers the code of others.
	ofWrappers = pattern.MustCompile(`\bfrom[ \t]+gymnasium\.wrappers` + goneWrapper +
		`|\bgymnasium\.wrappers\.(?:\w+\.)?` + goneNames +
		`|(?s:\bgymnasium\b.*)(?:\bfrom[ \t]+gym\.wrappers` + goneWrapper + `|\bgym\.wrappers\.(?:\w+\.)?` + goneNames + `)` +
		`|\bfrom[ \t]+gymnasium[ \t]+import[ \t]+[^\n]*\bwrappers\b(?s:.*)\bwrappers\.` + goneNames)
	ownWrappers = pattern.MustCompile(`\bclass[ \t]+` + goneNames + `[ \t]*(?:\([ \t]*(?:\w+\.)?\w+[ \t,)]|\([ \t]*\)|:)`)

	// ofGymnasium1 are names and arguments that its first version brought.
	ofGymnasium1 = pattern.MustCompile(`\b(?:TransformObservation|TransformAction)\([^\n]*_space\b|\bFrameStackObservation\b|\bAutoresetMode\b|["']final_obs["']|\bAddRenderObservation\b|\bwrappers\.vector\b`)

	ofAgents = pattern.MustCompile(`\bray\.rllib\.agents\b`)
	// ofGames are the four results of the last step of an agent.
	ofGames = pattern.MustCompile(`(?m:^[ \t]*[\w.]+,[ \t]*[\w.]+,[ \t]*[\w.]+,[ \t]*[\w.]+[ \t]*=[ \t]*[\w.]*env[\w.]*\.last\()`)

	// ofTrainers are trainers that are made with the parts of steps, and ofFunctions those that are functions.
	ofTrainers  = pattern.MustCompile(`\b(?:Off|On)policyTrainer\(|\bOfflineTrainer\((?s:[^()]*)\bmax_epoch=|\bts\.trainer\.(?:Off|On)policyTrainer\b`)
	ofFunctions = pattern.MustCompile(`\b(?:off|on)policy_trainer\(|\boffline_trainer\(`)

	// ofTogether are the four results of a step of all agents, and ofSecond the second versions of environments.
	ofTogether = pattern.MustCompile(`(?s:(?:\bparallel_env\(|\bto_parallel\(|\baec_to_parallel\().*)(?m:^[ \t]*\w+,[ \t]*\w+,[ \t]*\w+,[ \t]*\w+[ \t]*=[ \t]*[\w.]*env\w*\.step\()`)
	ofSecond   = pattern.MustCompile(`\bsimple(?:_\w+)?_v2\b`)

	ofScorers   = pattern.MustCompile(`\bd3rlpy\.(?:online|metrics\.scorer)\b|\bfrom d3rlpy\.metrics\.scorer\b|\bto_mdp_dataset\(|\bd3rlpy\.algos\.\w+\([^()]*\buse_gpu=`)
	ofParticles = pattern.MustCompile(`\bpettingzoo\.mpe\b|\bfrom pettingzoo import mpe\b`)
	ofZoo       = pattern.MustCompile(`\bpettingzoo(?:\.| import )(atari|butterfly|classic|mpe|sisl)\b`)

	// ofAliases are the types of Python under names of NumPy. NumPy 2 has bool again, as a type of its own.
	ofAliases = pattern.MustCompile(`\b(?:np|numpy)\.(?:bool|int|float|complex|object|str)(?:\W|$)`)

	ofHydra = pattern.MustCompile(`@hydra\.main\([^()]*\bstrict[ \t]*=`)
)

// Take takes what a program calls.
func (i *Interfaces) Take(file string, text []byte) {
	for _, c := range []struct {
		first *string
		calls *pattern.Pattern
	}{{&i.Keras2, ofKeras2}, {&i.Tensorboard, ofTensorboard}, {&i.Video, ofVideo}, {&i.Movies, ofMovies}, {&i.Progress, ofProgress}, {&i.gym, ofGym}, {&i.rendering, ofRendering}, {&i.hydra, ofHydra}, {&i.agents, ofAgents}, {&i.games, ofGames}, {&i.trainers, ofTrainers}, {&i.functions, ofFunctions}, {&i.particles, ofParticles}, {&i.scorers, ofScorers}, {&i.second, ofSecond}, {&i.together, ofTogether}, {&i.aliases, ofAliases}, {&i.specs, ofSpecs}, {&i.vectors, ofVectors}, {&i.since, ofGymnasium1}, {&i.keys, ofKeys}, {&i.trees, ofTrees}, {&i.Drawn, ofDrawing}, {&i.rendered, ofRender}, {&i.renders, ofOldRender}, {&i.pools, ofPools}, {&i.makes, makesOther}, {&i.oldGym, importsGym}} {
		if *c.first == "" && c.calls.Match(text) {
			*c.first = file
		}
	}
	for _, s := range ofSystem {
		if i.systems[s.name] == "" && s.code.Match(text) {
			if i.systems == nil {
				i.systems = map[string]string{}
			}
			i.systems[s.name] = file
		}
	}
	for _, m := range ofZoo.FindAllSubmatch(text, maxInstalled) {
		if family := string(m[1]); i.zoo[family] == "" {
			if i.zoo == nil {
				i.zoo = map[string]string{}
			}
			i.zoo[family] = file
		}
	}
	if i.vectors == "" && ofWrappers.Match(text) && !ownWrappers.Match(text) {
		i.vectors = file
	}
	if i.TF1 == "" && ofTF1.Match(text) && !asTF1.Match(text) {
		i.TF1 = file
	}
}

// HasTensorboard reports whether a requirement brings the package that torch.utils.tensorboard needs.
func HasTensorboard(requirement string) bool { return hasTensorboard.MatchString(requirement) }

// familiesOfZoo are the packages that environments of PettingZoo need, which it leaves to extras.
var familiesOfZoo = []struct {
	family   string
	packages []string
}{
	{"atari", []string{"multi-agent-ale-py", "pygame"}},
	{"butterfly", []string{"pygame", "pymunk"}},
	{"classic", []string{"chess", "pygame", "rlcard"}},
	{"mpe", []string{"pygame"}},
	{"sisl", []string{"pygame", "pymunk", "scipy", "box2d"}},
}

// OfZoo returns the packages that the environments of PettingZoo need, by the first file that imports them, unless a
// requirement has the extra for them.
func (i *Interfaces) OfZoo(requirement string) map[string]string {
	out := map[string]string{}
	for _, x := range familiesOfZoo {
		_, extras, _ := strings.Cut(strings.ToLower(requirement), "[")
		if file := i.zoo[x.family]; file != "" && !strings.Contains(extras, x.family) && !strings.Contains(extras, "all") {
			for _, name := range x.packages {
				out[name] = file
			}
		}
	}
	return out
}

// Last returns the last version of a package that has what programs call, and the file that calls it; "" if they call
// nothing that was removed. Gym before 0.22 no longer builds with current setuptools, so it is only for what nothing
// later has. Programs with the agents of Ray 2.3 use Gym, which only Ray before 2.3 needs: it decides which.
func (i *Interfaces) Last(name string) (version, file string) {
	switch {
	case name == "gym" && i.rendering != "":
		return "0.21.0", i.rendering
	case name == "gym" && i.gym != "" && i.agents == "":
		return "0.25.2", i.gym
	case name == "ray" && i.agents != "":
		return "2.2.0", i.agents
	case name == "ray" && i.specs != "":
		return "2.31.0", i.specs
	case name == "jax" && i.keys != "":
		return "0.4.23", i.keys
	case name == "jax" && i.trees != "":
		return "0.4.28", i.trees
	case name == "gymnasium" && i.vectors != "" && i.since == "":
		return "0.29.1", i.vectors
	case name == "pettingzoo" && i.games != "":
		return "1.19.0", i.games
	case name == "pettingzoo" && i.together != "" && i.zoo != nil:
		return "1.19.0", i.together
	case name == "pettingzoo" && i.second != "" && i.particles != "":
		return "1.22.3", i.second
	case name == "pettingzoo" && i.particles != "":
		return "1.25.0", i.particles
	case name == "d3rlpy" && i.scorers != "":
		return "1.1.1", i.scorers
	case name == "tianshou" && i.functions != "":
		return "0.5.1", i.functions
	case name == "tianshou" && i.trainers != "":
		return "1.2.0", i.trainers
	case name == "numpy" && i.aliases != "":
		return "1.23.5", i.aliases
	case name == "hydra-core" && i.hydra != "":
		return "0.11.3", i.hydra
	}
	return "", ""
}
