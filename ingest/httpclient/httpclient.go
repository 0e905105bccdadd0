// Package httpclient configures clients of HTTP servers: which servers they trust, and how they authenticate.
package httpclient

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"

	"github.com/prometheus/common/config"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Encrypted returns what build makes of the configuration of TLS, which is nil for the defaults. It fails if a file cannot
// be used, or if others than the service can read the key. If files change later, it builds again.
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

// Auth configures how a client authenticates: by a bearer token, or by a user and a password.
type Auth struct {
	TokenFile    string
	Username     string
	PasswordFile string
}

// Check reports the keys that do not fit together.
func (a Auth) Check(report func(key, msg string)) {
	if (a.Username == "") != (a.PasswordFile == "") {
		report("password_file", "must be set together with username")
	}
	if a.TokenFile != "" && a.Username != "" {
		report("token_file", "cannot be combined with username")
	}
}

// Wrap returns a transport that authenticates every request that has no Authorization header yet. It reads the secret
// for each request, and fails if it cannot be read now.
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

// file is a file that is read whenever its content is needed.
type file struct {
	name string
	read func(string) (string, error)
}

// open is a file that everybody may read.
func open(name string) file {
	return file{name, func(name string) (string, error) {
		text, err := os.ReadFile(name)
		return string(text), err
	}}
}

// token is a file with a token or a password.
func token(name string) file { return file{name, ingest.ReadToken} }

// Fetch implements config.SecretReader.
func (f file) Fetch(context.Context) (string, error) { return f.read(f.name) }

// Description implements config.SecretReader.
func (f file) Description() string { return "file " + f.name }

// Immutable implements config.SecretReader.
func (f file) Immutable() bool { return false }
