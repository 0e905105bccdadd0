package target

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// echo answers with an error that repeats all that it was sent, in several encodings.
func echo(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(status)
		for name, values := range r.Header {
			if name == "Content-Type" || name == "User-Agent" || name == "Content-Length" {
				continue
			}
			v := strings.Join(values, " ")
			quoted, _ := json.Marshal(v)
			fmt.Fprintf(w, "%s %s %s %s\n", v, quoted, url.QueryEscape(v), html.EscapeString(v))
		}
		fmt.Fprintf(w, "%s\n%.300s", r.URL.RequestURI(), body)
	}
}

// What a target repeats of its request is stored without any secret.
func TestAnswersAreKeptWithoutSecrets(t *testing.T) {
	for _, s := range services(t) {
		for _, status := range []int{400, 401, 500} {
			server := httptest.NewServer(echo(status))
			o := sendTo(t, s.target, server)
			server.Close()
			kept := o.Err + "\n" + o.Response
			for name, secret := range map[string]string{
				"token": testToken, "password": testPassword, "JWT": testJWT, "signature": "v1,", "basic": "cmV3YXJkd2F0Y2g6czNjcjN0LXBhc3N3b3Jk",
				"token in base64": base64.RawStdEncoding.EncodeToString([]byte(testToken)),
			} {
				if strings.Contains(kept, secret) {
					t.Errorf("%s, %d keeps the %s: %s", s.name, status, name, kept)
				}
			}
			if o.Status != status {
				t.Errorf("%s: %+v", s.name, o)
			}
		}
	}
}

// sendTo sends an order with the adapter of a target to a server, whatever host the target names.
func sendTo(t *testing.T, target Target, server *httptest.Server) Attempt {
	t.Helper()
	published, err := recipe.NewValidator()
	check(t, err)
	at := strings.TrimPrefix(server.URL, "http://")
	transport := transportBy(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", at)
	}, nil, nil)
	a, err := newAdapter(target, Means{Check: published.Check, Transport: func(Target) (http.RoundTripper, error) { return transport, nil }})
	check(t, err)
	return a.Send(t.Context(), testMessage(t, "ranker", nil))
}

func TestSecretsAreTakenOut(t *testing.T) {
	token := "to/ken+with&all<of>it"
	s := Secrets{}.with(token, "ab", "")
	quoted, err := json.Marshal(token)
	check(t, err)
	for _, form := range []string{
		token, string(quoted), url.QueryEscape(token), url.PathEscape(token), html.EscapeString(token), strings.ReplaceAll(token, "/", `\/`),
		base64.StdEncoding.EncodeToString([]byte(token)), base64.URLEncoding.EncodeToString([]byte(token)), fmt.Sprintf("%x", token),
	} {
		if got := s.Clean("ab before "+form+" after", 1000); !strings.Contains(got, hidden) || strings.Contains(got, "ken") || !strings.HasPrefix(got, "ab before ") || !strings.HasSuffix(got, " after") {
			t.Errorf("%s is kept as %q", form, got)
		}
	}
	// No part of a secret is left where the text is cut, and no text from beyond the cut moves up.
	for most := range 60 {
		if got := s.Clean(strings.Repeat("x", 20)+strings.Repeat(token, 3), most); strings.Contains(got, "to/") || len(got) > most+len(hidden) {
			if strings.Contains(got, "to/") {
				t.Errorf("%d: %q", most, got)
			}
		}
	}
	if got := s.Clean("\xff", 10); got != "�" {
		t.Errorf("%q", got)
	}
}

func TestSecretsOfARequest(t *testing.T) {
	found := strings.Join(sentTo("https://me:hunter22@hooks.example/services/T0001/abcdefghijklmnopqrstuvwx?key=k3y-of-it&page=1", []string{
		"Authorization", "Bearer tok-123", "Webhook-Signature", "v1,sigA v1,sigB", "Webhook-Id", "rr_1", "Token", "jenkins-token",
	}), "\n")
	for _, want := range []string{"hunter22", "abcdefghijklmnopqrstuvwx", "k3y-of-it", "tok-123", "v1,sigA", "sigB", "jenkins-token"} {
		if !strings.Contains(found, want) {
			t.Errorf("%s is not among %q", want, found)
		}
	}
	for _, harmless := range []string{"rr_1", "services", "T0001"} {
		if strings.Contains(found, harmless) {
			t.Errorf("%s is among %q", harmless, found)
		}
	}
}

// If an answer breaks off within a secret, or a log begins within one, the part of the secret is removed.
func TestHalvesOfSecretsAreTakenOut(t *testing.T) {
	token := "0123456789abcdefghijklmnopqrstuv"
	s := Secrets{}.with(token)
	for n := leastSecret; n <= len(token); n++ {
		if got := s.Clean("refused: "+token[:n], 1000); got != "refused: "+hidden {
			t.Errorf("the first %d bytes are kept as %q", n, got)
		}
	}
	for cut := range len(token) {
		rest := token[cut:] + " the end"
		if got := s.CleanEnd("xxx"+token+" the end", len(rest)); strings.Contains(got, "stuv") || !strings.HasSuffix(got, " the end") {
			t.Errorf("cut %d bytes into it: %q", cut, got)
		}
	}
	if got := s.CleanEnd(strings.Repeat(token, 10)+"xy", 2); got != "xy" {
		t.Errorf("%q, want the end alone", got)
	}
}

// The server closes the connection within the token that it repeats.
func TestBrokenAnswersAreKeptWithoutSecrets(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(500)
		fmt.Fprintf(w, "refused: %s", r.Header.Get("Authorization")[:len("Bearer ")+20])
	}))
	defer server.Close()
	token := "0123456789abcdefghijklmnopqrstuv"
	got := line{transport: http.DefaultTransport}.post(t.Context(), server.URL, []byte("{}"), "Authorization", bearer(token))
	if got.Response == "" || strings.Contains(got.Response, token[:leastSecret]) {
		t.Errorf("kept %q of %+v", got.Response, got.Attempt)
	}
}
