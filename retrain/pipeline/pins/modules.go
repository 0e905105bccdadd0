package pins

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// Module is a Python module with the package that contains it.
type Module struct{ Module, Package string }

// libraries are modules that trainings are built on. A training that imports one needs its package even if that is not
// declared. The packages of others are added only if nothing is declared, because declared packages may install them.
var libraries = []Module{
	{"stable_baselines", "stable-baselines"},
	{"stable_baselines3", "stable-baselines3"},
	{"sb3_contrib", "sb3-contrib"},
	{"ray.rllib", "ray[rllib]"},
	{"tianshou", "tianshou"},
	{"pfrl", "pfrl"},
	{"skrl", "skrl"},
	{"imitation", "imitation"},
	{"tf_agents", "tf-agents"},
	{"torchrl", "torchrl"},
}

var others = []Module{
	{"gymnasium", "gymnasium"},
	{"gym", "gym"},
	{"numpy", "numpy"},
	{"torch", "torch"},
	{"tensorflow", "tensorflow"},
	{"jax", "jax"},
	{"pandas", "pandas"},
	{"matplotlib", "matplotlib"},
	{"scipy", "scipy"},
	{"pettingzoo", "pettingzoo"},
	{"cv2", "opencv-python"},
	{"yaml", "pyyaml"},
	{"PIL", "pillow"},
	{"sklearn", "scikit-learn"},
	{"tqdm", "tqdm"},
	{"wandb", "wandb"},
	{"pygame", "pygame"},
	{"tensordict", "tensordict"},
	{"flax", "flax"},
	{"optax", "optax"},
	{"hydra", "hydra-core"},
	{"omegaconf", "omegaconf"},
	{"tyro", "tyro"},
	{"tensorboard", "tensorboard"},
	{"tensorboardX", "tensorboardx"},
	{"mujoco", "mujoco"},
	{"pybullet", "pybullet"},
	{"pybullet_data", "pybullet"},
	{"minigrid", "minigrid"},
	{"highway_env", "highway-env"},
	{"seaborn", "seaborn"},
	{"imageio", "imageio"},
	{"einops", "einops"},
	{"rich", "rich"},
	{"click", "click"},
	{"loguru", "loguru"},
	{"networkx", "networkx"},
	{"numba", "numba"},
	{"h5py", "h5py"},
	{"optuna", "optuna"},
	{"absl", "absl-py"},
	{"rsl_rl", "rsl-rl-lib"},
	{"sacred", "sacred"},
	{"garage", "garage"},
	{"akro", "akro"},
	{"rdkit", "rdkit"},
	{"torch_geometric", "torch-geometric"},
}

// Modules returns the modules whose packages a training needs even if they are not declared and, if all is true, also
// those that other packages may install.
func Modules(all bool) []Module {
	if all {
		return slices.Concat(libraries, others)
	}
	return slices.Clone(libraries)
}

// distributions maps further modules to packages with a different name.
var distributions = map[string]string{
	"Box2D": "box2d", "OpenGL": "pyopengl", "attr": "attrs", "bs4": "beautifulsoup4", "chess": "python-chess", "dateutil": "python-dateutil", "docx": "python-docx", "dopamine": "dopamine-rl",
	"dotenv": "python-dotenv", "fitz": "pymupdf", "gin": "gin-config", "genesis": "genesis-world", "git": "gitpython", "google": "protobuf", "haiku": "dm-haiku", "igraph": "python-igraph",
	"imblearn": "imbalanced-learn", "jwt": "pyjwt", "lightning_fabric": "lightning", "mpl_toolkits": "matplotlib", "orbax": "orbax-checkpoint", "pkg_resources": "setuptools", "psycopg2": "psycopg2-binary", "pybroker": "lib-pybroker", "pybullet_envs": "pybullet", "pybullet_utils": "pybullet", "pyro": "pyro-ppl", "pylab": "matplotlib", "pywt": "pywavelets",
	"reverb": "dm-reverb", "rl_zoo3": "rl-zoo3", "ruamel": "ruamel-yaml", "serial": "pyserial", "signal_slot": "signal-slot-mp", "skimage": "scikit-image", "skopt": "scikit-optimize", "snappy": "python-snappy", "sonnet": "dm-sonnet", "talib": "ta-lib", "tap": "typed-argument-parser", "torchnlp": "pytorch-nlp",
	"tree": "dm-tree", "usb": "pyusb", "websocket": "websocket-client", "zmq": "pyzmq", "Levenshtein": "python-levenshtein",
}

// families maps modules to the prefixes of alternative packages that contain them.
var families = map[string]string{"cv2": "opencv-", "tensorflow": "tensorflow-", "google": "google-", "PIL": "pillow", "gym": "gym-", "lightning": "pytorch-lightning"}

// IsFamily reports whether a package with a normalized name is an alternative to the usual package of a module.
func IsFamily(module, name string) bool {
	return families[module] != "" && strings.HasPrefix(name, families[module])
}

// common are names that many projects give to modules of their own.
var common = strings.Fields("agent agents algorithm algorithms algos buffer buffers common components config configs constants controllers core data dataset datasets env environment environments envs evaluate evaluation game games helper helpers learner learners lib logger main memory metrics model models modules network networks plot policies policy replay replay_buffer runner runners scripts settings simulator src test tests tools train trainer trainers training util utils wrapper wrappers")

// Common reports whether many projects have a module of this name. A package of PyPI with the same name is not meant.
func Common(module string) bool { return slices.Contains(common, module) }

// Distribution returns the normalized name of the package that contains a module.
func Distribution(module string) string {
	for _, l := range Modules(true) {
		if l.Module == module {
			name, _, _ := strings.Cut(l.Package, "[")
			return Normalized(name)
		}
	}
	if name, ok := distributions[module]; ok {
		return name
	}
	return Normalized(module)
}

var separators = pattern.MustCompile(`[-_.]+`)

// Normalized returns the normalized name of a package, as PyPI compares names.
func Normalized(name string) string {
	return strings.ToLower(separators.ReplaceAllString(name, "-"))
}

// Requirement matches a package with its exact version, in the form of the requirements in a pipeline file.
var Requirement = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._-]+(,[A-Za-z0-9._-]+)*\])?==[0-9][A-Za-z0-9.+!_-]*$`)

// Name returns the normalized name of a requirement's package.
func Name(requirement string) string {
	name, _ := NameAndVersion(requirement)
	return name
}

// NameAndVersion returns the normalized name of a requirement's package without extras, and its exact version or "".
func NameAndVersion(requirement string) (name, version string) {
	name, version, _ = strings.Cut(requirement, "==")
	name, _, _ = strings.Cut(name, "[")
	return Normalized(name), version
}

// Standard reports whether a module is part of Python's standard library.
func Standard(module string) bool { return standard()[module] }

// Companion is a package that environments need in addition to their library.
type Companion struct {
	Package string
	with    *pattern.Pattern // requirements that install it already
}

// ComesWith reports whether a requirement installs the package already, for example through an extra.
func (c Companion) ComesWith(requirement string) bool {
	return c.with.MatchString(strings.ToLower(requirement))
}

// ofMuJoCo matches environments that use the official MuJoCo bindings.
var ofMuJoCo = pattern.MustCompile(`^(Ant|HalfCheetah|Hopper|Humanoid(Standup)?|Walker2d|Swimmer|Reacher|Pusher|Inverted(Double)?Pendulum)-v[45]$`)

// companions are the packages that Gymnasium environments need, by id.
var companions = []struct {
	id *pattern.Pattern
	Companion
}{
	{pattern.MustCompile(`^(LunarLander|BipedalWalker|CarRacing)`), Companion{"box2d", pattern.MustCompile(`^box2d|\[.*\b(box2d|all)\b`)}},
	{pattern.MustCompile(`^(LunarLander|BipedalWalker|CarRacing)`), Companion{"pygame", pattern.MustCompile(`^pygame|\[.*\b(box2d|classic[-_]control|extra|all)\b`)}},
	{ofMuJoCo, Companion{"mujoco", pattern.MustCompile(`^mujoco|\[.*\b(mujoco|all)\b`)}},
	{ofMuJoCo, Companion{"imageio", pattern.MustCompile(`^imageio$|\[.*\b(mujoco|all)\b`)}}, // its renderer imports it at once
	{ofMuJoCo, Companion{"packaging", pattern.MustCompile(`^packaging|\[.*\b(mujoco|all)\b`)}},
	{pattern.MustCompile(`^(Ant|HalfCheetah|Hopper|Humanoid(Standup)?|Walker2d|Swimmer|Reacher|Pusher|Inverted(Double)?Pendulum)-v[23]$`), Companion{"mujoco-py", pattern.MustCompile(`^mujoco-py`)}},
	{pattern.MustCompile(`BulletEnv-v[0-9]+$`), Companion{"pybullet", pattern.MustCompile(`^pybullet`)}},
	{traits.OfGames, Companion{"ale-py", pattern.MustCompile(`^(ale|atari)[-_]py|\[.*\b(atari|extra|all)\b`)}},
}

// worlds are the packages with environments that Gymnasium does not contain, by id. They register their environments
// when they are imported, most of them also when Gymnasium is.
var worlds = []struct {
	id *pattern.Pattern
	Companion
}{
	{pattern.MustCompile(`^(?:MiniGrid|BabyAI)-`), Companion{"minigrid", pattern.MustCompile(`^(?:gym[-_])?minigrid|^babyai`)}},
	{pattern.MustCompile(`^MiniWorld-`), Companion{"miniworld", pattern.MustCompile(`^(?:gym[-_])?miniworld`)}},
	{pattern.MustCompile(`^(?:highway|highway-fast|merge|roundabout|parking|intersection|racetrack|exit|lane-keeping|two-way|u-turn)-v[0-9]+$`), Companion{"highway-env", pattern.MustCompile(`^highway[-_]env`)}},
	{pattern.MustCompile(`^Panda(?:Flip|PickAndPlace|Push|Reach|Slide|Stack)\w*-v`), Companion{"panda-gym", pattern.MustCompile(`^panda[-_]gym`)}},
	{pattern.MustCompile(`^(?:Fetch(?:PickAndPlace|Push|Reach|Slide)|HandManipulate|HandReach|AdroitHand|FrankaKitchen|AntMaze_|PointMaze_)\w*-v`), Companion{"gymnasium-robotics", pattern.MustCompile(`^(?:gym|gymnasium)[-_]robotics|^gym(?:$|[\[=])`)}},
	{pattern.MustCompile(`^procgen-`), Companion{"procgen", pattern.MustCompile(`^procgen`)}},
	{pattern.MustCompile(`^Safety(?:Ant|Car|Doggo|Point|Racecar)\w*-v`), Companion{"safety-gymnasium", pattern.MustCompile(`^(?:bullet[-_])?safety[-_]gym`)}},
	{pattern.MustCompile(`^rware-`), Companion{"rware", pattern.MustCompile(`^rware`)}},
	{pattern.MustCompile(`^Foraging-`), Companion{"lbforaging", pattern.MustCompile(`^lb[-_]?foraging`)}},
	{pattern.MustCompile(`^MiniHack-`), Companion{"minihack", pattern.MustCompile(`^minihack`)}},
	{pattern.MustCompile(`^SuperMarioBros`), Companion{"gym-super-mario-bros", pattern.MustCompile(`^gym[-_]super[-_]mario`)}},
}

// world returns the package of worlds with an environment. If the id names a module that registers it, this must be that
// of the package.
func world(id string) []Companion {
	module, name, named := strings.Cut(id, ":")
	if !named {
		name = module
	}
	for _, w := range worlds {
		if w.id.MatchString(name) && (!named || module == "gymnasium" || w.with.MatchString(module)) {
			return []Companion{w.Companion}
		}
	}
	return nil
}

// Companions returns the packages that an environment needs in addition to its library.
func Companions(id string) []Companion {
	out := world(id)
	id = id[strings.LastIndex(id, ":")+1:]
	for _, c := range companions {
		if c.id.MatchString(id) {
			out = append(out, c.Companion)
		}
	}
	return out
}

// beforeGymnasium1 matches ids that Gymnasium 1.0 removed.
var beforeGymnasium1 = pattern.MustCompile(`^(?:LunarLander(?:Continuous)?-v2|CarRacing-v2|(?:Ant|HalfCheetah|Hopper|Humanoid(?:Standup)?|Walker2d|Swimmer|Reacher|Pusher|Inverted(?:Double)?Pendulum)-v[23])$`)

// BeforeGymnasium1 reports whether Gymnasium 1.0 removed an environment.
func BeforeGymnasium1(id string) bool { return beforeGymnasium1.MatchString(id) }

// standard are the modules in sys.stdlib_module_names of Python 3.11.
var standard = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(standardModules) {
		out[name] = true
	}
	return out
})

const standardModules = `
__future__ abc aifc argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect builtins bz2 cProfile calendar cgi cgitb
chunk cmath cmd code codecs codeop collections colorsys compileall concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses
dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch
fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http imaplib imghdr imp importlib
inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib
msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes
pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re
readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver
spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny
tarfile telnetlib tempfile termios textwrap threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo
types typing unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile
zipimport zlib zoneinfo
`
