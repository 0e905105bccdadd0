package retrain

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// GitHubTarget is a repository on GitHub whose workflows run on repository_dispatch.
type GitHubTarget struct {
	Repository string `yaml:"repository"` // owner/name
	EventType  string `yaml:"event_type"` // that the workflows wait for, at most 100 characters; retrain.requested where it is left out
	TokenFile  string `yaml:"token_file"` // holds a token that may write the contents of the repository
	URL        string `yaml:"url"`        // of the API; https://api.github.com where it is left out, https://HOST/api/v3 for an Enterprise Server
}

// GitLabTarget is a project on GitLab of which a pipeline is triggered.
type GitLabTarget struct {
	Project   string `yaml:"project"`    // number or path, such as ml/trainer
	Ref       string `yaml:"ref"`        // branch or tag that the pipeline runs on
	TokenFile string `yaml:"token_file"` // holds a trigger token of the project
	URL       string `yaml:"url"`        // of the instance, without /api/v4; https://gitlab.com where it is left out
}

// AirflowTarget is a DAG of which a run is triggered, with the request's id as that of the run. It needs user and password_file, or token_file.
type AirflowTarget struct {
	DAG          string `yaml:"dag"`           // id of the DAG
	URL          string `yaml:"url"`           // of the web server, without /api
	Version      int    `yaml:"version"`       // of Airflow: 2 or 3
	User         string `yaml:"user"`          // who may trigger the DAG
	PasswordFile string `yaml:"password_file"` // holds the password of the user
	TokenFile    string `yaml:"token_file"`    // holds a bearer token in place of user and password
}

// ArgoEventsTarget is an event source of Argo Events, of the type webhook.
type ArgoEventsTarget struct {
	URL       string `yaml:"url"`        // of the event source's endpoint
	TokenFile string `yaml:"token_file"` // holds the token of its authSecret
}

// JenkinsTarget is a Jenkins whose plugin Generic Webhook Trigger starts the jobs that have the token.
type JenkinsTarget struct {
	URL       string `yaml:"url"`        // of Jenkins, with /generic-webhook-trigger/invoke
	TokenFile string `yaml:"token_file"` // holds the token of the jobs
}

// CloudEventsTarget is a receiver of CloudEvents 1.0 over HTTP, in structured content mode.
type CloudEventsTarget struct {
	URL       string `yaml:"url"`        // of the receiver
	TokenFile string `yaml:"token_file"` // holds a bearer token; left out, none is sent
}

// KafkaTarget is a Kafka topic to which requests are written.
type KafkaTarget struct {
	Topic   string            `yaml:"topic"`   // it must exist
	Brokers []string          `yaml:"brokers"` // host:port; left out, those of ingest.kafka, with its tls and sasl
	TLS     ingest.TLSConfig  `yaml:"tls"`
	SASL    ingest.SASLConfig `yaml:"sasl"`

	telemetry bool // the brokers are those of the telemetry
}

// service is what a target names: whom to tell.
type service interface {
	given() bool                        // whether the configuration has any of it
	check(report func(key, msg string)) // reports what is wrong with the values of its keys
	address() string                    // where requests go: a target that answered 410 is used again when that changes
	adapter(line line) (adapter, error) // the configuration must be right
}

// kind is one of the services that a target may name.
type kind struct {
	key string
	service
}

// kinds gives all that a target may name, of which it names one.
func (t Target) kinds() []kind {
	return []kind{
		{"webhook", webhookTarget{url: t.Webhook, secretFile: t.SecretFile}},
		{"github", t.GitHub},
		{"gitlab", t.GitLab},
		{"airflow", t.Airflow},
		{"argo_events", t.ArgoEvents},
		{"jenkins", t.Jenkins},
		{"cloudevents", t.CloudEvents},
		{"kafka", t.Kafka},
		{"command", t.Command},
	}
}

// address says where requests go.
func (t Target) address() string {
	for _, k := range t.kinds() {
		if k.given() {
			return k.address()
		}
	}
	return ""
}

// checkKind reports what is wrong with whom a target tells. at is its path.
func (t Target) checkKind(at string, report func(path, msg string)) {
	var keys []string
	first := ""
	for _, k := range t.kinds() {
		keys = append(keys, k.key)
		switch {
		case !k.given():
		case first != "":
			report(at+"."+k.key, "must be left out, or else "+first+": a target tells one service")
		default:
			first = k.key
			k.check(func(key, msg string) { report(at+"."+key, msg) })
		}
	}
	if first == "" {
		report(at, "must have one of "+strings.Join(keys, ", "))
	}
}

// below gives the report of the keys of a section.
func below(section string, report func(key, msg string)) func(key, msg string) {
	return func(key, msg string) { report(section+"."+key, msg) }
}

// webhookTarget is the receiver of Standard Webhooks, whose keys are those of the target itself.
type webhookTarget struct{ url, secretFile string }

func (w webhookTarget) given() bool     { return w != webhookTarget{} }
func (w webhookTarget) address() string { return w.url }

func (w webhookTarget) check(report func(key, msg string)) {
	if msg := checkURL(w.url); msg != "" {
		report("webhook", msg)
	}
	if w.secretFile == "" {
		report("secret_file", "must name a file that holds a whsec_ secret: every webhook is signed")
	}
}

// maxEventType is the length of an event type that GitHub takes, in characters.
const maxEventType = 100

var repositoryName = regexp.MustCompile(`^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$`)

func (g GitHubTarget) given() bool { return g != GitHubTarget{} }

func (g GitHubTarget) address() string {
	return base(g.URL, "https://api.github.com") + "/repos/" + g.Repository + "/dispatches"
}

func (g GitHubTarget) check(report func(key, msg string)) {
	report = below("github", report)
	if !repositoryName.MatchString(g.Repository) {
		report("repository", "must be owner/name")
	}
	if utf8.RuneCountInString(g.EventType) > maxEventType {
		report("event_type", fmt.Sprintf("must have at most %d characters", maxEventType))
	}
	checkToken(g.TokenFile, report)
	checkBase(g.URL, true, report)
}

func (g GitLabTarget) given() bool { return g != GitLabTarget{} }

func (g GitLabTarget) address() string {
	return base(g.URL, "https://gitlab.com") + "/api/v4/projects/" + url.PathEscape(g.Project) + "/trigger/pipeline"
}

func (g GitLabTarget) check(report func(key, msg string)) {
	report = below("gitlab", report)
	if g.Project == "" {
		report("project", "must be the number or the path of a project")
	}
	if g.Ref == "" {
		report("ref", "must name a branch or a tag")
	}
	checkToken(g.TokenFile, report)
	checkBase(g.URL, true, report)
}

var dagID = regexp.MustCompile(`^[\pL\pN_.-]{1,250}$`)

func (a AirflowTarget) given() bool { return a != AirflowTarget{} }

// address differs between the versions in the API's, which is /api/v1 in Airflow 2 and /api/v2 in Airflow 3.
func (a AirflowTarget) address() string {
	return fmt.Sprintf("%s/api/v%d/dags/%s/dagRuns", base(a.URL, ""), a.Version-1, url.PathEscape(a.DAG))
}

func (a AirflowTarget) check(report func(key, msg string)) {
	report = below("airflow", report)
	if !dagID.MatchString(a.DAG) {
		report("dag", "must be 1 to 250 letters, digits, dots, underscores and hyphens")
	}
	if a.Version != 2 && a.Version != 3 {
		report("version", "must be 2 or 3")
	}
	checkBase(a.URL, false, report)
	switch {
	case a.TokenFile != "" && (a.User != "" || a.PasswordFile != ""):
		report("token_file", "must be left out, or else user and password_file")
	case a.TokenFile == "" && a.User == "" && a.PasswordFile == "":
		report("token_file", "must be given, or else user and password_file")
	case a.TokenFile == "" && a.User == "":
		report("user", "must be given together with password_file")
	case a.TokenFile == "" && a.PasswordFile == "":
		report("password_file", "must be given together with user")
	}
}

func (a ArgoEventsTarget) given() bool     { return a != ArgoEventsTarget{} }
func (a ArgoEventsTarget) address() string { return a.URL }

func (a ArgoEventsTarget) check(report func(key, msg string)) {
	checkEndpoint(a.URL, a.TokenFile, below("argo_events", report))
}

func (j JenkinsTarget) given() bool     { return j != JenkinsTarget{} }
func (j JenkinsTarget) address() string { return j.URL }

func (j JenkinsTarget) check(report func(key, msg string)) {
	checkEndpoint(j.URL, j.TokenFile, below("jenkins", report))
}

func (c CloudEventsTarget) given() bool     { return c != CloudEventsTarget{} }
func (c CloudEventsTarget) address() string { return c.URL }

func (c CloudEventsTarget) check(report func(key, msg string)) {
	if msg := checkURL(c.URL); msg != "" {
		report("cloudevents.url", msg)
	}
}

func (k KafkaTarget) given() bool {
	return k.Topic != "" || len(k.Brokers) > 0 || k.TLS != ingest.TLSConfig{} || k.SASL != ingest.SASLConfig{}
}

func (k KafkaTarget) address() string {
	return "kafka://" + strings.Join(k.Brokers, ",") + "/" + k.Topic
}

func (k KafkaTarget) check(report func(key, msg string)) {
	report = below("kafka", report)
	if len(k.Brokers) == 0 {
		if (k.TLS != ingest.TLSConfig{}) || (k.SASL != ingest.SASLConfig{}) {
			report("brokers", "must be given, or tls and sasl have no effect: those of ingest.kafka are used")
		}
		k.Brokers = ingest.DefaultKafkaConfig().Brokers
	}
	k.config().Check(report)
}

func (k KafkaTarget) config() ingest.KafkaConfig {
	c := ingest.DefaultKafkaConfig()
	c.Brokers, c.Topic, c.TLS, c.SASL = k.Brokers, k.Topic, k.TLS, k.SASL
	return c
}

// OnBrokersOf gives a configuration whose Kafka targets without brokers of their own use those of the telemetry. Open needs
// it where there is such a target.
func (c Config) OnBrokersOf(telemetry ingest.KafkaConfig) Config {
	targets := make([]Target, len(c.Targets))
	for i, t := range c.Targets {
		if k := &t.Kafka; k.given() && len(k.Brokers) == 0 {
			k.Brokers, k.TLS, k.SASL, k.telemetry = telemetry.Brokers, telemetry.TLS, telemetry.SASL, true
		}
		targets[i] = t
	}
	c.Targets = targets
	return c
}

func checkToken(file string, report func(key, msg string)) {
	if file == "" {
		report("token_file", "must name a file that holds a token")
	}
}

func checkEndpoint(raw, tokenFile string, report func(key, msg string)) {
	if msg := checkURL(raw); msg != "" {
		report("url", msg)
	}
	checkToken(tokenFile, report)
}

// checkBase checks a URL to which a path is added.
func checkBase(raw string, optional bool, report func(key, msg string)) {
	if raw == "" && optional {
		return
	}
	if msg := checkURL(raw); msg != "" {
		report("url", msg)
	} else if strings.ContainsAny(raw, "?#") {
		report("url", "must end with its path")
	}
}

func base(given, otherwise string) string {
	if given == "" {
		return otherwise
	}
	return strings.TrimRight(given, "/")
}

// checkURL never repeats the URL, which may hold a token.
func checkURL(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return "must not be empty"
	case err != nil:
		return "is not a URL"
	case u.Scheme != "https" && u.Scheme != "http":
		return "must begin with https:// or http://"
	case u.Hostname() == "":
		return "must name a host"
	case u.User != nil:
		return "must not hold a user or password"
	}
	return ""
}
