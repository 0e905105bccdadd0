package registry

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/twmb/franz-go/pkg/sr"
)

// Config configures a schema registry, for messages in Confluent's wire format.
type Config struct {
	URL          string `yaml:"url"`           // URL, such as `https://registry.example:8081`
	Username     string `yaml:"username"`      // user name
	PasswordFile string `yaml:"password_file"` // password, read for each request
	CAFile       string `yaml:"ca_file"`       // PEM file with CA certificates (default: the system's CAs)
}

// Check reports every invalid value.
func (c Config) Check(report func(path, msg string)) {
	if c.URL == "" {
		if c != (Config{}) {
			report("url", "must be set, or the other keys of registry have no effect")
		}
		return
	}
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		report("url", "must be a URL such as https://registry.example:8081")
	case u.User != nil:
		report("url", "must not contain a password: use username and password_file")
	}
	if (c.Username == "") != (c.PasswordFile == "") {
		report("username", "must be set together with password_file")
	}
}

// maxAnswer is the maximum size of a response in bytes.
const maxAnswer = 16 << 20

// client returns a client of the registry.
func (c Config) client() (*sr.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true // requests are rare
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the CA certificate for the schema registry: %w", err)
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read the CA certificate for the schema registry: %s contains no certificate", c.CAFile)
		}
	}
	if c.PasswordFile != "" {
		if _, err := ingest.ReadSecretFile(c.PasswordFile); err != nil {
			return nil, fmt.Errorf("read the password for the schema registry: %w", err)
		}
	}
	client := &http.Client{
		Timeout: patience, Transport: bounded{transport},
		// A redirect could send the password unencrypted, or lead the service to an address that only the service can reach.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return sr.NewClient(sr.URLs(strings.TrimRight(c.URL, "/")), sr.UserAgent("rewardwatch"), sr.HTTPClient(client), sr.PreReq(c.signIn))
}

// signIn adds the password to a request. It reads the file each time, because the password may change while the service
// runs.
func (c Config) signIn(req *http.Request) error {
	if c.Username == "" {
		return nil
	}
	password, err := ingest.ReadSecretFile(c.PasswordFile)
	if err != nil {
		return fmt.Errorf("read the password for the schema registry: %w", err)
	}
	req.SetBasicAuth(c.Username, strings.TrimRight(password, "\r\n"))
	return nil
}

// bounded limits the size of responses.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(req)
	if err == nil {
		res.Body = limited{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}

// limited is a response body that is read only up to a limit.
type limited struct {
	io.Reader
	io.Closer
}
