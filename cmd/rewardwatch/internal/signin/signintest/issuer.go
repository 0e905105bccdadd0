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

// Client and Secret are what the issuer knows the service by.
const (
	Client = "rewardwatch"
	Secret = "a secret of the client"
)

// Issuer is a provider. Its fields may be changed between requests.
type Issuer struct {
	*httptest.Server
	Claims map[string]any // of who logs in, beside those of each token
	Info   map[string]any // what the provider tells only when asked, nil for no such endpoint
	Now    func() time.Time
	// Change changes the claims of a token before it is signed, and Sign signs it in place of the issuer.
	Change func(claims map[string]any)
	Sign   func(claims map[string]any) string
	// Describe changes what the provider says of itself.
	Describe func(said map[string]any)
	// Twice accepts a code more than once, Down answers 500, and Public asks for no secret.
	Twice, Down, Public bool
	Exchanges           int

	t     *testing.T
	key   *rsa.PrivateKey
	kid   string
	mu    sync.Mutex
	codes map[string]url.Values // the request by its code
}

// keyOfAll makes the key of all issuers, which takes a long time.
var keyOfAll = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// New starts an issuer that ends with the test.
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
	_ = json.NewEncoder(w).Encode(value) // a test that is gone needs no answer
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

// Authorize is what happens in the browser at the address of a sign-in: it returns the answer with which the provider leads
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

// agree returns the answer to a request of a sign-in. The caller holds mu.
func (i *Issuer) agree(asked url.Values) url.Values {
	code := rand.Text()
	i.codes[code] = asked
	return url.Values{"code": {code}, "state": {asked.Get("state")}, "iss": {i.URL}}
}

// page is where a real browser logs in, by one button.
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

// SignedBy returns a token that a key has signed under the name of the issuer's.
func (i *Issuer) SignedBy(key *rsa.PrivateKey, claims map[string]any) string {
	return i.signedAs(i.kid, key, claims)
}

// Rotate replaces the key of the issuer, and returns what signs with the one before under its name.
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

// SharedSecret returns a token that is signed with HMAC, by what everybody knows of the issuer's key.
func (i *Issuer) SharedSecret(claims map[string]any) string {
	body := Unsigned(i.t, `{"alg":"HS256","kid":"k1"}`, claims)
	mac := hmac.New(sha256.New, i.key.N.Bytes())
	_, _ = mac.Write([]byte(body)) // never fails
	return body + "." + encoded(mac.Sum(nil))
}

// Unsigned returns header and claims of a token.
func Unsigned(t *testing.T, header string, claims map[string]any) string {
	t.Helper()
	body, err := json.Marshal(claims)
	if err != nil {
		t.Error(err)
	}
	return encoded([]byte(header)) + "." + encoded(body)
}
