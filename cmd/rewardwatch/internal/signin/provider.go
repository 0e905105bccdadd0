// Package signin logs people in at an OpenID Connect provider, with the authorization code flow and PKCE.
package signin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Reasons why a sign-in failed, for errors.Is.
var (
	// ErrUnavailable means that the provider does not respond, or that its response is invalid.
	ErrUnavailable = errors.New("the sign-in provider cannot be reached")
	// ErrRefused means that the provider does not confirm the person, so the attempt may be a guess.
	ErrRefused = errors.New("the sign-in was not confirmed by the provider")
	// ErrStale means that the answer does not belong to a sign-in that this browser has begun.
	ErrStale = errors.New("this sign-in was not started in this browser or has expired")
	// ErrNoRole means that the provider knows the person, but none of the configured roles applies.
	ErrNoRole = errors.New("your account does not have a role that can log in here")
	// ErrUnverified means that the e-mail address with which a person would log in may belong to somebody else.
	ErrUnverified = errors.New("the sign-in provider has not verified your e-mail address")
)

// Bounds of the provider's answers.
const (
	patience  = 10 * time.Second
	maxAnswer = 1 << 20
	maxAge    = time.Hour // for the provider's metadata; new keys are fetched at once
	maxSkew   = 30 * time.Second
	pause     = 5 * time.Second // after a failure, so that sign-ins do not wait for each other's attempts
	maxParam  = 8 << 10         // for a code or a state
	callback  = "login/oidc/callback"
)

// Provider is the provider of a configuration. It does not contact the provider before the first sign-in, so the
// service can start while the provider is unavailable. Its methods are safe for concurrent use.
type Provider struct {
	cfg      Config
	redirect string // address to which the provider redirects people
	now      func() time.Time
	seal     sealer
	client   *http.Client

	mu      sync.Mutex
	found   *oidc.Provider
	foundAt time.Time
	failed  error // error of the last discovery, nil if it succeeded
	asked   time.Time
}

// New returns the provider of a configuration. external is the public address of the service. It fails if a file of the
// configuration cannot be used.
func New(cfg Config, external string, now func() time.Time) (*Provider, error) {
	p := &Provider{cfg: cfg, redirect: strings.TrimSuffix(external, "/") + "/" + callback, now: now, seal: newSealer()}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("http.oidc.ca_file: %w", err)
		}
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("http.oidc.ca_file: %s contains no certificate", cfg.CAFile)
		}
	}
	p.client = &http.Client{Transport: bounded{t}, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // secrets are only sent to the address of the provider
	}}
	_, err := p.secret()
	return p, err
}

// bounded limits the size of answers.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, err
}

// secret reads the client secret, so that it can be replaced without a restart.
func (p *Provider) secret() (string, error) {
	if p.cfg.ClientSecretFile == "" {
		return "", nil
	}
	text, err := ingest.ReadSecretFile(p.cfg.ClientSecretFile)
	if err != nil {
		return "", fmt.Errorf("http.oidc.client_secret_file: %w", err)
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", fmt.Errorf("http.oidc.client_secret_file: %s is empty", p.cfg.ClientSecretFile)
	}
	return text, nil
}

// discover returns the provider with its metadata.
func (p *Provider) discover() (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil && p.now().Sub(p.foundAt) < maxAge {
		return p.found, nil
	}
	if p.failed != nil && p.now().Sub(p.asked) < pause {
		return p.known()
	}
	// The provider keeps the context forever, to fetch keys. The client has a timeout.
	found, err := oidc.NewProvider(oidc.ClientContext(context.Background(), p.client), p.cfg.Issuer)
	if err == nil {
		err = p.checkEndpoints(found)
	}
	p.failed, p.asked = err, p.now()
	if err == nil {
		p.found, p.foundAt = found, p.asked
	}
	return p.known()
}

// checkEndpoints returns an error if the provider names an address that is not permitted.
func (p *Provider) checkEndpoints(found *oidc.Provider) error {
	var said struct {
		Keys string `json:"jwks_uri"`
	}
	if err := found.Claims(&said); err != nil {
		return fmt.Errorf("read the provider's description: %w", err)
	}
	at := found.Endpoint()
	for name, address := range map[string]string{
		"authorization_endpoint": at.AuthURL, "token_endpoint": at.TokenURL, "jwks_uri": said.Keys, "userinfo_endpoint": found.UserInfoEndpoint(),
	} {
		if address != "" && !mayName(p.cfg.Issuer, address) {
			return fmt.Errorf("the provider's %s %.300q must use https, unless it and the issuer have loopback addresses", name, address)
		}
	}
	return nil
}

// mayName reports whether a provider may name an address. Without encryption, others on the network could read the
// secret and codes, or replace the keys. A provider elsewhere must not name an http address on the service's own
// machine, where another program would get the secret.
func mayName(issuer, address string) bool {
	from, err := url.Parse(issuer)
	to, wrong := url.Parse(address)
	return err == nil && wrong == nil && encrypted(to) && (to.Scheme == "https" || loopback(from))
}

// known returns the provider as last discovered.
func (p *Provider) known() (*oidc.Provider, error) {
	if p.found == nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, p.failed)
	}
	return p.found, nil
}

func (p *Provider) oauth(found *oidc.Provider) (*oauth2.Config, error) {
	secret, err := p.secret()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return &oauth2.Config{
		ClientID: p.cfg.ClientID, ClientSecret: secret, Endpoint: found.Endpoint(), RedirectURL: p.redirect,
		Scopes: append([]string{oidc.ScopeOpenID}, p.cfg.Scopes...),
	}, nil
}

// Begin returns the address at which a person logs in, and a text that their browser must keep until they return to a
// page. It fails with ErrUnavailable.
func (p *Provider) Begin(page string) (address, kept string, err error) {
	found, err := p.discover()
	if err != nil {
		return "", "", err
	}
	client, err := p.oauth(found)
	if err != nil {
		return "", "", err
	}
	begun := newAttempt(page, p.now())
	return client.AuthCodeURL(begun.State, oidc.Nonce(begun.Nonce), oauth2.S256ChallengeOption(begun.Verifier)), p.seal.seal(begun), nil
}

// Finish returns the person who has logged in, and the page to which they return. answer is the query that the browser
// brings from the provider, and kept the text that Begin has returned. Finish fails with one of the errors of this
// package.
func (p *Provider) Finish(ctx context.Context, answer url.Values, kept string) (who session.Person, page string, err error) {
	begun, err := p.seal.open(kept, p.now())
	if err != nil || !begun.matches(answer.Get("state")) {
		return session.Person{}, "", ErrStale
	}
	if iss := answer.Get("iss"); iss != "" && iss != p.cfg.Issuer {
		return session.Person{}, "", fmt.Errorf("%w: the response is from a different provider", ErrRefused)
	}
	code := answer.Get("code")
	if why := answer.Get("error"); why != "" || code == "" || len(code) > maxParam {
		return session.Person{}, "", fmt.Errorf("%w: %q", ErrRefused, why)
	}
	if !p.seal.use(begun, p.now()) {
		return session.Person{}, "", ErrStale
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), 2*patience)
	defer cancel()
	claims, err := p.exchange(ctx, code, begun)
	if err != nil {
		return session.Person{}, "", err
	}
	who, err = p.person(claims)
	return who, begun.Page, err
}

// keysNotFetched is part of the error of go-oidc if the keys of the provider cannot be read, which does not indicate a
// guess. The error has no type.
const keysNotFetched = "fetching keys"

// exchange returns the claims of the person for whom the provider has issued a code.
func (p *Provider) exchange(ctx context.Context, code string, begun attempt) (claims, error) {
	found, err := p.discover()
	if err != nil {
		return nil, err
	}
	client, err := p.oauth(found)
	if err != nil {
		return nil, err
	}
	tokens, err := client.Exchange(ctx, code, oauth2.VerifierOption(begun.Verifier))
	if err != nil {
		if said, answered := errors.AsType[*oauth2.RetrieveError](err); answered && said.Response.StatusCode < http.StatusInternalServerError {
			return nil, fmt.Errorf("%w: %q", ErrRefused, said.ErrorCode)
		}
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	verified, err := found.Verifier(&oidc.Config{ClientID: p.cfg.ClientID, Now: func() time.Time { return p.now().Add(-maxSkew) }}).Verify(ctx, raw)
	if err != nil && strings.Contains(err.Error(), keysNotFetched) {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	out := claims{}
	if err := verified.Claims(&out); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err := p.check(verified, out, begun); err != nil {
		return nil, err
	}
	return out, p.complete(ctx, found, tokens, out)
}

// check returns an error if a token signed by the provider is not for this sign-in.
func (p *Provider) check(verified *oidc.IDToken, out claims, begun attempt) error {
	azp, named := out["azp"].(string)
	switch {
	case !same(verified.Nonce, begun.Nonce):
		return fmt.Errorf("%w: the token belongs to a different sign-in", ErrRefused)
	case verified.Subject == "":
		return fmt.Errorf("%w: the token has no subject", ErrRefused)
	case named && azp != p.cfg.ClientID, !named && len(verified.Audience) > 1:
		return fmt.Errorf("%w: the token was issued for a different client", ErrRefused)
	}
	return nil
}

// complete adds the claims that the provider only returns from the userinfo endpoint.
func (p *Provider) complete(ctx context.Context, found *oidc.Provider, tokens *oauth2.Token, out claims) error {
	told := out.at(p.cfg.RolesClaim) != nil && out.at(p.cfg.NameClaim) != nil && (!p.byAddress() || out["email_verified"] != nil)
	if told || found.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	more := claims{}
	if err := info.Claims(&more); err != nil || info.Subject != out["sub"] {
		return fmt.Errorf("%w: the user info belongs to a different account", ErrRefused)
	}
	own, has := out["email"].(string)
	if theirs, told := more["email"].(string); p.byAddress() && has && told && !strings.EqualFold(own, theirs) {
		return fmt.Errorf("%w: the user info has a different e-mail address", ErrRefused)
	}
	for name, value := range more {
		if _, known := out[name]; !known {
			out[name] = value
		}
	}
	return nil
}

// Close ends idle connections.
func (p *Provider) Close() { p.client.CloseIdleConnections() }
