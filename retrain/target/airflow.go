package target

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/apiurl"
)

// Airflow is an Airflow DAG. It requires `user` and `password_file`, or `token_file`.
type Airflow struct {
	DAG          string `yaml:"dag"`           // ID of the DAG
	URL          string `yaml:"url"`           // base URL of the web server, without `/api`
	Version      int    `yaml:"version"`       // 2 or 3
	User         string `yaml:"user"`          // user who can trigger the DAG
	PasswordFile string `yaml:"password_file"` // password for the user
	TokenFile    string `yaml:"token_file"`    // bearer token, instead of user and password
}

var dagID = regexp.MustCompile(`^[\pL\pN_.-]{1,250}$`)

func (a Airflow) given() bool { return a != Airflow{} }

// address returns the API URL, which is /api/v1 in Airflow 2 and /api/v2 in Airflow 3.
func (a Airflow) address() string {
	return fmt.Sprintf("%s/api/v%d/dags/%s/dagRuns", base(a.URL, ""), a.Version-1, url.PathEscape(a.DAG))
}

func (a Airflow) check(report func(key, msg string)) {
	report = below("airflow", report)
	if !dagID.MatchString(a.DAG) {
		report("dag", "must be 1 to 250 letters, digits, dots, underscores and hyphens")
	}
	if a.Version != 2 && a.Version != 3 {
		report("version", "must be 2 or 3")
	}
	checkBase(a.URL, false, apiurl.Appended, report)
	switch {
	case a.TokenFile != "" && (a.User != "" || a.PasswordFile != ""):
		report("token_file", "cannot be combined with user and password_file")
	case a.TokenFile == "" && a.User == "" && a.PasswordFile == "":
		report("token_file", "must be set unless user and password_file are set")
	case a.TokenFile == "" && a.User == "":
		report("user", "must be set together with password_file")
	case a.TokenFile == "" && a.PasswordFile == "":
		report("password_file", "must be set together with user")
	}
}

// airflow is the adapter of Airflow's REST API
// (https://airflow.apache.org/docs/apache-airflow/stable/stable-rest-api-ref.html).
type airflow struct {
	Airflow
	line line
}

func (a Airflow) adapter(line line) (Adapter, error) {
	_, err := ingest.ReadToken(a.secretFile())
	return airflow{a, line}, err
}

// secretFile returns the file with the token, or else the password.
func (a Airflow) secretFile() string {
	if a.TokenFile != "" {
		return a.TokenFile
	}
	return a.PasswordFile
}

func (a airflow) Send(ctx context.Context, m Message) Attempt {
	secret, err := ingest.ReadToken(a.secretFile())
	if err != nil {
		return unsigned(err)
	}
	a.line = a.line.hiding(secret)
	authorization, failed := a.authorize(ctx, secret)
	if failed.Result != "" {
		return failed
	}
	run := map[string]any{"dag_run_id": m.ID, "conf": json.RawMessage(m.Body)}
	if a.Version == 3 {
		run["logical_date"] = nil // required; null, as in a run that a person starts
	}
	body, err := json.Marshal(run)
	if err != nil {
		return Attempt{Result: ResultInvalid, Err: err.Error()}
	}
	o := a.line.post(ctx, a.address(), body, "Authorization", authorization).Attempt
	if o.Result == ResultRejected && o.Status == http.StatusConflict { // an earlier attempt has created the run
		o.Result = ResultDelivered
	}
	return o
}

// authorize returns the value of the Authorization header, or an attempt with a result if that failed. Airflow 3
// does not accept passwords, but issues a token for one.
func (a airflow) authorize(ctx context.Context, secret string) (string, Attempt) {
	switch {
	case a.TokenFile != "":
		return bearer(secret), Attempt{}
	case a.Version == 2:
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(a.User+":"+secret)), Attempt{}
	}
	return a.login(ctx, secret)
}

// login requests a token. It keeps only the status of the answer, whose body contains the token, or may repeat the
// password if Airflow rejected the request.
func (a airflow) login(ctx context.Context, password string) (string, Attempt) {
	body, err := json.Marshal(map[string]string{"username": a.User, "password": password})
	if err != nil {
		return "", Attempt{Result: ResultInvalid, Err: err.Error()}
	}
	got := a.line.post(ctx, base(a.URL, "")+"/auth/token", body)
	got.Response = ""
	if got.Result != ResultDelivered {
		got.Err = strings.TrimSuffix("Airflow returned no token for this user and password: "+got.Err, ": ")
		return "", got.Attempt
	}
	var given struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(got.body, &given); err != nil || given.Token == "" {
		got.Result, got.Err = ResultRejected, "Airflow's login response contains no token"
		return "", got.Attempt
	}
	return bearer(given.Token), Attempt{}
}
