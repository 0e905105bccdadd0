package propose

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keywords"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// maxMatches bounds what is taken of one file by one pattern, so that what a hostile file costs grows no faster than its size.
const maxMatches = 1000

var (
	// wellKnown are the ids of Gymnasium and its common companions.
	wellKnown = pattern.MustCompile(`^([\w.]+:)?((ALE|phys2d|tabular|dm_control|seals|metaworld|gym)/.*|(CartPole|Pendulum|Acrobot|MountainCar(Continuous)?|LunarLander(Continuous)?|BipedalWalker(Hardcore)?|CarRacing|Hopper|HalfCheetah|Ant|Walker2d|Humanoid(Standup)?|Swimmer|Reacher|Pusher|Inverted(Double)?Pendulum|FrozenLake(8x8)?|Taxi|Blackjack|CliffWalking|Fetch\w+|Hand\w+|Adroit\w+|FrankaKitchen|AntMaze\w*|PointMaze\w*|Panda\w+|MiniGrid-.+|BabyAI-.+|MiniWorld-.+|Safety\w+|highway|merge|roundabout|parking|intersection|racetrack|procgen-.+|\w+BulletEnv|\w+(NoFrameskip|Deterministic|-ram\w*))-v[0-9]+)$`)
	// saysEnvironment is code before a string that is the id of an environment: env = "A-v0", "env_id": "A-v0", make("A-v0".
	saysEnvironment = pattern.MustCompile(`(?i)(?:env\w*["']?\s*(?::\s*\w+\s*)?[=:(,]\s*|\b(?:make|make_vec|spec)\(\s*|env[\w-]*["']\s*,[^\n]*default\s*=\s*)(?:[\[({][^\])}]*)?["']$`)
	// madeByName and registeredByName are of environments whose ids have no version.
	madeByName       = pattern.MustCompile(`\b(?:gym|gymnasium)\.make\(\s*(?:id\s*=\s*)?["']([A-Za-z][\w/-]*)["']`)
	registeredByName = pattern.MustCompile(`\bregister\(\s*id\s*=\s*["']([A-Za-z][\w/-]*)["']\s*,\s*entry_point\b`)
	versioned        = pattern.MustCompile(`-v[0-9]+$`)
	readmeCommand    = pattern.MustCompile(`--(?:env|gym)(?:[_-](?:id|name))?[ =]["']?((?:[\w.]+:)?(?:[\w.-]+/)?[A-Za-z][\w.-]*-v[0-9]+)\b`)
	classOfGym       = pattern.MustCompile(`(?m)^class (\w+)\((?:[\w., ]*\b)?(?:gym|gymnasium)\.Env\b`)
	imports          = pattern.MustCompile(`(?m)^\s*(?:from\s+[\w.]+\s+import\s+\(?[\w., \n]*|import\s+[\w., ]+)`)
)

// mentioned adds the strings that could be ids of environments, with what is said before them.
func (p *Proposal) mentioned(file string, re *pattern.Pattern, text []byte, weight int) {
	for _, m := range re.FindAllSubmatchIndex(text, maxMatches) {
		id, before := string(text[m[2]:m[3]]), text[max(0, m[2]-300):m[2]]
		if partOfName.Match(text[max(0, m[0]-40):m[0]]) {
			continue
		}
		p.found(&p.Environments, Finding{Value: id, File: file, clear: weight})
		if wellKnown.MatchString(id) || traits.OfAtari(id) || saysEnvironment.Match(before) {
			p.ids[id] = true
		}
	}
}

// used adds the ids that a file uses as such.
func (p *Proposal) used(file string, re *pattern.Pattern, text []byte, clear int) {
	for _, m := range re.FindAllSubmatchIndex(text, maxMatches) {
		id := string(text[m[2]:m[3]])
		p.ids[id] = true
		if !partOfName.Match(text[max(0, m[0]-40):m[0]]) {
			p.found(&p.Environments, Finding{Value: id, File: file, clear: clear})
		}
	}
}

// register takes the ids that a module of the repository registers, and what packages import.
func (p *Proposal) register(file string, text []byte) {
	if path.Base(file) == "__init__.py" {
		p.roots[path.Dir(file)] = true
		p.reexports[path.Dir(file)] = pytext.Names(strings.Join(imports.FindAllString(string(text), 100), "\n"))
	}
	for _, m := range append(registered.FindAllSubmatch(text, maxMatches), registeredByName.FindAllSubmatch(text, maxMatches)...) {
		id := string(bytes.Join(m[1:], nil))
		if _, known := p.modules[id]; !known || !aside(file) {
			p.modules[id] = file
		}
	}
}

// registering returns the package that has an environment registered when it is imported: the outermost one that imports
// the module that registers it, or else that module. It is "" if that module cannot be imported.
func (p *Proposal) registering(file string) string {
	module := strings.TrimSuffix(strings.TrimSuffix(file, ".py"), "/__init__")
	var chain []string // from the module to the package at the top
	for at := module; at != "." && (at == module || p.roots[at]); at = path.Dir(at) {
		chain = append(chain, at)
	}
	top := chain[len(chain)-1]
	if !p.roots[top] {
		return ""
	}
	outermost := module
	for i, at := range chain[1:] {
		if !p.reexports[at][path.Base(chain[i])] && !p.reexports[at][path.Base(module)] {
			break
		}
		outermost = at
	}
	return strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(outermost, path.Dir(top)), "/"), "/", ".")
}

// byName adds what the first program gets by the names of constants, arguments or files that it imports.
func (p *Proposal) byName() {
	if id, from := p.finder.Environment(); id != "" {
		p.ids[id] = true
		p.found(&p.Environments, Finding{Value: id, File: from, clear: 5 * main})
	}
	if n, from := p.finder.Steps(); n != "" {
		p.found(&p.Steps, Finding{Value: n, File: from, clear: 5 * main})
	}
}

// identify leaves out the strings that only look like ids, and names the packages that register the rest.
func (p *Proposal) identify() {
	p.Environments = slices.DeleteFunc(p.Environments, func(f Finding) bool {
		return (!p.ids[f.Value] || !versioned.MatchString(f.Value)) && p.modules[f.Value] == ""
	})
	for i, e := range p.Environments {
		if file, ok := p.modules[e.Value]; ok {
			if module := p.registering(file); module != "" {
				p.Environments[i].Value = module + ":" + e.Value
			}
		}
	}
}

// byOthers names the packages that register environments, where a program imports them only for that: the generated
// scripts make environments by their ids alone.
func (p *Proposal) byOthers() {
	for i, e := range p.Environments {
		if p.Library != keywords.Custom && !p.games && traits.OfAtari(e.Value) {
			p.Environments[i].Value = "ale_py:" + e.Value
			continue
		}
		if module := p.finder.Registering(e.File, e.Value); module != "" && p.Library != keywords.Custom {
			p.Environments[i].Value = module + ":" + e.Value
		}
	}
}
