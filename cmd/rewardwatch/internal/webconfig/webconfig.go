// Package webconfig reads a web configuration file in the format of Prometheus' exporter-toolkit, which configures TLS
// and passwords for a server. The toolkit itself can only be used as a whole, and would refuse requests that have a
// token instead of a password.
package webconfig

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/prometheus/exporter-toolkit/web"
	"github.com/rs/zerolog"
	"go.yaml.in/yaml/v2"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/time/rate"
)

// ErrBad is the error for a file that cannot be used, for errors.Is.
var ErrBad = errors.New("web configuration file")

// errOpens means that a changed file would remove protection while the server runs. The file may be in the middle of
// being written, and empty for a moment.
var errOpens = errors.New("users or TLS were removed from the file: reload the service if that is intended")

// streamsOfOne is the maximum number of open requests per HTTP/2 connection, because a client may have several
// connections.
const streamsOfOne = 16

// Check returns an error if a file, or a certificate or key that it names, cannot be used.
func Check(path string) error {
	if err := web.Validate(path); err != nil {
		return fmt.Errorf("%w %s: %w", ErrBad, path, err)
	}
	return nil
}

// File is a web configuration file. As with the toolkit, each request reads the file again, and each connection also
// the certificates that it names, so that both can be replaced without a restart. If they are invalid, the last valid
// ones apply. Its methods are safe for concurrent use.
type File struct {
	path     string
	log      zerolog.Logger
	encrypts bool

	mu      sync.Mutex
	text    []byte // as last read
	rules   *web.Config
	limiter *rate.Limiter // nil without a limit
	tls     *tls.Config
	problem string // last logged problem

	passwords passwords
}

// Open reads a file. It fails with ErrBad.
func Open(path string, log zerolog.Logger) (*File, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	f := &File{path: path, log: log}
	if err := f.read(); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrBad, path, err)
	}
	if f.encrypts = f.rules.TLSConfig.IsEnabled(); f.encrypts {
		var err error
		if f.tls, err = certified(&f.rules.TLSConfig); err != nil {
			return nil, fmt.Errorf("%w %s: %w", ErrBad, path, err)
		}
	}
	return f, nil
}

// read reads the file, and applies its rules if they have changed.
func (f *File) read() error {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	if f.rules != nil && bytes.Equal(text, f.text) {
		return nil
	}
	if err := web.Validate(f.path); err != nil {
		return err
	}
	rules, err := parse(text)
	if err != nil {
		return err
	}
	rules.TLSConfig.SetDirectory(filepath.Dir(f.path))
	if f.rules != nil && (len(f.rules.Users) > 0 && len(rules.Users) == 0 || f.encrypts && !rules.TLSConfig.IsEnabled()) {
		return errOpens
	}
	if f.rules == nil || f.rules.RateLimiterConfig != rules.RateLimiterConfig {
		f.limiter = nil
		if l := rules.RateLimiterConfig; l.Interval != 0 {
			f.limiter = rate.NewLimiter(rate.Every(l.Interval), l.Burst)
		}
	}
	f.text, f.rules = text, rules
	return nil
}

// parse reads the text of a file with the defaults of the toolkit.
func parse(text []byte) (*web.Config, error) {
	c := &web.Config{
		TLSConfig:  web.TLSConfig{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13},
		HTTPConfig: web.HTTPConfig{HTTP2: true},
	}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		return nil, err
	}
	return c, nil
}

// certified returns the configuration of a connection with the current certificate, so that it remains usable while the
// files of the next one are being written.
func certified(c *web.TLSConfig) (*tls.Config, error) {
	out, err := web.ConfigToTLSConfig(c)
	if err != nil {
		return nil, err
	}
	certificate, err := out.GetCertificate(nil)
	if err != nil {
		return nil, err
	}
	out.Certificates, out.GetCertificate = []tls.Certificate{*certificate}, nil
	out.SessionTicketsDisabled = out.ClientAuth != tls.NoClientCert // a resumed session would not be asked for its certificate again
	return out, nil
}

// report logs the reason why the file cannot be used, once per reason.
func (f *File) report(err error) {
	switch {
	case err == nil && f.problem != "":
		f.problem = ""
		f.log.Info().Str("file", f.path).Msg("the web configuration file is valid again")
	case err != nil && f.problem != err.Error():
		f.problem = err.Error()
		f.log.Error().Err(err).Str("file", f.path).Msg("the web configuration file is invalid; keeping the last valid version")
	}
}

// Encrypts reports whether the server uses TLS. It does not change while the server runs.
func (f *File) Encrypts() bool { return f.encrypts }

// AsksForCertificate reports whether clients need a certificate signed by one of the configured authorities.
func (f *File) AsksForCertificate() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tls != nil && f.tls.ClientAuth == tls.RequireAndVerifyClientCert
}

// Configure makes a server use TLS according to the file.
func (f *File) Configure(s *http.Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(f.rules.HTTPConfig.HTTP2)
	s.Protocols, s.HTTP2 = protocols, &http.HTTP2Config{MaxConcurrentStreams: streamsOfOne}
	spoken := []string{"http/1.1"}
	if protocols.HTTP2() {
		spoken = []string{"h2", "http/1.1"}
	}
	s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: spoken}
	s.TLSConfig.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := f.connection()
		c.NextProtos = spoken
		return c, nil
	}
}

// connection returns the configuration of a new connection.
func (f *File) connection() *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.read()
	if err == nil {
		var current *tls.Config
		if current, err = certified(&f.rules.TLSConfig); err == nil {
			f.tls = current
		}
	}
	f.report(err)
	return f.tls.Clone()
}

// Rules returns the rules that apply to the current request.
func (f *File) Rules() Rules {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.read(); err != nil || !f.encrypts { // the next connection checks whether its certificates can be used
		f.report(err)
	}
	return Rules{config: f.rules, limiter: f.limiter, passwords: &f.passwords}
}

// Rules are a file's rules for requests. The zero value has no rules.
type Rules struct {
	config    *web.Config
	limiter   *rate.Limiter
	passwords *passwords
}

// Headers returns the headers to add to answers.
func (r Rules) Headers() map[string]string {
	if r.config == nil {
		return nil
	}
	return r.config.HTTPConfig.Header
}

// Allows reports whether the request rate limit permits one more request.
func (r Rules) Allows() bool { return r.limiter == nil || r.limiter.Allow() }

// AskForPassword reports whether there are users.
func (r Rules) AskForPassword() bool { return r.config != nil && len(r.config.Users) > 0 }

// Remember reports whether a password is correct and was already checked. It takes no time.
func (r Rules) Remember(user, password string) bool {
	hash, known := r.config.Users[user]
	return known && r.passwords.has(passwordOf(user, string(hash), password))
}

// Know reports whether a password is that of the user. It takes as long as hashing the password, even if the user does
// not exist, and checks one password at a time.
func (r Rules) Know(user, password string) bool {
	hash, known := r.config.Users[user]
	if !known {
		hash = ofNoUser
	}
	if !r.passwords.check(string(hash), password) || !known {
		return false
	}
	r.passwords.remember(passwordOf(user, string(hash), password))
	return true
}

// ofNoUser is the hash with the usual cost that is checked if a user does not exist.
const ofNoUser = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"

// passwordsKept is the maximum number of correct passwords that are remembered, because users may change theirs.
const passwordsKept = 100

// passwords remembers correct passwords of users, as hashes only.
type passwords struct {
	checking sync.Mutex // one check at a time, or guesses could use all cores
	mu       sync.Mutex
	correct  map[correctPassword]struct{}
}

// correctPassword has a separate field for each text that clients send, so that no combination of name and password can
// be mistaken for another one.
type correctPassword struct {
	user, hash string
	password   [sha256.Size]byte
}

func passwordOf(user, hash, password string) correctPassword {
	return correctPassword{user, hash, sha256.Sum256([]byte(password))}
}

func (p *passwords) has(c correctPassword) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, has := p.correct[c]
	return has
}

func (p *passwords) check(hash, password string) bool {
	p.checking.Lock()
	defer p.checking.Unlock()
	return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil
}

func (p *passwords) remember(c correctPassword) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.correct == nil || len(p.correct) >= passwordsKept {
		p.correct = map[correctPassword]struct{}{}
	}
	p.correct[c] = struct{}{}
}
