// Package httpclient configures TLS and authentication of HTTP clients.
package httpclient

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"

	"github.com/prometheus/common/config"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Encrypted calls build with the TLS configuration, or with nil for the defaults, and returns the resulting transport.
// It returns an error if a file cannot be used, or if other users can read the key. When files change later, it calls
// build again.
func Encrypted(c ingest.Certificates, build func(*tls.Config) http.RoundTripper) (http.RoundTripper, error) {
	if c == (ingest.Certificates{}) {
		return build(nil), nil
	}
	settings := config.TLSRoundTripperSettings{}
	if c.CAFile != "" {
		settings.CA = open(c.CAFile)
	}
	if c.CertFile != "" {
		settings.Cert, settings.Key = open(c.CertFile), file{c.KeyFile, ingest.ReadSecretFile}
		if _, err := settings.Key.Fetch(context.Background()); err != nil {
			return nil, err
		}
	}
	cfg, err := config.NewTLSConfig(&config.TLSConfig{
		CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile, ServerName: c.ServerName, InsecureSkipVerify: c.InsecureSkipVerify,
		MinVersion: config.TLSVersion(tls.VersionTLS12),
	})
	if err != nil {
		return nil, err
	}
	return config.NewTLSRoundTripper(cfg, settings, func(cfg *tls.Config) (http.RoundTripper, error) { return build(cfg), nil })
}

// Auth configures how a client authenticates: with a bearer token, or with a username and a password.
type Auth struct {
	TokenFile    string
	Username     string
	PasswordFile string
}

// Check reports keys that contradict each other.
func (a Auth) Check(report func(key, msg string)) {
	if (a.Username == "") != (a.PasswordFile == "") {
		report("password_file", "must be set together with username")
	}
	if a.TokenFile != "" && a.Username != "" {
		report("token_file", "cannot be combined with username")
	}
}

// Wrap returns a transport that authenticates every request without an Authorization header. It reads the secret for
// each request. Wrap returns an error if the secret cannot be read now.
func (a Auth) Wrap(next http.RoundTripper) (http.RoundTripper, error) {
	switch {
	case a.TokenFile != "":
		secret := token(a.TokenFile)
		_, err := secret.Fetch(context.Background())
		return config.NewAuthorizationCredentialsRoundTripper("Bearer", secret, next), err
	case a.Username != "":
		password := token(a.PasswordFile)
		_, err := password.Fetch(context.Background())
		return config.NewBasicAuthRoundTripper(config.NewInlineSecret(a.Username), password, next), err
	}
	return next, nil
}

// file is a file that is read each time its content is needed.
type file struct {
	name string
	read func(string) (string, error)
}

// open returns a file that is not secret.
func open(name string) file {
	return file{name, func(name string) (string, error) {
		text, err := os.ReadFile(name)
		return string(text), err
	}}
}

// token returns a file with a token or a password.
func token(name string) file { return file{name, ingest.ReadToken} }

// Fetch implements config.SecretReader.
func (f file) Fetch(context.Context) (string, error) { return f.read(f.name) }

// Description implements config.SecretReader.
func (f file) Description() string { return "file " + f.name }

// Immutable implements config.SecretReader.
func (f file) Immutable() bool { return false }
