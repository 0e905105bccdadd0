package retrain

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
)

// airflow is the adapter of Airflow's REST API
// (https://airflow.apache.org/docs/apache-airflow/stable/stable-rest-api-ref.html).
type airflow struct {
	AirflowTarget
	line line
}

func (a AirflowTarget) adapter(line line) (adapter, error) {
	_, err := readToken(a.secretFile())
	return airflow{a, line}, err
}

// secretFile is the file with the token, or else the password.
func (a AirflowTarget) secretFile() string {
	if a.TokenFile != "" {
		return a.TokenFile
	}
	return a.PasswordFile
}

func (a airflow) send(ctx context.Context, m message) outcome {
	secret, err := readToken(a.secretFile())
	if err != nil {
		return unsigned(err)
	}
	authorization, failed := a.authorize(ctx, secret)
	if failed.result != "" {
		return failed
	}
	run := map[string]any{"dag_run_id": m.id, "conf": json.RawMessage(m.body)}
	if a.Version == 3 {
		run["logical_date"] = nil // must be there; as in a run that a person starts, there is none
	}
	body, err := json.Marshal(run)
	if err != nil {
		return outcome{result: ResultInvalid, err: err.Error()}
	}
	o := a.line.post(ctx, a.address(), body, "Authorization", authorization).outcome
	if o.result == ResultRejected && o.status == http.StatusConflict { // an earlier attempt has made the run
		o.result = ResultDelivered
	}
	return o
}

// authorize gives the value of the Authorization header, or an outcome with a result where it could not be had. Airflow 3
// takes no passwords: it gives a token for one.
func (a airflow) authorize(ctx context.Context, secret string) (string, outcome) {
	switch {
	case a.TokenFile != "":
		return bearer(secret), outcome{}
	case a.Version == 2:
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(a.User+":"+secret)), outcome{}
	}
	return a.login(ctx, secret)
}

// login keeps nothing of the answer but its status: it holds the token or, where Airflow did not like what it was sent,
// may repeat the password.
func (a airflow) login(ctx context.Context, password string) (string, outcome) {
	body, err := json.Marshal(map[string]string{"username": a.User, "password": password})
	if err != nil {
		return "", outcome{result: ResultInvalid, err: err.Error()}
	}
	got := a.line.post(ctx, base(a.URL, "")+"/auth/token", body)
	got.response = ""
	if got.result != ResultDelivered {
		got.err = strings.TrimSuffix("Airflow gave no token for user and password: "+got.err, ": ")
		return "", got.outcome
	}
	var given struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(got.body, &given); err != nil || given.Token == "" {
		got.result, got.err = ResultRejected, "what Airflow gave for user and password is no token"
		return "", got.outcome
	}
	return bearer(given.Token), outcome{}
}
