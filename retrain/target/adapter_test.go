package target

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

// holdsSecret reports whether the stored part of an attempt contains a secret.
func holdsSecret(o Attempt) bool {
	return strings.Contains(fmt.Sprintf("%+v", o), "s3cr3t")
}

// Every service accepts what it is sent, small or large, and finds the order in it.
func TestServicesTakeWhatTheyAreSent(t *testing.T) {
	for _, s := range services(t) {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler := s.double(t)
				a := adapterOf(t, s.target, handler)
				for _, m := range []Message{
					testMessage(t, "ranker", nil),
					testMessage(t, `p "${CI_JOB_TOKEN}" <&> $$`+"\u2028\u00e9\x00", nil),
					testMessage(t, "ranker", map[string]int{"evidence": 70_000, "config": 500}),
					testMessage(t, "ranker", map[string]int{"config": 60_000, "evidence": 4_000}),
					testMessage(t, "ranker", map[string]int{"evidence": 130_000}),
				} {
					m.ID += strconv.Itoa(len(m.Body))
					if o := a.Send(t.Context(), m); o.Result != ResultDelivered || holdsSecret(o) {
						t.Fatalf("an order of %d bytes: %+v", len(m.Body), o)
					}
					taken := takenBy(handler)
					got := s.order(t, taken[len(taken)-1]).(map[string]any)
					var want struct {
						Data map[string]any `json:"data"`
					}
					check(t, json.Unmarshal(m.Body, &want))
					for key, value := range got {
						if !reflect.DeepEqual(value, want.Data[key]) {
							t.Errorf("%s is %.100v, want %.100v", key, value, want.Data[key])
						}
					}
					short := s.name == "github" && len(m.Body) > 65_000 || (s.name == "gitlab" || s.name == "kubernetes") && len(m.Body) > 120_000
					if missing := len(want.Data) - len(got); (missing > 0) != short {
						t.Errorf("%d of %d parts are missing of an order of %d bytes", missing, len(want.Data), len(m.Body))
					}
				}
			})
		})
	}
}

// How each kind of target judges an answer that any service may send.
func TestAnswersOfServices(t *testing.T) {
	tests := []struct {
		name   string
		answer http.HandlerFunc
		want   Attempt
	}{
		{"500", retraintest.Status(500), Attempt{Result: ResultRejected, Status: 500}},
		{"404", retraintest.Status(404), Attempt{Result: ResultRejected, Status: 404}},
		{"401", retraintest.Status(401), Attempt{Result: ResultRejected, Status: 401}},
		{"429", retraintest.Status(429, "Retry-After", "90"), Attempt{Result: ResultThrottled, Status: 429, RetryAfter: 90 * time.Second}},
		{"503 with Retry-After", retraintest.Status(503, "Retry-After", "30"), Attempt{Result: ResultRejected, Status: 503, RetryAfter: 30 * time.Second}},
		{"302", retraintest.Status(302, "Location", "https://elsewhere.test/"), Attempt{Result: ResultRedirected, Status: 302}},
		{"307", retraintest.Status(307, "Location", "/x"), Attempt{Result: ResultRedirected, Status: 307}},
		{"410", retraintest.Status(410), Attempt{Result: ResultGone, Status: 410}},
		{"no answer", retraintest.Hang, Attempt{Result: ResultTimeout}},
		{"slow answer", retraintest.Drip, Attempt{Result: ResultTimeout, Status: 200}},
		{"connection closed", retraintest.Reset, Attempt{Result: ResultUnreachable}},
		{"answer breaks off", retraintest.BreakOff, Attempt{Result: ResultUnreachable, Status: 200}},
		{"not HTTP", retraintest.Garbage, Attempt{Result: ResultUnreachable}},
		{"headers that do not end", headersWithoutEnd, Attempt{Result: ResultUnreachable}},
	}
	all := services(t)
	loggedIn := all[4]
	loggedIn.name += ", once it has its token"
	for _, s := range append(all, loggedIn) {
		for _, tc := range tests {
			t.Run(s.name+"/"+tc.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var handler http.Handler = listening(tc.answer)
					if s.name == loggedIn.name {
						handler = loginDouble(t, handler)
					}
					a := adapterOf(t, s.target, handler)
					began := time.Now()
					o := a.Send(t.Context(), testMessage(t, "ranker", nil))
					if o.Result != tc.want.Result || o.Status != tc.want.Status || o.RetryAfter != tc.want.RetryAfter || holdsSecret(o) {
						t.Errorf("%+v, want %+v", o, tc.want)
					}
					if o.Err == "" && (o.Result == ResultTimeout || o.Result == ResultUnreachable) {
						t.Errorf("no error of an attempt that ended as %s", o.Result)
					}
					if took := time.Since(began); took > time.Duration(DefaultTimeout) {
						t.Errorf("it took %s", took)
					}
				})
			})
		}
	}
}

// headersWithoutEnd sends headers for as long as the client reads them.
func headersWithoutEnd(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer func() { _ = conn.Close() }()
	line := []byte("HTTP/1.1 200 OK\r\n")
	for {
		if _, err := conn.Write(line); err != nil {
			return
		}
		line = []byte("X-Filler: " + strings.Repeat("x", 1000) + "\r\n")
	}
}

func TestAnswersOfGitHub(t *testing.T) {
	now := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	in := func(d time.Duration) string { return strconv.FormatInt(now.Add(d).Unix(), 10) }
	tests := []struct {
		name     string
		result   Result
		code     int
		headers  []string
		response string
		want     Result
		after    time.Duration
	}{
		{"done", ResultDelivered, 204, nil, "", ResultDelivered, 0},
		{"a page of somebody else", ResultDelivered, 200, nil, "<html>", ResultRejected, 0},
		{"no permission", ResultRejected, 403, []string{"X-Ratelimit-Remaining", "4999"}, "Resource not accessible by personal access token", ResultRejected, 0},
		{"primary limit", ResultRejected, 403, []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", in(20 * time.Minute)}, "API rate limit exceeded", ResultThrottled, 20 * time.Minute},
		{"primary limit by 429", ResultThrottled, 429, []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", in(time.Minute)}, "", ResultThrottled, time.Minute},
		{"a reset that is over", ResultRejected, 403, []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", in(-time.Hour)}, "", ResultThrottled, time.Second},
		{"a reset in nonsense", ResultRejected, 403, []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "soon"}, "API rate limit exceeded", ResultThrottled, time.Minute},
		{"a reset in a thousand years", ResultRejected, 403, []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "33322233600"}, "", ResultThrottled, maxRetryAfter},
		{"secondary limit", ResultRejected, 403, []string{"X-Ratelimit-Remaining", "4000"}, "You have exceeded a secondary rate limit.", ResultThrottled, time.Minute},
		{"secondary limit by 429", ResultThrottled, 429, nil, "", ResultThrottled, time.Minute},
		{"too large", ResultRejected, 422, []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", in(time.Hour)}, "client_payload is too large", ResultRejected, 0},
		{"broken off", ResultUnreachable, 403, nil, "rate limit", ResultUnreachable, 0},
	}
	for _, tc := range tests {
		header := http.Header{}
		for i := 0; i < len(tc.headers); i += 2 {
			header.Set(tc.headers[i], tc.headers[i+1])
		}
		o := judgeGitHub(answer{header: header, Attempt: Attempt{Result: tc.result, Status: tc.code, Response: tc.response}}, now)
		if o.Result != tc.want || o.RetryAfter != tc.after {
			t.Errorf("%s: %+v, want %s after %s", tc.name, o, tc.want, tc.after)
		}
	}
	o := judgeGitHub(answer{header: http.Header{}, Attempt: Attempt{Result: ResultRejected, Status: 403, RetryAfter: 7 * time.Second}}, now)
	if o.Result != ResultThrottled || o.RetryAfter != 7*time.Second {
		t.Errorf("403 with Retry-After: %+v", o)
	}
}

func TestGitHubIsToldTheEvent(t *testing.T) {
	for configured, want := range map[string]string{"": recipe.EventRequested, "retrain-ranker": "retrain-ranker"} {
		synctest.Test(t, func(t *testing.T) {
			s := services(t)[0]
			s.target.GitHub.EventType = configured
			d := githubDouble(t)
			if o := adapterOf(t, s.target, d).Send(t.Context(), testMessage(t, "ranker", nil)); o.Result != ResultDelivered {
				t.Fatalf("%+v", o)
			}
			if got := d.taken[0].field(t, "event_type"); got != want {
				t.Errorf("event %q, want %q", got, want)
			}
			if left := d.taken[0].field(t, "client_payload", "left_out"); !reflect.DeepEqual(left, []any{}) {
				t.Errorf("left_out %v of an order that fits", left)
			}
		})
	}
}

// An attempt whose answer was lost may have created the run already.
func TestAirflowMakesARunOnce(t *testing.T) {
	for _, s := range services(t) {
		if !s.target.Airflow.given() {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler := s.double(t)
				a, m := adapterOf(t, s.target, handler), testMessage(t, "ranker", nil)
				for _, code := range []int{200, 409} {
					if o := a.Send(t.Context(), m); o.Result != ResultDelivered || o.Status != code {
						t.Errorf("%+v, want delivered with %d", o, code)
					}
				}
				if got := takenBy(handler)[0].field(t, "dag_run_id"); got != m.ID {
					t.Errorf("run %v, want %s", got, m.ID)
				}
			})
		})
	}
}

func TestAirflowGivesNoToken(t *testing.T) {
	echo := `{"detail":[{"loc":["body"],"input":{"username":"rewardwatch","password":"` + testPassword + `"}}]}`
	tests := []struct {
		name   string
		answer func(http.ResponseWriter, request)
		want   Attempt
	}{
		{"wrong password", answerJSON(401, `{"detail":"Invalid credentials"}`), Attempt{Result: ResultRejected, Status: 401}},
		{"what it was sent is repeated", answerJSON(422, echo), Attempt{Result: ResultRejected, Status: 422}},
		{"no token", answerJSON(201, `{"jwt":"`+testJWT+`"}`), Attempt{Result: ResultRejected, Status: 201}},
		{"a page", answerJSON(200, `<html>`+testJWT), Attempt{Result: ResultRejected, Status: 200}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := Target{Name: "a", Timeout: DefaultTimeout, Airflow: Airflow{
					DAG: "d", URL: "http://airflow.test", Version: 3, User: "rewardwatch", PasswordFile: secretFile(t, testPassword),
				}}
				a := adapterOf(t, target, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/auth/token" {
						t.Errorf("%s was asked without a token", r.URL)
					}
					tc.answer(w, request{Request: r})
				}))
				o := a.Send(t.Context(), testMessage(t, "ranker", nil))
				if o.Result != tc.want.Result || o.Status != tc.want.Status || o.Err == "" || holdsSecret(o) {
					t.Errorf("%+v, want %+v", o, tc.want)
				}
			})
		})
	}
}

// A Jenkins job finds what it needs by JSONPath, and a value of the config under the path of its keys.
func TestJenkinsFindsTheOrder(t *testing.T) {
	m := testMessage(t, "ranker", nil)
	got := map[string]string{}
	for name, path := range jenkinsVariables {
		flatten(name, request{body: m.Body}.field(t, path...), got)
	}
	want := map[string]string{
		"request": m.ID, "event": recipe.EventRequested, "policy": "ranker", "config_optimizer_name": "adam", "config_optimizer_lr": "0.0003",
		"config_seeds_0": "7", "config_run": "retrain-" + m.ID, "config_ranges_0_partition": "0", "config_ranges_0_first": "1000", "config_ranges_0_last": "1100",
	}
	if !maps.Equal(got, want) {
		t.Errorf("variables %v, want %v", got, want)
	}
}

func TestJenkinsStartsNothing(t *testing.T) {
	tests := []struct {
		name, answer string
		code         int
		want         Result
	}{
		{"no filter matches", `{"jobs":{"retrain":{"triggered":false,"id":0,"url":""}},"message":"Triggered jobs."}`, 200, ResultRejected},
		{"no job has the token", `{"jobs":null,"message":"Did not find any jobs with GenericTrigger configured!\nA token was supplied.\n"}`, 404, ResultRejected},
		{"a silent job", "", 200, ResultDelivered},
		{"a long answer", `{"jobs":{"retrain":{"triggered":true,"resolvedVariables":{"order":"` + strings.Repeat("x", maxAnswer) + `"}}}}`, 200, ResultDelivered},
	}
	for _, tc := range tests {
		synctest.Test(t, func(t *testing.T) {
			d := jenkinsDouble(t)
			d.respond = answerJSON(tc.code, tc.answer)
			target := Target{Name: "j", Timeout: DefaultTimeout, Jenkins: Jenkins{URL: "http://jenkins.test" + d.path, TokenFile: secretFile(t, testToken)}}
			if o := adapterOf(t, target, d).Send(t.Context(), testMessage(t, "ranker", nil)); o.Result != tc.want {
				t.Errorf("%s: %+v, want %s", tc.name, o, tc.want)
			}
		})
	}
}

func TestCloudEvent(t *testing.T) {
	m := testMessage(t, "ranker", nil)
	text, err := newCloudEvent(m)
	check(t, err)
	r := request{body: text}
	for key, want := range map[string]any{
		"specversion": "1.0", "id": m.ID, "source": "/rewardwatch", "type": "rewardwatch.retrain.requested", "subject": "ranker",
		"time": "2026-11-22T08:00:00.123Z", "datacontenttype": "application/json",
	} {
		if got := r.field(t, key); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if got := r.field(t, "data", "id"); got != m.ID {
		t.Errorf("data.id is %v, want %s", got, m.ID)
	}
}

// An order is shortened only as far as necessary, in a fixed order, and lists what was left out.
func TestOrdersAreShortened(t *testing.T) {
	write := func(b shortBody) ([]byte, error) { return json.Marshal(b) }
	m := testMessage(t, "ranker", map[string]int{"causes": 1000, "effect": 2000, "offsets": 1500, "contract": 2500, "config": 3000})
	whole, err := shorten(m.Body, 1<<20, write)
	check(t, err)
	var before []string
	least := len(whole)
	for limit := len(whole); ; limit -= 50 {
		text, err := shorten(m.Body, limit, write)
		if err != nil {
			if least > 500 || !strings.Contains(err.Error(), "does not fit") {
				t.Errorf("gave up at %d bytes after %d: %v", limit, least, err)
			}
			break
		}
		least = len(text)
		var got shortBody
		check(t, json.Unmarshal(text, &got))
		if len(text) > limit || len(got.LeftOut) < len(before) || !slices.Equal(got.LeftOut[:len(before)], before) {
			t.Fatalf("%d bytes within %d, %v left out after %v", len(text), limit, got.LeftOut, before)
		}
		before = got.LeftOut
		for _, key := range got.LeftOut {
			if _, there := got.Data[key]; there {
				t.Errorf("%s is there and left out", key)
			}
		}
		for _, key := range []string{"id", "policy", "recipe", "cause", "incident"} {
			if _, there := got.Data[key]; !there {
				t.Errorf("%s is missing", key)
			}
		}
	}
	if want := spare(); !slices.Equal(before, want) {
		t.Errorf("left out at last %v, want %v", before, want)
	}
}

// Every part of an order can be left out or identifies the order. A new part must do one of the two.
func TestEveryPartOfAnOrderIsSpareOrNamesIt(t *testing.T) {
	var whole struct {
		Data map[string]any `json:"data"`
	}
	check(t, json.Unmarshal(testMessage(t, "ranker", nil).Body, &whole))
	got := append(spare(), "id", "incident", "policy", "cause", "recipe")
	slices.Sort(got)
	if want := slices.Sorted(maps.Keys(whole.Data)); !slices.Equal(got, want) {
		t.Errorf("spare parts and names are %v, the order has %v", got, want)
	}
}

// Nothing is sent that the service would have to truncate, or that does not identify the order.
func TestOrdersThatCannotBeShortenedAreInvalid(t *testing.T) {
	for _, s := range services(t) {
		if s.name != "github" && s.name != "gitlab" {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			d := s.double(t).(*double)
			o := adapterOf(t, s.target, d).Send(t.Context(), testMessage(t, strings.Repeat("p", 130<<10), nil))
			if o.Result != ResultInvalid || !strings.Contains(o.Err, "does not fit") || len(d.taken) != 0 {
				t.Errorf("%s: %+v after %d requests", s.name, o, len(d.taken))
			}
		})
	}
}

// The address by which a target that answered 410 is recognized must be unique to it.
func TestAddressesOfTargetsDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, s := range append(services(t), told{name: "kafka", target: Target{Kafka: Kafka{Topic: "retraining", Brokers: []string{"b:9092"}}}}) {
		name, _, _ := strings.Cut(s.name, " with")
		if other, there := seen[s.target.Address()]; s.target.Address() == "" || there && other != name {
			t.Errorf("%s and %s have the address %q", name, other, s.target.Address())
		}
		seen[s.target.Address()] = name
	}
}

// If a body violates the schema or a secret cannot be read, nothing is sent, whatever the kind of target.
func TestNothingIsSentWithoutSchemaOrSecret(t *testing.T) {
	for _, s := range services(t) {
		synctest.Test(t, func(t *testing.T) {
			a := adapterOf(t, s.target, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s was told", s.name) }))
			m := testMessage(t, "ranker", nil)
			m.Body = []byte(`{"type":"retrain.requested"}`)
			if o := a.Send(t.Context(), m); o.Result != ResultInvalid {
				t.Errorf("%s: %+v, want invalid", s.name, o)
			}
		})
	}
	for _, bad := range []string{"", " \n", "two\nlines", "s3cr3t\x00"} {
		for _, s := range services(t) {
			if s.name == "cloudevents without a token" {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				file := secretFile(t, testToken)
				if s.name == "webhook" {
					file = secretFile(t, retraintest.Secret)
				}
				s.target = withSecret(s.target, file)
				a := adapterOf(t, s.target, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s was told", s.name) }))
				s.target = withSecret(s.target, secretFile(t, bad))
				if _, err := newAdapter(s.target, Means{Transport: NewTransport}); err == nil || strings.Contains(err.Error(), "s3cr3t") {
					t.Errorf("%s with %q: %v, want an error without the secret", s.name, bad, err)
				}
				overwrite(t, file, bad)
				if o := a.Send(t.Context(), testMessage(t, "ranker", nil)); o.Result != ResultUnsigned || holdsSecret(o) {
					t.Errorf("%s with %q: %+v, want unsigned", s.name, bad, o)
				}
			})
		}
	}
}
