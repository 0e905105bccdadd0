package pipeline

import (
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keywords"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// File is the description of a project. A list replaces that of an extended file, and mappings are merged. It is large
// because each key of the file is a field.
type File struct {
	Extends      string         `yaml:"extends"`      // file that this one extends, relative to it
	Project      string         `yaml:"project"`      // name in file names and objects of an orchestrator
	Description  string         `yaml:"description"`  // one line about the agent, for the model card
	Owner        string         `yaml:"owner"`        // person or team responsible, in the contract
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
	Guards       yamlfile.Value `yaml:"guards"` // limits on the actions of the policy, as in the configuration of Rewardwatch
	Trigger      Trigger        `yaml:"trigger"`
	Model        LanguageModel  `yaml:"model"`
}

// Environment is one environment that the agent is trained and evaluated in.
type Environment struct {
	ID  string `yaml:"id"`  // as Gymnasium registers it
	Env string `yaml:"env"` // env label of the telemetry; none by default
}

// Algorithm describes the training algorithm.
type Algorithm struct {
	Library         string         `yaml:"library"` // stable-baselines3, cleanrl, rllib or custom
	Name            string         `yaml:"name"`    // class of the algorithm, such as PPO
	Policy          string         `yaml:"policy"`  // policy class of Stable-Baselines3, such as CnnPolicy
	FrameStack      int            `yaml:"frame_stack"`
	Atari           bool           `yaml:"atari"` // whether to apply the usual preprocessing of Atari games
	Hyperparameters yamlfile.Value `yaml:"hyperparameters"`
}

// Parameter is an attribute of the unwrapped environment whose value is drawn uniformly for each training episode.
type Parameter struct {
	Name string  `yaml:"name"`
	Low  float64 `yaml:"low"`
	High float64 `yaml:"high"`
}

// Data is the telemetry, and how the training uses it.
type Data struct {
	Brokers []string `yaml:"brokers"`
	Topic   string   `yaml:"topic"`
	Export  bool     `yaml:"export"` // whether to export drifted and baseline data to a file for the training
}

// Training is the stage that trains a new version.
type Training struct {
	Command []string `yaml:"command"` // replaces the generated script
	Steps   int      `yaml:"steps"`
	CPU     int      `yaml:"cpu"`
	Memory  string   `yaml:"memory"` // in Kubernetes notation, such as 4Gi
	GPU     int      `yaml:"gpu"`
	Timeout string   `yaml:"timeout"` // minutes or hours, such as 90m or 6h
	Storage string   `yaml:"storage"` // size of the working directory with data, models and logs
	Runner  []string `yaml:"runner"`  // labels of the runner in GitHub Actions, tags in GitLab CI

	Telemetry bool `yaml:"telemetry"` // whether the generated script sends its episodes to Rewardwatch, as policy POLICY-training
}

// Evaluation is the stage that tests a new version before it serves.
type Evaluation struct {
	Command     []string     `yaml:"command"`  // replaces the generated script
	Episodes    int          `yaml:"episodes"` // for each environment and seed
	Seeds       []int        `yaml:"seeds"`
	Confidence  float64      `yaml:"confidence"` // confidence level of the interval of the mean return
	Constraints []Constraint `yaml:"constraints"`
	Telemetry   bool         `yaml:"telemetry"` // whether the generated script sends its episodes to Rewardwatch, as shadow
}

// Constraint is a limit that the whole confidence interval of a mean must satisfy.
type Constraint struct {
	Metric  string         `yaml:"metric"` // return, episode_length, or a number in info at the last step of an episode
	AtLeast yamlfile.Value `yaml:"at_least"`
	AtMost  yamlfile.Value `yaml:"at_most"`
}

// Command is a stage with a command of the project.
type Command struct {
	Command []string `yaml:"command"` // program and arguments; its environment contains VERSION and WORK
}

// Serving is a stage with a command of the project that may need credentials.
type Serving struct {
	Command []string `yaml:"command"` // as in Command
	Secrets []string `yaml:"secrets"` // environment variables with credentials, which no other stage receives
}

// Shadow is the stage that serves a new version next to the one in production.
type Shadow struct {
	Command []string `yaml:"command"` // as in Command
	Stop    []string `yaml:"stop"`    // stops what the command serves, if this stage or the gate fails
	Secrets []string `yaml:"secrets"` // as in Serving; the gate receives them too if it may run Stop
}

// Gate waits for Rewardwatch's verdict on the new version.
type Gate struct {
	Skip      bool     `yaml:"skip"`
	Within    string   `yaml:"within"`    // time after which Undecided applies
	Every     string   `yaml:"every"`     // polling interval
	Undecided string   `yaml:"undecided"` // fail or pass, if there is no verdict after Within
	Runner    []string `yaml:"runner"`    // as in training
}

// Monitoring configures how Rewardwatch monitors the policy.
type Monitoring struct {
	Service     string   `yaml:"service"` // URL of the running service
	Signals     []string `yaml:"signals"`
	Baseline    int      `yaml:"baseline"` // episodes
	FalseAlarms Budget   `yaml:"false_alarms"`
	Expected    string   `yaml:"expected"` // expected outcome of a retraining, as in a recipe
}

// Trigger configures how an incident in Rewardwatch starts the pipeline. Without a target, only people and the schedule
// start it.
type Trigger struct {
	Target     string   `yaml:"target"`     // github-actions, gitlab-ci, airflow, or make for this machine
	Repository string   `yaml:"repository"` // owner/name at GitHub; path of the project at GitLab
	Ref        string   `yaml:"ref"`        // branch of GitLab; main by default
	URL        string   `yaml:"url"`        // base URL of Airflow
	TokenFile  string   `yaml:"token_file"` // on the machine that runs Rewardwatch
	Directory  string   `yaml:"directory"`  // for make: absolute path of the checkout
	Signals    []string `yaml:"signals"`    // signals whose incidents start a retraining; return and reward by default
	Approval   bool     `yaml:"approval"`   // whether each retraining requires approval
}

// LanguageModel configures a language model that proposes text for the parts that templates leave open. It is off
// without a URL.
type LanguageModel struct {
	URL     string `yaml:"url"`      // base URL of an OpenAI-compatible API, without /chat/completions
	Name    string `yaml:"name"`     // name of the model
	KeyFile string `yaml:"key_file"` // file with the API key; no key is sent if it is empty
	Timeout string `yaml:"timeout"`  // time limit of a request, such as 90s or 2m
	Calls   int    `yaml:"calls"`    // maximum number of requests in one run of fill
	Readme  bool   `yaml:"readme"`   // whether to send the beginning of README.md
}

// Budget is the acceptable number of false alarms per duration or count.
type Budget struct {
	Budget float64 `yaml:"budget"`
	Per    string  `yaml:"per"` // such as 30d or 20000 episodes
}

// The targets, the libraries, and what a gate does without a verdict.
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

// inPods are the targets whose stages run in pods, where $WORK is deleted after the run.
var inPods = []string{Argo, Kubernetes, Kubeflow}

// Targets returns the names of all targets, in the order of the documentation.
func Targets() []string { return []string{GitHub, GitLab, Argo, Kubernetes, Kubeflow, Airflow, Make} }

// Libraries returns the names of all libraries.
func Libraries() []string { return []string{StableBaselines3, CleanRL, RLlib, Custom} }
