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

// maxMatches bounds the matches of a pattern in a file, so that the time for a hostile file is proportional to its
// size.
const maxMatches = 1000

var (
	// wellKnown matches the ids of Gymnasium and common companion packages.
	wellKnown = pattern.MustCompile(`^([\w.]+:)?((ALE|phys2d|tabular|dm_control|seals|metaworld|gym)/.*|(CartPole|Pendulum|Acrobot|MountainCar(Continuous)?|LunarLander(Continuous)?|BipedalWalker(Hardcore)?|CarRacing|Hopper|HalfCheetah|Ant|Walker2d|Humanoid(Standup)?|Swimmer|Reacher|Pusher|Inverted(Double)?Pendulum|FrozenLake(8x8)?|Taxi|Blackjack|CliffWalking|Fetch\w+|Hand\w+|Adroit\w+|FrankaKitchen|AntMaze\w*|PointMaze\w*|Panda\w+|MiniGrid-.+|BabyAI-.+|MiniWorld-.+|Safety\w+|highway|merge|roundabout|parking|intersection|racetrack|procgen-.+|\w+BulletEnv|\w+(NoFrameskip|Deterministic|-ram\w*))-v[0-9]+)$`)
	// saysEnvironment matches code before a string that is an environment id: env = "A-v0", "env_id": "A-v0",
	// make("A-v0".
	saysEnvironment = pattern.MustCompile(`(?i)(?:env\w*["']?\s*(?::\s*\w+\s*)?[=:(,]\s*|\b(?:make|make_vec|spec)\(\s*|env[\w-]*["']\s*,[^\n]*default\s*=\s*)(?:[\[({][^\])}]*)?["']$`)
	// madeByName and registeredByName match environments whose ids have no version.
	madeByName       = pattern.MustCompile(`\b(?:gym|gymnasium)\.make\(\s*(?:id\s*=\s*)?["']([A-Za-z][\w/-]*)["']`)
	registeredByName = pattern.MustCompile(`\bregister\(\s*id\s*=\s*["']([A-Za-z][\w/-]*)["']\s*,\s*entry_point\b`)
	versioned        = pattern.MustCompile(`-v[0-9]+$`)
	readmeCommand    = pattern.MustCompile(`--(?:env|gym)(?:[_-](?:id|name))?[ =]["']?((?:[\w.]+:)?(?:[\w.-]+/)?[A-Za-z][\w.-]*-v[0-9]+)\b`)
	classOfGym       = pattern.MustCompile(`(?m)^class (\w+)\((?:[\w., ]*\b)?(?:gym|gymnasium)\.Env\b`)
	imports          = pattern.MustCompile(`(?m)^\s*(?:from\s+[\w.]+\s+import\s+\(?[\w., \n]*|import\s+[\w., ]+)`)
)

// mentioned records strings that may be environment ids, judging by the code before them.
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

// used records ids that a file uses as environment ids.
func (p *Proposal) used(file string, re *pattern.Pattern, text []byte, clear int) {
	for _, m := range re.FindAllSubmatchIndex(text, maxMatches) {
		id := string(text[m[2]:m[3]])
		p.ids[id] = true
		if !partOfName.Match(text[max(0, m[0]-40):m[0]]) {
			p.found(&p.Environments, Finding{Value: id, File: file, clear: clear})
		}
	}
}

// register records the ids that a module of the repository registers, and what packages import.
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

// registering returns the package that registers an environment when it is imported: the outermost package that imports
// the registering module, or else that module. It returns "" if the module cannot be imported.
func (p *Proposal) registering(file string) string {
	module := strings.TrimSuffix(strings.TrimSuffix(file, ".py"), "/__init__")
	var chain []string // from the module to the top-level package
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

// byName records the environment and steps that the first program reads from constants, arguments or imported files.
func (p *Proposal) byName() {
	if id, from := p.finder.Environment(); id != "" {
		p.ids[id] = true
		p.found(&p.Environments, Finding{Value: id, File: from, clear: 5 * main})
	}
	if n, from := p.finder.Steps(); n != "" {
		p.found(&p.Steps, Finding{Value: n, File: from, clear: 5 * main})
	}
}

// identify removes strings that only resemble ids, and adds the packages that register the other environments.
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

// entryPoint matches the registration of a class as an environment.
var entryPoint = pattern.MustCompile(`\bregister\(\s*(?:id\s*=\s*)?["']([^"'\n:]+)["']\s*,\s*entry_point\s*=\s*["'][\w.]+:(\w+)["']`)

// byClass prefers the environments whose classes the first program uses instead of their ids.
func (p *Proposal) byClass(found []Finding) []Finding {
	classes := map[string]string{}
	for _, e := range found {
		id := e.Value[strings.LastIndex(e.Value, ":")+1:]
		for _, m := range entryPoint.FindAllStringSubmatch(p.finder.Text[p.modules[id]], maxMatches) {
			classes[m[1]] = m[2]
		}
	}
	if len(classes) == 0 {
		return found
	}
	out := slices.Clone(found)
	for i, e := range out {
		if class := classes[e.Value[strings.LastIndex(e.Value, ":")+1:]]; class != "" && p.finder.UsesClass(class) {
			out[i].clear += main
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return b.clear - a.clear })
	return out
}

// byOthers adds packages that a program imports only to register environments. The generated scripts make environments
// only by their ids, which must include the package.
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
