package pipeline

import (
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keywords"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// File is the description of a project. Every list replaces that of a file that it extends, every mapping is merged. It
// is large because each key of the file is a field.
type File struct {
	Extends      string         `yaml:"extends"`      // file that this one adds to, relative to it
	Project      string         `yaml:"project"`      // name in file names and objects of an orchestrator
	Description  string         `yaml:"description"`  // one line about the agent, for the model card
	Owner        string         `yaml:"owner"`        // who is responsible, in the contract
	Policy       string         `yaml:"policy"`       // name of the policy in the telemetry; the project by default
	Release      string         `yaml:"release"`      // Rewardwatch in the image: a tag such as v0.1.0, or a commit; this program's by default
	Targets      []string       `yaml:"targets"`      // orchestrators to generate files for
	Templates    []string       `yaml:"templates"`    // directories with your own templates, relative to the file
	Image        string         `yaml:"image"`        // container image without a tag, such as ghcr.io/acme/lander
	Base         string         `yaml:"base"`         // image that the container is built on, with an exact tag or a digest
	Requirements []string       `yaml:"requirements"` // Python packages with exact versions, name==version
	Environments []Environment  `yaml:"environments"`
	Algorithm    Algorithm      `yaml:"algorithm"`
	Simulation   []Parameter    `yaml:"simulation"` // physical parameters that vary between training episodes
	Data         Data           `yaml:"data"`
	Training     Training       `yaml:"training"`
	Evaluation   Evaluation     `yaml:"evaluation"`
	Shadow       Shadow         `yaml:"shadow"` // serves the new version in shadow or as a canary, before the gate
	Gate         Gate           `yaml:"gate"`
	Deploy       Serving        `yaml:"deploy"`   // puts the new version into service
	Rollback     Command        `yaml:"rollback"` // undoes a deployment that failed half-way
	Schedule     string         `yaml:"schedule"` // cron line in UTC; none by default
	Monitoring   Monitoring     `yaml:"monitoring"`
	Guards       yamlfile.Value `yaml:"guards"` // limits on what the policy does, as in the configuration of Rewardwatch
	Trigger      Trigger        `yaml:"trigger"`
	Model        LanguageModel  `yaml:"model"`
}

// Environment is one environment that the agent is trained and evaluated in.
type Environment struct {
	ID  string `yaml:"id"`  // as Gymnasium registers it
	Env string `yaml:"env"` // env of the telemetry; none by default
}

// Algorithm is what trains the agent.
type Algorithm struct {
	Library         string         `yaml:"library"` // stable-baselines3, cleanrl, rllib or custom
	Name            string         `yaml:"name"`    // class of the algorithm, such as PPO
	Policy          string         `yaml:"policy"`  // of Stable-Baselines3, such as CnnPolicy
	FrameStack      int            `yaml:"frame_stack"`
	Atari           bool           `yaml:"atari"` // whether the environments get the usual preprocessing of Atari games
	Hyperparameters yamlfile.Value `yaml:"hyperparameters"`
}

// Parameter is an attribute of the unwrapped environment that each training episode draws uniformly.
type Parameter struct {
	Name string  `yaml:"name"`
	Low  float64 `yaml:"low"`
	High float64 `yaml:"high"`
}

// Data is the telemetry and what of it the training uses.
type Data struct {
	Brokers []string `yaml:"brokers"`
	Topic   string   `yaml:"topic"`
	Export  bool     `yaml:"export"` // whether the drifted and the baseline data become a file for the training
}

// Training is the stage that makes a new version.
type Training struct {
	Command []string `yaml:"command"` // replaces the generated script
	Steps   int      `yaml:"steps"`
	CPU     int      `yaml:"cpu"`
	Memory  string   `yaml:"memory"` // as Kubernetes writes it, such as 4Gi
	GPU     int      `yaml:"gpu"`
	Timeout string   `yaml:"timeout"` // minutes or hours, such as 90m or 6h
	Storage string   `yaml:"storage"` // of the working directory with data, models and logs
	Runner  []string `yaml:"runner"`  // labels of the machine in GitHub Actions, tags in GitLab CI

	Telemetry bool `yaml:"telemetry"` // whether the generated script sends its episodes to Rewardwatch, as those of POLICY-training
}

// Evaluation is the stage that tests a new version before anything serves it.
type Evaluation struct {
	Command     []string     `yaml:"command"`  // replaces the generated script
	Episodes    int          `yaml:"episodes"` // for each environment and seed
	Seeds       []int        `yaml:"seeds"`
	Confidence  float64      `yaml:"confidence"` // level of the interval of the mean return
	Constraints []Constraint `yaml:"constraints"`
	Telemetry   bool         `yaml:"telemetry"` // whether the generated script sends its episodes to Rewardwatch, in shadow
}

// Constraint is a limit that the whole confidence interval of a mean must keep.
type Constraint struct {
	Metric  string         `yaml:"metric"` // return, episode_length, or a number that the environment adds to info at its last step
	AtLeast yamlfile.Value `yaml:"at_least"`
	AtMost  yamlfile.Value `yaml:"at_most"`
}

// Command is a stage that only the project knows.
type Command struct {
	Command []string `yaml:"command"` // program and arguments; VERSION and WORK are in its environment
}

// Serving is a stage that only the project knows, and that may need credentials of its own.
type Serving struct {
	Command []string `yaml:"command"` // as in Command
	Secrets []string `yaml:"secrets"` // environment variables with credentials, which no other stage gets
}

// Shadow is the stage that serves a new version beside the one in production.
type Shadow struct {
	Command []string `yaml:"command"` // as in Command
	Stop    []string `yaml:"stop"`    // ends what the command serves, if this stage or the gate fails
	Secrets []string `yaml:"secrets"` // as in Serving; the gate gets them too if it may have to stop
}

// Gate waits for the verdict of Rewardwatch on the new version.
type Gate struct {
	Skip      bool     `yaml:"skip"`
	Within    string   `yaml:"within"`    // time after which no verdict is a verdict too
	Every     string   `yaml:"every"`     // time between two questions
	Undecided string   `yaml:"undecided"` // fail or pass, if there is no verdict by then
	Runner    []string `yaml:"runner"`    // as in training
}

// Monitoring is how Rewardwatch watches the policy.
type Monitoring struct {
	Service     string   `yaml:"service"` // URL of the running service
	Signals     []string `yaml:"signals"`
	Baseline    int      `yaml:"baseline"` // episodes
	FalseAlarms Budget   `yaml:"false_alarms"`
	Expected    string   `yaml:"expected"` // what a retraining must show, as in a recipe
}

// Trigger is how an incident in Rewardwatch starts the pipeline. Without a target, nothing but people and the schedule do.
type Trigger struct {
	Target     string   `yaml:"target"`     // github-actions, gitlab-ci, airflow, or make for this machine
	Repository string   `yaml:"repository"` // owner/name at GitHub; path of the project at GitLab
	Ref        string   `yaml:"ref"`        // branch of GitLab; main by default
	URL        string   `yaml:"url"`        // base URL of Airflow
	TokenFile  string   `yaml:"token_file"` // on the machine of Rewardwatch
	Directory  string   `yaml:"directory"`  // of make: absolute path of the checkout
	Signals    []string `yaml:"signals"`    // that start a retraining; return and reward by default
	Approval   bool     `yaml:"approval"`   // whether a person approves each retraining
}

// LanguageModel is a language model that proposes what templates leave open. Without a URL there is none.
type LanguageModel struct {
	URL     string `yaml:"url"`      // of an OpenAI-compatible API, before /chat/completions
	Name    string `yaml:"name"`     // of the model
	KeyFile string `yaml:"key_file"` // none: no key is sent
	Timeout string `yaml:"timeout"`  // of a call, such as 90s or 2m
	Calls   int    `yaml:"calls"`    // at most, in one run of fill
	Readme  bool   `yaml:"readme"`   // whether the beginning of README.md is sent
}

// Budget is the acceptable number of false alarms in a stretch.
type Budget struct {
	Budget float64 `yaml:"budget"`
	Per    string  `yaml:"per"` // such as 30d or 20000 episodes
}

// The targets, libraries, and answers of a gate without a verdict.
const (
	GitHub     = "github-actions"
	GitLab     = "gitlab-ci"
	Argo       = "argo"
	Kubernetes = "kubernetes"
	Kubeflow   = "kubeflow"
	Airflow    = "airflow"
	Make       = "make"

	StableBaselines3 = keywords.StableBaselines3
	CleanRL          = keywords.CleanRL
	RLlib            = keywords.RLlib
	Custom           = keywords.Custom

	Fail = "fail"
	Pass = "pass"

	mlpPolicy = "MlpPolicy"
)

// inPods are the targets whose stages run in pods, which delete $WORK after the run.
var inPods = []string{Argo, Kubernetes, Kubeflow}

// Targets returns the names of all targets, in the order of the documentation.
func Targets() []string { return []string{GitHub, GitLab, Argo, Kubernetes, Kubeflow, Airflow, Make} }

// Libraries returns the names of all libraries.
func Libraries() []string { return []string{StableBaselines3, CleanRL, RLlib, Custom} }
