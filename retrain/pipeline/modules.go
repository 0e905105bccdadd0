package pipeline

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/programs"
)

// distributions are the packages of modules whose names differ, beside those of libraries and others.
var distributions = map[string]string{
	"Box2D": "box2d", "OpenGL": "pyopengl", "attr": "attrs", "bs4": "beautifulsoup4", "chess": "python-chess", "dateutil": "python-dateutil", "docx": "python-docx",
	"dotenv": "python-dotenv", "fitz": "pymupdf", "gin": "gin-config", "git": "gitpython", "google": "protobuf", "haiku": "dm-haiku", "igraph": "python-igraph",
	"imblearn": "imbalanced-learn", "jwt": "pyjwt", "lightning_fabric": "lightning", "pkg_resources": "setuptools", "psycopg2": "psycopg2-binary", "pyro": "pyro-ppl", "pywt": "pywavelets",
	"rl_zoo3": "rl-zoo3", "serial": "pyserial", "skimage": "scikit-image", "skopt": "scikit-optimize", "sonnet": "dm-sonnet", "talib": "ta-lib", "torchnlp": "pytorch-nlp",
	"tree": "dm-tree", "usb": "pyusb", "websocket": "websocket-client", "zmq": "pyzmq", "Levenshtein": "python-levenshtein",
}

// families are the beginnings of the names of packages that have a module beside the usual one.
var families = map[string]string{"cv2": "opencv-", "tensorflow": "tensorflow-", "google": "google-", "PIL": "pillow", "gym": "gym-", "lightning": "pytorch-lightning"}

// maxUnknown bounds the modules of a proposal that no package is known for.
const maxUnknown = 10

// undeclared adds the packages of the modules that programs import at once and that no file declares. What no version is
// known of is left to the person.
func (p *dependencies) undeclared(imports []programs.Import, own func(module string) bool) {
	unknown := 0
	for _, x := range imports {
		name := packageOf(x.Module)
		if own(x.Module) || standard[x.Module] || name == "setuptools" || p.provides(x.Module, name) {
			continue
		}
		why := x.File + " imports it, and no file declares it"
		switch {
		case p.aside[name] != "": // for development only, which is not all that needs it
			p.Packages = append(p.Packages, Declared{Name: name, Wanted: p.aside[name], Why: why + " for training", File: "no file"})
		case pins.Known(p.python, name) || pins.Newest(p.python, pins.Package{Name: name}) != "":
			p.need(name, why)
		case unknown < maxUnknown && requirement.MatchString(x.Module+"==1"):
			unknown++
			p.Packages = append(p.Packages, Declared{Name: x.Module, File: x.File, Left: x.File + " imports it, and no file declares it: add its package, unless another has it"})
		}
	}
}

// packageOf returns the normalized name of the package that has a module.
func packageOf(module string) string {
	for _, l := range slices.Concat(libraries, others) {
		if l.module == module {
			return normalised(l.name)
		}
	}
	if name, ok := distributions[module]; ok {
		return name
	}
	return normalised(module)
}

// provides reports whether a package that is there already has a module.
func (p *dependencies) provides(module, name string) bool {
	return slices.ContainsFunc(p.Packages, func(d Declared) bool {
		other := packageName(d.Name)
		return other == name || other == normalised(module) || families[module] != "" && strings.HasPrefix(other, families[module])
	})
}

var (
	ofKeras2 = regexp.MustCompile(`_make_predict_function\b|manual_variable_initialization\b|\bnp_utils\b|\.(?:fit|predict|evaluate)_generator\(|\bkeras\.(?:engine|layers\.(?:merge|core|convolutional|advanced_activations))\b|\boptimizers\.legacy\b|tensorflow\.python\.keras\b|\b(?:Adam|RMSprop|SGD|Nadam|Adamax|Adagrad)\([ \t]*lr[ \t]*=`)
	ofTF1    = regexp.MustCompile(`\b(?:tf|tensorflow)\.contrib\b|\btf\.(?:placeholder|Session|get_variable|variable_scope|global_variables_initializer)\(`)
	asTF1    = regexp.MustCompile(`compat\.v1 as tf\b|\btf = \w+\.compat\.v1\b`)
)

// interfaces takes which versions of TensorFlow a program was written for.
func (p *dependencies) interfaces(file string, text []byte) {
	if p.keras2 == "" && ofKeras2.Match(text) {
		p.keras2 = file
	}
	if p.tf1 == "" && ofTF1.Match(text) && !asTF1.Match(text) {
		p.tf1 = file
	}
}

// withKeras2 are the last versions with Keras 2, which have files for Python 3.9 to 3.11.
var withKeras2 = map[string]string{"tensorflow": "2.15.1", "tensorflow-cpu": "2.15.1", "keras": "2.15.0"}

// outdated limits TensorFlow and Keras to versions that have what the programs call, where the declarations allow it.
func (p *dependencies) outdated() {
	for i, d := range p.Packages {
		if packageName(d.Name) == "tensorflow" && p.tf1 != "" && p.limits["tensorflow"] == tf1 {
			p.Packages[i].Why = p.tf1 + " was written for TensorFlow 1"
		}
	}
	if p.keras2 == "" || !slices.Contains([]string{"3.9", "3.10", "3.11"}, p.python) {
		return
	}
	for i, d := range p.Packages {
		name := packageName(d.Name)
		if v := withKeras2[name]; v != "" && pins.Exact(p.known(d).Wanted) == "" && pins.Allowed(p.known(d).Wanted, v) {
			p.limits[name] = "==" + v
			p.Packages[i].Why = p.keras2 + " was written for Keras 2"
		}
	}
}

// standard are the modules of Python itself, from sys.stdlib_module_names of Python 3.11.
var standard = words(`
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
`)
