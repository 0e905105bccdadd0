// Package signintest is an OpenID Connect provider for tests, which can be configured to misbehave.
package signintest

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Client and Secret are the service's client id and client secret.
const (
	Client = "rewardwatch"
	Secret = "a secret of the client"
)

// Issuer is a provider. Its fields may be changed between requests.
type Issuer struct {
	*httptest.Server
	Claims map[string]any // claims of the person who logs in, in addition to those of each token
	Info   map[string]any // claims that only the userinfo endpoint returns; nil for no such endpoint
	Now    func() time.Time
	// Change changes the claims of a token before it is signed, and Sign signs it instead of the issuer.
	Change func(claims map[string]any)
	Sign   func(claims map[string]any) string
	// Describe changes the provider's metadata.
	Describe func(said map[string]any)
	// Twice accepts a code more than once, Down answers with 500, and Public requires no secret.
	Twice, Down, Public bool
	Exchanges           int

	t     *testing.T
	key   *rsa.PrivateKey
	kid   string
	mu    sync.Mutex
	codes map[string]url.Values // requests by their codes
}

// keyOfAll generates the key of all issuers once, because this takes a long time.
var keyOfAll = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// New starts an issuer that stops at the end of the test.
func New(t *testing.T, claims map[string]any) *Issuer {
	t.Helper()
	key, err := keyOfAll()
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{Claims: claims, Now: time.Now, t: t, key: key, kid: "k1", codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": i.kid, "n": encoded(i.key.N.Bytes()), "e": encoded(big.NewInt(int64(i.key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("GET /authorize", i.page)
	mux.HandleFunc("POST /authorize", i.submitted)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, _ *http.Request) { answer(w, i.Info) })
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.Down {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // a test that has ended needs no answer
}

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	said := map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"none", "HS256", "RS256"},
	}
	if i.Info != nil {
		said["userinfo_endpoint"] = i.URL + "/info"
	}
	if i.Describe != nil {
		i.Describe(said)
	}
	answer(w, said)
}

// Authorize acts as the browser at the address of a sign-in. It returns the query with which the provider redirects
// back.
func (i *Issuer) Authorize(address string) url.Values {
	i.t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		i.t.Fatal(err)
	}
	asked := at.Query()
	for name, want := range map[string]string{"client_id": Client, "response_type": "code", "code_challenge_method": "S256"} {
		if asked.Get(name) != want {
			i.t.Fatalf("the sign-in asks with %s=%q", name, asked.Get(name))
		}
	}
	for _, name := range []string{"state", "nonce", "code_challenge", "redirect_uri"} {
		if asked.Get(name) == "" {
			i.t.Fatalf("the sign-in asks without %s: %s", name, address)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.agree(asked)
}

// agree returns the answer to the request of a sign-in. The caller holds mu.
func (i *Issuer) agree(asked url.Values) url.Values {
	code := rand.Text()
	i.codes[code] = asked
	return url.Values{"code": {code}, "state": {asked.Get("state")}, "iss": {i.URL}}
}

// page is the page on which a real browser logs in, with one button.
func (i *Issuer) page(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Provider</title><link rel="icon" href="data:,"><main><h1>Provider</h1>
<form method="post" action="/authorize?%s"><button>Log in at the provider</button></form></main></html>`, html.EscapeString(r.URL.RawQuery)) // a browser that is gone needs no answer
}

func (i *Issuer) submitted(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	w.Header().Set("Location", asked.Get("redirect_uri")+"?"+i.agree(asked).Encode())
	w.WriteHeader(http.StatusSeeOther)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.Exchanges++
	refuse := func(why string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": why})
	}
	id, secret, _ := r.BasicAuth()
	if secret, _ = url.QueryUnescape(secret); !i.Public && (id != Client || secret != Secret) {
		refuse("invalid_client")
		return
	}
	code := r.PostFormValue("code")
	asked, known := i.codes[code]
	if !i.Twice {
		delete(i.codes, code)
	}
	proof := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !known || encoded(proof[:]) != asked.Get("code_challenge") || r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") {
		refuse("invalid_grant")
		return
	}
	claims := map[string]any{
		"iss": i.URL, "sub": "7f3", "aud": Client, "nonce": asked.Get("nonce"), "iat": i.Now().Unix(), "exp": i.Now().Add(time.Minute).Unix(),
	}
	for name, value := range i.Claims {
		claims[name] = value
	}
	if i.Change != nil {
		i.Change(claims)
	}
	sign := i.signed
	if i.Sign != nil {
		sign = i.Sign
	}
	answer(w, map[string]any{"access_token": "at", "token_type": "Bearer", "expires_in": 60, "id_token": sign(claims)})
}

func (i *Issuer) signed(claims map[string]any) string { return i.SignedBy(i.key, claims) }

// SignedBy returns a token that is signed with a key under the name of the issuer's key.
func (i *Issuer) SignedBy(key *rsa.PrivateKey, claims map[string]any) string {
	return i.signedAs(i.kid, key, claims)
}

// Rotate replaces the key of the issuer, and returns a function that signs with the previous key under its name.
func (i *Issuer) Rotate() func(claims map[string]any) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	key, kid := i.key, i.kid
	var err error
	if i.key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		i.t.Fatal(err)
	}
	i.kid += "+"
	return func(claims map[string]any) string { return i.signedAs(kid, key, claims) }
}

func (i *Issuer) signedAs(kid string, key *rsa.PrivateKey, claims map[string]any) string {
	body := Unsigned(i.t, fmt.Sprintf(`{"alg":"RS256","kid":%q}`, kid), claims)
	sum := sha256.Sum256([]byte(body))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		i.t.Error(err)
	}
	return body + "." + encoded(signature)
}

// SharedSecret returns a token that is signed with HMAC, using the public part of the issuer's key.
func (i *Issuer) SharedSecret(claims map[string]any) string {
	body := Unsigned(i.t, `{"alg":"HS256","kid":"k1"}`, claims)
	mac := hmac.New(sha256.New, i.key.N.Bytes())
	_, _ = mac.Write([]byte(body)) // never fails
	return body + "." + encoded(mac.Sum(nil))
}

// Unsigned returns the header and the claims of a token, without a signature.
func Unsigned(t *testing.T, header string, claims map[string]any) string {
	t.Helper()
	body, err := json.Marshal(claims)
	if err != nil {
		t.Error(err)
	}
	return encoded([]byte(header)) + "." + encoded(body)
}
