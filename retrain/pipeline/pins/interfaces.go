package pins

import (
	"bytes"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// Interfaces records which files use interfaces that only certain versions of packages have, or that need further
// packages. Each string is the first file with such code, or "". The struct is large because each kind of code has its
// own field.
type Interfaces struct {
	Keras2 string // interfaces that Keras 3 removed
	TF1    string // interfaces that TensorFlow 2 removed

	Tensorboard string // torch.utils.tensorboard, which needs a package that torch does not install

	Progress string // the progress bar of Stable-Baselines3, which needs packages that it does not install

	Movies string // MP4 output of imageio, which needs an encoder that it does not install

	Video string // video recording of Gymnasium, which needs a package that it does not install

	gym, rendering, hydra string // removed in Gym 0.26, Gym 0.22 and Hydra 1
	agents, games         string // removed in Ray 2.4 and PettingZoo 1.22
	specs, vectors, since string // removed in Ray 2.50 and Gymnasium 1, and added in Gymnasium 1
	keys, trees           string // removed in JAX 0.4.24 and 0.6
	trainers, functions   string // removed in Tianshou 2 and Tianshou 1
	particles, second     string // removed in PettingZoo 1.26 and 1.23
	together              string // results of parallel environments, changed in PettingZoo 1.22
	scorers               string // removed in d3rlpy 2
	aliases               string // removed in NumPy 1.24
	abstract, specOf      string // removed in Python 3.10 and 3.11

	Drawn string // drawing of Keras models, which needs packages that Keras does not install

	pools, makes              string // environments of EnvPool, which includes its simulators, and other environments
	rendered, renders, oldGym string // rendering, rendering with Gym before 0.26, and imports of Gym

	systems map[string]string // the first file that needs a system package, by package

	zoo map[string]string // the first file that uses a family of PettingZoo environments, by family
}

const (
	// importsRLlib matches an import of RLlib and everything after it.
	importsRLlib = `(?m:^[ \t]*(?:(?:from|import)[ \t]+ray\.rllib\b|from[ \t]+ray[ \t]+import[ \t]+[^\n]*\brllib\b))(?s:.*)`
	// goneNames matches wrappers that Gymnasium 1 removed, and goneWrapper the end of an import of one.
	goneNames   = `(?:FrameStack|LazyFrames|StepAPICompatibility)\b`
	goneWrapper = `[\w.]*[ \t]+import[ \t]+(?:\([^)]*|[^\n(]*)\b` + goneNames
)

var (
	ofKeras2 = pattern.MustCompile(`_make_predict_function\b|manual_variable_initialization\b|\bnp_utils\b|\.(?:fit|predict|evaluate)_generator\(|\bkeras\.(?:engine|layers\.(?:merge|core|convolutional|advanced_activations))\b|\boptimizers\.legacy\b|tensorflow\.python\.keras\b|\bdisable_(?:v2_behavior|eager_execution)\(|\b(?:Adam|RMSprop|SGD|Nadam|Adamax|Adagrad)\([ \t]*lr[ \t]*=`)
	ofTF1    = pattern.MustCompile(`\b(?:tf|tensorflow)\.contrib\b|\btf\.(?:placeholder|Session|get_variable|variable_scope|global_variables_initializer)\(`)
	asTF1    = pattern.MustCompile(`compat\.v1 as tf\b|\btf = \w+\.compat\.v1\b`)

	// ofGym matches the seed method, the four results of a step, also in environments of the repository, and the old
	// registry.
	ofGym          = pattern.MustCompile(`(?m:^[ \t]+return[ \t]+[\w.()]+,[ \t]*[\w.]+,[ \t]*(?:[\w.]*done\w*|terminal),[ \t]*(?:[\w.]*info\w*|\{\}|dict\(\))[ \t]*$)|\benvs?\.seed\(|\bregistry\.(?:all\(\)|env_specs)|(?m:^[ \t]*[\w.]+,[ \t]*[\w.]+,[ \t]*(?:[\w.]*done\w*|dones?|terminal|d),[ \t]*[\w.]+[ \t]*=[ \t]*[\w.\[\]]+\.step\()`)
	ofRendering    = pattern.MustCompile(`\bclassic_control(?:[ \t]+import[ \t]+|\.)rendering\b|\bwrappers\.Monitor\(|from gym\.wrappers import Monitor\b`)
	ofTensorboard  = pattern.MustCompile(`(?m)^(?:from|import)[ \t]+torch\.utils\.tensorboard\b`)
	ofProgress     = pattern.MustCompile(`\bprogress_bar[ \t]*=[ \t]*True\b`)
	ofMovies       = pattern.MustCompile(`\b(?:mimsave|mimwrite|get_writer)\((?s:.{0,400})\.mp4\b|\.mp4\b(?s:.{0,400})\b(?:mimsave|mimwrite|get_writer)\(`)
	ofVideo        = pattern.MustCompile(`\bRecordVideo\(`)
	hasTensorboard = pattern.MustCompile(`^(?i)(?:tensorboard|tensorflow|tf-nightly)$|^stable.baselines3\[.*extra`)

	// ofSpecs matches names that RLlib changed and Ray 2.31 still has. Rollouts count only as a method of a config.
	ofSpecs = pattern.MustCompile(`\b(?:Single|Multi)AgentRLModuleSpec\b|\brl_module\.(?:marl_module|tf)\b|` + importsRLlib + `(?:\.exploration\([ \t\n]*(?:explore|exploration_config)\b|(?i:config|cfg)(?:(?:\(|\.\w+\()[^\n]*\))?\.rollouts\(|[cC]onfig\b(?s:.*)\n[ \t]*\.rollouts\()`)
	// ofKeys and ofTrees match names that JAX removed.
	ofKeys  = pattern.MustCompile(`(?m:^from jax\.config import\b)|\bjax\.random\.KeyArray\b|\bfrom jax\.random import\b[^\n]*\bKeyArray\b`)
	ofTrees = pattern.MustCompile(`\bjax\.tree_(?:map|leaves|flatten|unflatten|structure|reduce)\(`)
	// ofVectors matches names that changed in Gymnasium 1.0.
	ofVectors = pattern.MustCompile(`(?s:\bgymnasium\b.*)(?:\b(?:gym|gymnasium)\.vector\.make\(|\bfinal_observation\b|["']final_info["'])`)
	// ofWrappers matches uses of wrappers that Gymnasium 1.0 removed, and ownWrappers classes of the same names in the
	// project.
	ofWrappers = pattern.MustCompile(`\bfrom[ \t]+gymnasium\.wrappers` + goneWrapper +
		`|\bgymnasium\.wrappers\.(?:\w+\.)?` + goneNames +
		`|(?s:\bgymnasium\b.*)(?:\bfrom[ \t]+gym\.wrappers` + goneWrapper + `|\bgym\.wrappers\.(?:\w+\.)?` + goneNames + `)` +
		`|\bfrom[ \t]+gymnasium[ \t]+import[ \t]+[^\n]*\bwrappers\b(?s:.*)\bwrappers\.` + goneNames)
	ownWrappers = pattern.MustCompile(`\bclass[ \t]+` + goneNames + `[ \t]*(?:\([ \t]*(?:\w+\.)?\w+[ \t,)]|\([ \t]*\)|:)`)

	// ofGymnasium1 matches names and arguments that Gymnasium 1.0 added.
	ofGymnasium1 = pattern.MustCompile(`\b(?:TransformObservation|TransformAction)\([^\n]*_space\b|\bFrameStackObservation\b|\bAutoresetMode\b|["']final_obs["']|\bAddRenderObservation\b|\bwrappers\.vector\b`)

	ofAgents = pattern.MustCompile(`\bray\.rllib\.agents\b`)
	// ofGames matches the four results of last, for an agent's last step.
	ofGames = pattern.MustCompile(`(?m:^[ \t]*[\w.]+,[ \t]*[\w.]+,[ \t]*[\w.]+,[ \t]*[\w.]+[ \t]*=[ \t]*[\w.]*env[\w.]*\.last\()`)

	// ofTrainers matches trainers that are constructed with the settings of a training, and ofFunctions trainers that
	// are functions.
	ofTrainers  = pattern.MustCompile(`\b(?:Off|On)policyTrainer\(|\bOfflineTrainer\((?s:[^()]*)\bmax_epoch=|\bts\.trainer\.(?:Off|On)policyTrainer\b`)
	ofFunctions = pattern.MustCompile(`\b(?:off|on)policy_trainer\(|\boffline_trainer\(`)

	// ofTogether matches the four results of a step of all agents, and ofSecond environments of version 2.
	ofTogether = pattern.MustCompile(`(?s:(?:\bparallel_env\(|\bto_parallel\(|\baec_to_parallel\().*)(?m:^[ \t]*\w+,[ \t]*\w+,[ \t]*\w+,[ \t]*\w+[ \t]*=[ \t]*[\w.]*env\w*\.step\()`)
	ofSecond   = pattern.MustCompile(`\bsimple(?:_\w+)?_v2\b`)

	ofScorers   = pattern.MustCompile(`\bd3rlpy\.(?:online|metrics\.scorer)\b|\bfrom d3rlpy\.metrics\.scorer\b|\bto_mdp_dataset\(|\bd3rlpy\.algos\.\w+\([^()]*\buse_gpu=`)
	ofParticles = pattern.MustCompile(`\bpettingzoo\.mpe\b|\bfrom pettingzoo import mpe\b`)
	ofZoo       = pattern.MustCompile(`\bpettingzoo(?:\.| import )(atari|butterfly|classic|mpe|sisl)\b`)

	// ofAliases matches NumPy's aliases of Python types. NumPy 2 has bool again, as its own type.
	ofAliases = pattern.MustCompile(`\b(?:np|numpy)\.(?:bool|int|float|complex|object|str)(?:\W|$)`)

	// ofAbstract, ofSpecOf and ofCoroutine match what Python removed from its standard library, and newSpecOf what
	// replaces inspect.getargspec. A file with both chooses by the version of Python.
	ofAbstract  = pattern.MustCompile(`\bcollections\.(?:Callable|Container|Hashable|Iterable|Iterator|Mapping|MutableMapping|MutableSequence|MutableSet|Sequence|Sized)\b|(?m:^[ \t]*from collections import [^\n]*\b(?:Callable|Iterable|Mapping|MutableMapping|Sequence)\b)`)
	ofSpecOf    = pattern.MustCompile(`\binspect\.getargspec\(`)
	newSpecOf   = pattern.MustCompile(`\bgetfullargspec\b|\binspect\.signature\b`)
	ofCoroutine = pattern.MustCompile(`@asyncio\.coroutine\b`)

	ofHydra = pattern.MustCompile(`@hydra\.main\([^()]*\bstrict[ \t]*=`)
)

// Take records which interfaces a file uses.
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
	if i.abstract == "" && ofAbstract.Match(text) && !bytes.Contains(text, []byte("collections.abc")) && unguarded(ofAbstract, string(text)) {
		i.abstract = file
	}
	if i.specOf == "" && (ofSpecOf.Match(text) && !newSpecOf.Match(text) && unguarded(ofSpecOf, string(text)) ||
		ofCoroutine.Match(text) && unguarded(ofCoroutine, string(text))) {
		i.specOf = file
	}
	if i.TF1 == "" && ofTF1.Match(text) && !asTF1.Match(text) {
		i.TF1 = file
	}
}

// HasTensorboard reports whether a requirement installs the package that torch.utils.tensorboard needs.
func HasTensorboard(requirement string) bool { return hasTensorboard.MatchString(requirement) }

// familiesOfZoo are the packages that PettingZoo environments need, which PettingZoo installs only with extras.
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

// OfZoo returns the packages that the PettingZoo environments in use need, with the first file that imports them,
// unless the requirement has their extra.
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

// PythonBelow returns the last version of Python that has everything in use of its standard library, and the first file
// that uses something removed, or "".
func (i *Interfaces) PythonBelow() (version, file string) {
	switch {
	case i.abstract != "":
		return "3.9", i.abstract
	case i.specOf != "":
		return "3.10", i.specOf
	}
	return "", ""
}

// Last returns the last version of a package that has all interfaces in use, and the first file that uses a removed
// one, or "" if none was removed. Gym before 0.22 cannot be built with current setuptools, so that version is returned
// only if the programs need it. Programs with Ray's old agents use the version of Gym that Ray before 2.3 requires, so
// Ray decides about Gym.
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
