// Package client calls the API of a running service over HTTP.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/ingest"
)

const (
	clientTimeout = 30 * time.Second
	// maxAPIAnswer limits how much of an answer is read. A service with the maximum number of streams stays below it.
	maxAPIAnswer = 256 << 20
)

// Client calls the API of a running service.
type Client struct {
	server, tokenFile string
	user, password    string // a user of the web configuration file, and the file of the password
	ca, cert, key     string // files for TLS
}

// Flags adds the flags that locate the service.
func (c *Client) Flags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&c.server, "server", "http://"+names.LocalAddress, "URL of the service")
	cmd.PersistentFlags().StringVar(&c.tokenFile, "token-file", "", "file with a bearer token for the service (such as http.token_file); required for changes and links")
	cmd.PersistentFlags().StringVar(&c.user, "user", "", "user name from the service's web configuration file (http.web_config_file)")
	cmd.PersistentFlags().StringVar(&c.password, "password-file", "", "file with the password for --user")
	cmd.PersistentFlags().StringVar(&c.ca, "ca-file", "", "file with the service's CA certificate, if the system does not trust it")
	cmd.PersistentFlags().StringVar(&c.cert, "cert-file", "", "file with the client certificate, if the service requires one")
	cmd.PersistentFlags().StringVar(&c.key, "key-file", "", "file with the private key for --cert-file")
}

// Get reads a path of the API.
func (c *Client) Get(ctx context.Context, into any, path ...string) error {
	return c.do(ctx, http.MethodGet, nil, into, path, "")
}

// Query reads a path of the API with query parameters.
func (c *Client) Query(ctx context.Context, into any, query url.Values, path ...string) error {
	return c.do(ctx, http.MethodGet, nil, into, path, asked(query))
}

// Post sends a body to a path of the API and decodes the answer.
func (c *Client) Post(ctx context.Context, body, into any, path ...string) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	return c.do(ctx, http.MethodPost, text, into, path, "")
}

// do sends a request to the API path with the given parts, and decodes the answer. query begins with ? or is "". If
// the service refuses the request, do returns the service's reason as an error.
func (c *Client) do(ctx context.Context, method string, body []byte, into any, path []string, query string) error {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	answer, err := c.send(ctx, method, body, path, query)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // the rest of the body is not needed
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAPIAnswer))
	if err != nil {
		return fmt.Errorf("read the service's response: %w", err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return Refusal{fmt.Errorf("%s is not a Rewardwatch service; check --server: %w", answer.Request.URL.Redacted(), err)}
	}
	return nil
}

// Refusal is an error that would recur on another attempt: the service refuses the request, or is not Rewardwatch.
type Refusal struct{ error }

// Unwrap returns the reason for the refusal.
func (r Refusal) Unwrap() error { return r.error }

// CopyAll copies the answer of a path of the API, without a time limit.
func (c *Client) CopyAll(ctx context.Context, to io.Writer, query url.Values, path ...string) error {
	answer, err := c.send(ctx, http.MethodGet, nil, path, asked(query))
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // the rest of the body is not needed
	if _, err := io.Copy(to, answer.Body); err != nil {
		return fmt.Errorf("copy the service's response: %w", err)
	}
	return nil
}

// send returns the answer, or an error if the service refuses the request. The caller closes the body.
func (c *Client) send(ctx context.Context, method string, body []byte, path []string, query string) (*http.Response, error) {
	if !strings.HasPrefix(c.server, "http://") && !strings.HasPrefix(c.server, "https://") {
		return nil, fmt.Errorf("--server %q must begin with http:// or https://", c.server)
	}
	for _, part := range path {
		if part == "." || part == ".." { // as part of a URL, it would address another path
			return nil, fmt.Errorf("the API has no address for the name %q: use another name", part)
		}
	}
	at, err := url.JoinPath(c.server, append([]string{"api/v1"}, escaped(path)...)...)
	if err != nil {
		return nil, fmt.Errorf("--server: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, at+query, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("--server: %w", err)
	}
	if err := c.identify(request); err != nil {
		return nil, err
	}
	over, err := c.transport()
	if err != nil {
		return nil, err
	}
	// Redirects are not followed: a token must go to no other address, and a POST must not become a GET.
	asis := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := (&http.Client{Transport: over, CheckRedirect: asis}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("query the service: %w%s", err, hint(err))
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }() // the rest of the body is not needed
	if to, err := answer.Location(); err == nil {
		return nil, Refusal{fmt.Errorf("the service redirects to %s: set --server to its address", terminal.Printable(to.Redacted()))}
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAPIAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the service's response: %w", err)
	}
	err = serviceRefusal(answer.Status, path, text)
	if again := []int{http.StatusRequestTimeout, http.StatusTooManyRequests}; answer.StatusCode < 500 && !slices.Contains(again, answer.StatusCode) {
		err = Refusal{err}
	}
	return nil, err
}

// asked returns a query with a leading ?, or "" if it is empty.
func asked(query url.Values) string {
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

func escaped(path []string) []string {
	out := make([]string, len(path))
	for i, part := range path {
		out[i] = url.PathEscape(part)
	}
	return out
}

// transport returns the transport for requests to the service.
func (c *Client) transport() (http.RoundTripper, error) {
	if c.ca == "" && c.cert == "" && c.key == "" {
		return http.DefaultTransport, nil
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableKeepAlives = true // each call has its own connections
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.ca != "" {
		text, err := os.ReadFile(c.ca)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--ca-file: %s contains no PEM certificate", c.ca)
		}
	}
	if c.cert == "" && c.key == "" {
		return t, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("--cert-file and --key-file: %w", err)
	}
	t.TLSClientConfig.Certificates = []tls.Certificate{pair}
	return t, nil
}

// hint returns advice on a connection error, or "".
func hint(err error) string {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "; check that it is running, and set --server if it has another address"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "; pass its CA certificate with --ca-file"
	}
	return ""
}

// identify adds the token or the password if there is one.
func (c *Client) identify(r *http.Request) error {
	r.Header.Set("Content-Type", "application/json") // lets a service without a token distinguish programs from browsers
	switch {
	case c.tokenFile != "":
		text, err := ingest.ReadSecretFile(c.tokenFile)
		if err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(text))
	case c.user != "" && c.password == "":
		return errors.New("--user requires --password-file")
	case c.user != "":
		text, err := ingest.ReadSecretFile(c.password)
		if err != nil {
			return fmt.Errorf("--password-file: %w", err)
		}
		r.SetBasicAuth(c.user, strings.TrimRight(text, "\r\n"))
	}
	return nil
}

// serviceRefusal returns the reason in the answer as an error. An object that was not found is named as in the path.
func serviceRefusal(status string, path []string, answer []byte) error {
	var said struct{ Error string }
	if bytes.Contains(answer, []byte("HTTP request to an HTTPS server")) { // the answer of Go's server
		return errors.New("the service uses TLS: begin --server with https://")
	}
	if err := json.Unmarshal(answer, &said); err != nil || said.Error == "" {
		return fmt.Errorf("the service responded with %s", terminal.Printable(status))
	}
	if strings.HasPrefix(status, "404 ") && len(path) > 1 && slices.Contains([]string{"gates", "incidents", "retrain-requests"}, path[0]) {
		return fmt.Errorf("%s: %s", terminal.Printable(path[1]), terminal.Printable(said.Error))
	}
	return fmt.Errorf("the service rejected the request (%s): %s", status, terminal.Printable(said.Error))
}

// ReasonFlags adds the flags for the name of the person who decides and for the reason.
func ReasonFlags(cmd *cobra.Command, r *wire.Reason) {
	cmd.Flags().StringVar(&r.By, "by", userName(), "your name, which is recorded with the decision")
	cmd.Flags().StringVar(&r.Why, "why", "", "reason for the decision, as a sentence that others can understand (required)")
}

// userName returns the login name of the user who runs this process, or "" if the system does not know it.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}
