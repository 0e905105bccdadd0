package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/apiurl"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keywords"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/machines"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/quote"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/schedule"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/secrets"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/verdicts"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/words"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

var (
	projectName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$`)
	trimmed     = regexp.MustCompile(`^\S(.*\S)?$`)
	imageName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)*$`)
	pinnedImage = regexp.MustCompile(`^[a-z0-9][a-z0-9._/:-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*[0-9][A-Za-z0-9_.-]*|@sha256:[0-9a-f]{64})$`)
	quantity    = regexp.MustCompile(`^[1-9][0-9]{0,5}(Mi|Gi)$`)
	ofStorage   = regexp.MustCompile(`^[1-9][0-9]{0,5}(Mi|Gi|Ti)$`)
	envID       = regexp.MustCompile(`^([\p{L}_][\p{L}\p{N}_]*(\.[\p{L}_][\p{L}\p{N}_]*)*:)?([\p{L}\p{N}_-]+/)?[\p{L}\p{N}_.-]+$`) // as Gymnasium itself requires
	label       = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	broker      = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]{1,5}$|^\[[0-9a-fA-F:.]+\]:[0-9]{1,5}$`)
	release     = regexp.MustCompile(`^(v[0-9]+\.[0-9]+\.[0-9]+([.+-][A-Za-z0-9.+-]+)?|[0-9a-f]{12,40})$`)
	repository  = regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)+$`)
	stretch     = regexp.MustCompile(`^(0+(ms|[smhdwy]))*0*[1-9][0-9]*(ms|[smhdwy])([0-9]+(ms|[smhdwy]))*$|^[1-9][0-9]{0,14} (episodes|steps|observations)$`)
	variable    = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,99}$`)
	topicName   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)
)

// validate checks every value.
func validate(w *Work) string {
	v := valuesOf(&w.File)
	for _, path := range slices.Sorted(maps.Keys(v.texts)) {
		if fault := strict.Unprintable(v.texts[path].Value); fault != "" && w.place(path) != (yamlfile.Place{}) { // otherwise, it is a default
			w.report(path, "%s", fault)
		}
	}
	plain := map[string]string{}
	for path, text := range v.texts {
		plain[path] = text.Value
	}
	for _, path := range secrets.InValues(plain) {
		w.report(path, "%s: remove it, and let the command read it from a variable of shadow.secrets or deploy.secrets", secrets.Message)
	}
	as := slices.Clone(w.Problems) // further problems of these values are consequences
	miswritten := slices.Concat(strict.Empty(w.chain, &w.given, &w.File),
		yamlfile.OtherBooleans("algorithm.hyperparameters", w.File.Algorithm.Hyperparameters), strict.Guards(w.File.Guards))
	for _, check := range []func(*Work){
		validateProject, validateRequirements, validateAlgorithm, validateSimulation, validateData, validateExported, validateReach, validateTraining,
		validateEvaluation, validateStages, validateSchedule, validateMonitoring, validateGuards, validateTrigger, validateModel, validateEffects,
	} {
		check(w)
	}
	w.Problems = strict.Causes(append(miswritten, slices.DeleteFunc(w.Problems, func(p yamlfile.Problem) bool {
		why := append(slices.Clone(miswritten), as...)
		return !slices.Contains(as, p) && slices.ContainsFunc(why, func(m yamlfile.Problem) bool { return m.Path == p.Path })
	})...))
	return fmt.Sprintf("%d values", len(v.texts))
}

// matches reports a value that does not match.
func (w *Work) matches(re *regexp.Regexp, path, value, want string) {
	if !re.MatchString(value) {
		w.report(path, "must be %s, not %q", want, value)
	}
}

// oneOf reports a value that is not one of the known ones.
func (w *Work) oneOf(path, value string, known []string) {
	if fault := keywords.NoneOf(known, value); fault != "" {
		w.report(path, "%s", fault)
	}
}

// once reports a value that a list already contains.
func (w *Work) once(path string, before bool) {
	if before {
		w.report(path, "is listed twice")
	}
}

func (w *Work) within(path string, x, low, high int) {
	if x < low || x > high {
		w.report(path, "must be from %d to %d, not %d", low, high, x)
	}
}

func (w *Work) duration(path, text string) {
	if _, err := strict.Duration(text); err != nil {
		w.report(path, "%v", err)
	}
}

func validateProject(w *Work) {
	f := &w.File
	w.matches(projectName, "project", f.Project, "at most 40 lowercase letters, digits and hyphens, starting with a letter")
	if f.Release == "" { // built without a version
		w.report("release", "must be set, because this program was built without a version: add a line such as release: v0.1.0 to %s, with the tag or commit of Rewardwatch that the generated files install", w.Path)
	} else {
		w.matches(release, "release", f.Release, "a tag such as v0.1.0, or a commit")
	}
	if host, _, _ := strings.Cut(f.Image, "/"); strings.Contains(host, ":") && imageName.MatchString(f.Image) && !strict.IsPort(host[strings.Index(host, ":")+1:]) {
		w.report("image", "must name a registry with a port of at most 65535, not %q", f.Image)
	}
	w.matches(imageName, "image", f.Image, "an image without a tag, in lowercase letters, such as ghcr.io/acme/lander")
	w.matches(pinnedImage, "base", f.Base, "an image with a digest, or with a version in its tag")
	installs := len(f.Requirements) > 0 || f.Algorithm.Library != Custom
	if fault := pins.NoPython(f.Base); fault != "" && installs {
		w.report("base", "%s", fault)
	}
	if pinnedImage.MatchString(f.Base) && strict.Moves(f.Base) {
		w.report("base", "must have an exact version in its tag, such as python:3.12.11-slim-bookworm, or a digest, because the image that %s refers to can change", f.Base)
	}
	for i, t := range f.Targets {
		w.oneOf(element("targets", i), t, Targets())
		w.once(element("targets", i), slices.Contains(f.Targets[:i], t))
	}
	for _, t := range f.Targets {
		if (t == GitHub || slices.Contains(inPods, t)) && !strings.Contains(f.Image, "/") && imageName.MatchString(f.Image) {
			w.report("image", "must name a registry from which %[2]s can pull it, such as ghcr.io/acme/%[1]s", f.Project, t)
			break
		}
	}
	if host, _, _ := strings.Cut(f.Image, "/"); slices.Contains(f.Targets, GitHub) && strings.Contains(f.Image, "/") && !strings.ContainsAny(host, ".:") {
		w.report("image", "must start with the host of the registry that GitHub Actions logs in to, such as docker.io/%s", f.Image)
	}
	for i, d := range f.Templates {
		if d == "" {
			w.report(element("templates", i), "must be a directory")
		}
		w.once(element("templates", i), slices.Contains(f.Templates[:i], d))
	}
	for i, e := range f.Environments {
		w.matches(envID, element("environments", i)+".id", e.ID, "a Gymnasium environment ID, such as LunarLander-v3")
		w.once(element("environments", i)+".id", slices.Contains(f.Environments[:i], e))
		if slices.ContainsFunc(f.Environments[:i], func(o Environment) bool { return e.Env != "" && o.Env == e.Env && o.ID != e.ID }) {
			w.report(element("environments", i)+".env", "must differ from that of another environment: the telemetry of both would be one group")
		}
		w.registered(element("environments", i)+".id", e.ID)
	}
	if f.Algorithm.Library != Custom && len(f.Environments) == 0 && (len(f.Training.Command) == 0 || len(f.Evaluation.Command) == 0) {
		w.report("environments", "must list at least one environment, because the generated scripts train and evaluate in it")
	}
}

// registered reports an environment that the generated scripts cannot make.
func (w *Work) registered(path, id string) {
	f := &w.File
	if len(f.Training.Command) > 0 && len(f.Evaluation.Command) > 0 {
		return
	}
	if why := pins.Unknown(id, f.Requirements); why != "" {
		w.report(path, "%s", why)
	} else if lacking := pins.Lacking(id, f.Requirements); lacking != "" && strings.Contains(f.Base, "python:") { // other images may contain it
		w.report(path, "%s", lacking)
	}
	if !traits.OfAtari(id) || f.Algorithm.Atari {
		return
	}
	w.report(path, "must be ale_py:%s, with ale-py among the requirements, because Gymnasium registers the games only when ale_py is imported", id)
}

func validateRequirements(w *Work) {
	seen := map[string]bool{}
	for i, r := range w.File.Requirements {
		path := element("requirements", i)
		w.matches(pins.Requirement, path, r, "a package with its exact version, such as numpy==2.4.6")
		name := pins.Name(r)
		w.once(path, seen[name])
		seen[name] = true
		if name == "rewardwatch" && (w.File.Training.Telemetry || w.File.Evaluation.Telemetry) {
			w.report(path, "must be omitted, because the generated scripts that send telemetry use rewardwatch at the release of the pipeline; to use your own, set evaluation.telemetry: false")
		}
		for _, fault := range []string{pins.Beyond(w.File.Base, r), pins.Before(w.File.Base, r), pins.Misspelled(r, w.File.Requirements), pins.Conflict(r, w.File.Requirements)} {
			if fault != "" {
				w.report(path, "%s", fault)
			}
		}
		if fault := pins.Fault(w.File.Algorithm.Library, r, w.File.Requirements); fault != "" && (len(w.File.Training.Command) == 0 || len(w.File.Evaluation.Command) == 0) {
			w.report(path, "%s", fault)
		}
	}
	for _, name := range keywords.Packages[w.File.Algorithm.Library] {
		if !seen[name] {
			w.report("requirements", "must pin %s, which %s requires, such as %s==VERSION", name, w.File.Algorithm.Library, name)
		}
	}
	if w.File.Algorithm.Library != Custom && len(w.File.Evaluation.Command) == 0 && !seen["scipy"] {
		w.report("requirements", "must pin scipy, which the generated evaluation requires, such as scipy==VERSION")
	}
}

func validateAlgorithm(w *Work) {
	a := w.File.Algorithm
	w.oneOf("algorithm.library", a.Library, Libraries())
	if known, ok := keywords.Algorithms[a.Library]; ok {
		w.oneOf("algorithm.name", a.Name, known)
	}
	for stage, command := range map[string][]string{"training": w.File.Training.Command, "evaluation": w.File.Evaluation.Command} {
		if a.Library == Custom && len(command) == 0 {
			w.report("algorithm.library", "requires %s.command, which a custom library has instead of a generated script", stage)
		}
	}
	validateSeeing(w)
	validateSpaces(w)
	h := a.Hyperparameters
	if h.Kind != yamlfile.Absent && h.Kind != yamlfile.Null && h.Kind != yamlfile.Mapping {
		w.report("algorithm.hyperparameters", "must be a mapping")
	}
	in := keywords.Training{
		Library: a.Library, Algorithm: a.Name, Policy: a.Policy, Steps: w.File.Training.Steps, Environments: len(w.File.Environments), Own: len(w.File.Training.Command) > 0,
		NoGPU: w.File.Training.GPU == 0 && w.limited(), Memory: strict.MiB(w.File.Training.Memory, w.limited()), OfficialPython: !strict.IsBare(w.File.Base), Requirements: w.File.Requirements,
	}
	if all := w.File.Environments; len(all) > 0 { // all environments have the same spaces
		in.Discrete, in.Seen = traits.Discrete(all[0].ID), traits.Bytes(all[0].ID, a.Atari)*a.FrameStack
	}
	w.Problems = append(w.Problems, in.Faults("algorithm.hyperparameters", h)...)
}

// validateSpaces checks that the generated scripts can train and evaluate in the environments, as far as these are
// known.
func validateSpaces(w *Work) {
	a, all := w.File.Algorithm, w.File.Environments
	for i, e := range all {
		for j, c := range w.File.Evaluation.Constraints {
			for key, fault := range traits.Exceeded(e.ID, c.Metric, c.AtLeast.Float(), c.AtMost.Float()) {
				w.report(element("evaluation.constraints", j)+"."+key, "%s", fault)
			}
			if why := traits.Unreported(e.ID, c.Metric); why != "" && len(w.File.Evaluation.Command) == 0 {
				w.warn(element("evaluation.constraints", j)+".metric", "%s", why)
			}
		}
		switch fault, unlike := traits.NoActions(a.Library, a.Name, e.ID), traits.Unlike(e.ID, all[0].ID); {
		case len(w.File.Training.Command) > 0: // it may wrap them
		case unlike != "":
			w.report(element("environments", i)+".id", "%s", unlike)
		case i == 0 && fault != "":
			w.report("algorithm.name", "%s", fault)
		case i == 0 && a.Policy == "CnnPolicy" && traits.NoImages(e.ID) != "":
			w.report("algorithm.policy", "%s", traits.NoImages(e.ID))
		case i == 0 && a.Policy == "MultiInputPolicy" && traits.NoDictionaries(e.ID) != "":
			w.report("algorithm.policy", "%s", traits.NoDictionaries(e.ID))
		}
	}
}

// validateSeeing checks how Stable-Baselines3 networks process observations.
func validateSeeing(w *Work) {
	a := w.File.Algorithm
	if a.Library != StableBaselines3 {
		for key, given := range map[string]bool{"policy": a.Policy != "", "frame_stack": a.FrameStack != 1, "atari": a.Atari} {
			if given {
				w.report("algorithm."+key, "requires library %s", StableBaselines3)
			}
		}
		return
	}
	w.oneOf("algorithm.policy", a.Policy, keywords.Policies)
	w.within("algorithm.frame_stack", a.FrameStack, 1, 64)
	if a.FrameStack > 1 && a.Policy == "MultiInputPolicy" {
		w.report("algorithm.frame_stack", "must be 1 with MultiInputPolicy, because dictionaries are not stacked")
	}
	for _, name := range []string{"ale-py", "opencv-python"} {
		if a.Atari && !slices.ContainsFunc(w.File.Requirements, func(r string) bool { return strings.HasPrefix(pins.Name(r), name) }) {
			w.report("algorithm.atari", "requires %s among the requirements, such as %s==VERSION", name, name)
		}
	}
}

func validateSimulation(w *Work) {
	for i, p := range w.File.Simulation {
		path := element("simulation", i)
		fault := strict.Attribute(p.Name)
		for _, e := range w.File.Environments {
			fault = cmp.Or(fault, traits.NoParameter(e.ID, p.Name))
		}
		if fault != "" {
			w.report(path+".name", "%s", fault)
		}
		w.once(path+".name", slices.ContainsFunc(w.File.Simulation[:i], func(o Parameter) bool { return o.Name == p.Name }))
		if !w.set(path+".low", "simulation") || !w.set(path+".high", "simulation") {
			w.report(path, "must have low and high")
		} else if !(p.Low < p.High) {
			w.report(path+".high", "must be above low, %v", p.Low)
		}
	}
}

func validateData(w *Work) {
	for i, b := range w.File.Data.Brokers {
		if port := b[strings.LastIndex(b, ":")+1:]; !broker.MatchString(b) || !strict.IsPort(port) {
			w.report(element("data.brokers", i), "must be host:port with a port of at most 65535, not %q", b)
		}
		w.once(element("data.brokers", i), slices.Contains(w.File.Data.Brokers[:i], b))
	}
	w.matches(topicName, "data.topic", w.File.Data.Topic, "the name of a topic")
	if strings.Trim(w.File.Data.Topic, ".") == "" {
		w.report("data.topic", "must not be . or .., which Kafka does not allow")
	}
	if len(w.File.Data.Brokers) > 0 {
		return
	}
	for _, t := range w.File.Targets {
		if w.File.Data.Export && t != Make && t != Airflow {
			w.report("data.export", "requires data.brokers with %s: without Kafka, the service stores telemetry in local files, which the stages cannot read", t)
			break
		}
	}
}

func validateTraining(w *Work) {
	t := &w.File.Training
	if t.Steps != 0 || len(t.Command) == 0 {
		w.within("training.steps", t.Steps, 1, 1e12)
	}
	w.within("training.cpu", t.CPU, 1, 1024)
	w.within("training.gpu", t.GPU, 0, 64)
	if t.GPU > 1 && len(t.Command) == 0 {
		w.report("training.gpu", "must be at most 1, which the generated script uses; to use more, set training.command")
	}
	w.matches(quantity, "training.memory", t.Memory, "a size such as 4Gi")
	if machines.TooLarge(t.Memory) {
		w.report("training.memory", "must be at most 32768Gi, not %s", t.Memory)
	}
	w.matches(ofStorage, "training.storage", t.Storage, "a size such as 10Gi")
	for path, fault := range strict.TooSmall(t.Memory, t.Storage, len(t.Command) == 0 || len(w.File.Evaluation.Command) == 0) {
		w.report(path, "%s", fault)
	}
	w.duration("training.timeout", t.Timeout)
	w.runner("training", t.Runner)
	w.onRunners(machines.Stage{Name: "training", Runner: t.Runner, CPU: t.CPU, GPU: t.GPU, Memory: t.Memory, Limit: t.Timeout})
	w.command("training.command", t.Command)
}

// runner checks the runner labels of a stage.
func (w *Work) runner(stage string, runner []string) {
	for i, r := range runner {
		w.matches(label, element(stage+".runner", i), r, "a label of letters, digits, dots, hyphens and underscores")
		w.once(element(stage+".runner", i), slices.Contains(runner[:i], r))
		if strict.IsNotLinux(r) && slices.Contains(w.File.Targets, GitHub) {
			w.report(element(stage+".runner", i), "must be the label of a Linux machine, not %s: the stages run in Linux containers", r)
		}
	}
}

// onRunners reports resources and time limits of a stage that GitHub Actions or GitLab CI do not provide.
func (w *Work) onRunners(s machines.Stage) {
	for key, fault := range w.File.placed(s).Faults() {
		w.report(s.Name+"."+key, "%s", fault)
	}
}

// command reports words of a command that cannot work as intended.
func (w *Work) command(path string, all []string) {
	named := slices.Concat(w.File.Shadow.Secrets, w.File.Deploy.Secrets)
	for i := range all {
		if fault := words.Fault(all, i, named, strict.IsDebian(w.File.Base)); fault != "" {
			w.report(element(path, i), "%s", fault)
		}
	}
}

// secrets checks the names of the secrets of a stage.
func (w *Work) secrets(stage string, s Serving) {
	for i, name := range s.Secrets {
		path := element(stage+".secrets", i)
		if !variable.MatchString(name) { // it may be the secret itself
			w.report(path, "must be a name of capital letters, digits and underscores, of a secret that the pipeline has: the value must not be in this file")
		}
		if secrets.Reserved(name) {
			w.report(path, "%s has a different meaning in the pipeline: use another name", name)
		}
		w.once(path, slices.Contains(s.Secrets[:i], name))
	}
	if len(s.Secrets) > 0 && len(s.Command) == 0 {
		w.report(stage+".secrets", "requires %s.command", stage)
	}
}

func validateEvaluation(w *Work) {
	e := &w.File.Evaluation
	w.within("evaluation.episodes", e.Episodes, 1, 1e6)
	if e.Confidence < .5 || e.Confidence > .9999 {
		w.report("evaluation.confidence", "must be from 0.5 to 0.9999, not %v", e.Confidence)
	}
	if len(e.Seeds) < 2 && len(e.Command) == 0 {
		w.report("evaluation.seeds", "must list at least two seeds, because the confidence interval is computed from their differences")
	}
	for i, s := range e.Seeds {
		w.within(element("evaluation.seeds", i), s, 0, 1<<31-1)
		w.once(element("evaluation.seeds", i), slices.Contains(e.Seeds[:i], s))
	}
	for i, c := range e.Constraints {
		path := element("evaluation.constraints", i)
		w.matches(trimmed, path+".metric", c.Metric, "return, episode_length, or a name in the environment's info, without spaces around it")
		if meant := traits.Misspelled(c.Metric); meant != "" && c.Metric == strings.TrimSpace(c.Metric) {
			w.report(path+".metric", "must be %s, not %s", meant, c.Metric)
		}
		if slices.ContainsFunc(e.Constraints[:i], func(o Constraint) bool { return o.Metric == c.Metric }) {
			w.report(path+".metric", "already has a constraint: set at_least and at_most together")
		}
		if c.AtLeast.Kind == yamlfile.Absent && c.AtMost.Kind == yamlfile.Absent {
			w.report(path, "must have at_least or at_most")
		}
		w.number(path+".at_least", c.AtLeast)
		w.number(path+".at_most", c.AtMost)
		low, high := c.AtLeast.Float(), c.AtMost.Float()
		if low > high {
			w.report(path+".at_most", "must be at least at_least, %v", low)
		}
		for key, fault := range traits.Impossible(c.Metric, low, high) {
			w.report(path+"."+key, "%s", fault)
		}
	}
	w.command("evaluation.command", e.Command)
}

func (w *Work) number(path string, v yamlfile.Value) {
	if v.Kind == yamlfile.Absent {
		return
	}
	if _, err := strconv.ParseFloat(v.Scalar, 64); v.Kind != yamlfile.Number || err != nil {
		w.report(path, "must be a number")
	}
}

func validateSchedule(w *Work) {
	if fault := schedule.Fault(w.File.Schedule, slices.Contains(w.File.Targets, GitHub)); w.File.Schedule != "" && fault != "" {
		w.report("schedule", "%s", fault)
	}
}

func validateStages(w *Work) {
	f := &w.File
	w.command("shadow.command", f.Shadow.Command)
	w.command("deploy.command", f.Deploy.Command)
	w.command("rollback.command", f.Rollback.Command)
	w.command("shadow.stop", f.Shadow.Stop)
	if len(f.Shadow.Stop) > 0 && len(f.Shadow.Command) == 0 {
		w.report("shadow.stop", "requires shadow.command")
	}
	w.secrets("shadow", Serving{f.Shadow.Command, f.Shadow.Secrets})
	w.secrets("deploy", f.Deploy)
	validateKeeping(w)
	w.duration("gate.within", f.Gate.Within)
	w.duration("gate.every", f.Gate.Every)
	within, bad := strict.Duration(f.Gate.Within)
	if every, err := strict.Duration(f.Gate.Every); err == nil && bad == nil && every > within && !f.Gate.Skip {
		w.report("gate.every", "must be at most gate.within, which is %s", f.Gate.Within)
	}
	w.runner("gate", f.Gate.Runner)
	w.onRunners(machines.Stage{Name: "gate", Runner: f.Gate.Runner, Limit: f.Gate.Within})
	w.oneOf("gate.undecided", f.Gate.Undecided, []string{Fail, Pass})
	for path, fault := range verdicts.Faults(verdicts.Gate{
		Skipped: f.Gate.Skip, Passes: f.Gate.Undecided == Pass, Baseline: f.Monitoring.Baseline, Seeds: len(f.Evaluation.Seeds),
		Episodes: f.Evaluation.Episodes, Sent: f.Evaluation.Telemetry, Others: len(f.Evaluation.Command)+len(f.Shadow.Command) > 0,
	}) {
		w.report(path, "%s", fault)
	}
}

// validateKeeping checks that a new version is not lost if nothing deploys it.
func validateKeeping(w *Work) {
	f := &w.File
	if len(f.Deploy.Command) > 0 {
		return
	}
	if i := slices.IndexFunc(f.Targets, func(t string) bool { return slices.Contains(inPods, t) }); i >= 0 {
		w.report("deploy.command", "must be set for %s, because its $WORK is deleted after the run and the new version would be lost", f.Targets[i])
	}
	if len(f.Rollback.Command) > 0 {
		w.report("rollback.command", "requires deploy.command")
	}
}

const serviceURL = "must be an http or https URL with a port of at most 65535 and without a user, query or fragment, not %q"

func validateMonitoring(w *Work) {
	m := &w.File.Monitoring
	if !strict.IsService(m.Service) {
		w.report("monitoring.service", serviceURL, m.Service)
	}
	for _, t := range w.File.Targets {
		if strict.IsLoopback(w.given.Monitoring.Service) && (slices.Contains(inPods, t) && !w.File.Gate.Skip || t == GitHub && w.File.hostedAsk()) {
			w.report("monitoring.service", "must be a URL that the stages of %s can reach, not %s, which is the machine that they run on", t, m.Service)
			break
		}
	}
	for i, s := range m.Signals {
		w.once(element("monitoring.signals", i), slices.Contains(m.Signals[:i], s))
		if !strict.IsSignal(s) {
			w.report(element("monitoring.signals", i), "must be return, reward, episode_length, action, feedback_delay, a name such as observation.NAME, or a pattern, not %q", s)
		}
	}
	w.within("monitoring.baseline", m.Baseline, verdicts.LeastBaseline, 100_000)
	if !(m.FalseAlarms.Budget > 0) {
		w.report("monitoring.false_alarms.budget", "must be above 0")
	}
	w.matches(stretch, "monitoring.false_alarms.per", m.FalseAlarms.Per, "a duration above 0 such as 30d, or a count such as 20000 episodes")
	if e, err := recipe.ParseExpected(m.Expected); err != nil {
		w.report("monitoring.expected", "%v", err)
	} else if strict.Monitored(e.Signal, m.Signals) {
	} else if w.given.Monitoring.Expected != "" {
		w.report("monitoring.expected", "must be about a signal that monitoring.signals includes, not %s", e.Signal)
	} else if w.File.Trigger.Target != "" {
		w.report("monitoring.signals", "must include %s, which monitoring.expected (%s) is about", e.Signal, m.Expected)
	}
	if policy := w.File.Policy; !trimmed.MatchString(policy) || policy[0] == '-' {
		w.report("policy", "must be a name that does not start with a hyphen, without spaces around it")
	}
	if _, err := quote.Glob(w.File.Policy); err != nil {
		w.report("policy", "%v", err)
	}
}

// triggerKeys maps the targets of triggers to the keys that they require, and those that they allow, with a question
// mark.
var triggerKeys = map[string][]string{
	GitHub: {"repository", "token_file", "url?"}, GitLab: {"repository", "token_file", "ref?", "url?"}, Airflow: {"url", "token_file"}, Make: {"directory"},
}

func validateTrigger(w *Work) {
	t := &w.File.Trigger
	if t.Target == "" {
		return
	}
	keys, known := triggerKeys[t.Target]
	if !known {
		w.oneOf("trigger.target", t.Target, []string{GitHub, GitLab, Airflow, Make})
		return
	}
	if !slices.Contains(w.File.Targets, t.Target) {
		w.report("trigger.target", "must be one of the targets: %s", strings.Join(w.File.Targets, ", "))
	}
	given := map[string]string{"repository": t.Repository, "token_file": t.TokenFile, "url": t.URL, "directory": t.Directory}
	for _, key := range keys {
		if given[key] == "" && !strings.HasSuffix(key, "?") {
			w.report("trigger."+key, "must be set for %s", t.Target)
		}
	}
	if !strict.IsRef(t.Ref) {
		w.report("trigger.ref", "must be the name of a branch or tag, not %q", t.Ref)
	}
	for path, fault := range strict.Signals(w.given.Trigger.Signals, t.Signals, w.File.Monitoring.Signals) {
		w.report(path, "%s", fault)
	}
	ofAPI := map[string]func(string) string{GitHub: apiurl.GitHub, GitLab: apiurl.Appended, Airflow: apiurl.Appended}[t.Target]
	if t.URL != "" && !strict.IsService(t.URL) {
		w.report("trigger.url", serviceURL, t.URL)
	} else if ofAPI != nil && ofAPI(t.URL) != "" {
		w.report("trigger.url", "%s", ofAPI(t.URL))
	}
	if fault := apiurl.Repository(t.Repository); fault != "" {
		w.report("trigger.repository", "%s", fault)
	} else if t.Repository != "" {
		w.matches(repository, "trigger.repository", t.Repository, "owner/name")
	}
	if t.Target == Make && !strings.HasPrefix(t.Directory, "/") {
		w.report("trigger.directory", "must be an absolute path")
	}
}
