package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	clientTimeout = 30 * time.Second
	// maxAPIAnswer bounds what is read of an answer: that of a service with as many streams as it may have.
	maxAPIAnswer = 256 << 20
)

// client talks to the API of a running service.
type client struct {
	server, tokenFile string
}

// flags adds the flags that say where the service is.
func (c *client) flags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&c.server, "server", "http://127.0.0.1:9464", "address of the service")
	cmd.PersistentFlags().StringVar(&c.tokenFile, "token-file", "", "file with the bearer token of the service (its http.token_file), for what changes something and for links")
}

// get reads a path of the API.
func (c *client) get(ctx context.Context, into any, path ...string) error {
	return c.do(ctx, http.MethodGet, nil, into, path, "")
}

// query reads a path of the API with a query.
func (c *client) query(ctx context.Context, into any, query url.Values, path ...string) error {
	return c.do(ctx, http.MethodGet, nil, into, path, "?"+query.Encode())
}

// post sends an order.
func (c *client) post(ctx context.Context, body, into any, path ...string) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write the order: %w", err)
	}
	return c.do(ctx, http.MethodPost, text, into, path, "")
}

// do sends a request to the path of the API whose parts are given, with a query that begins with ? or is "", and reads the answer. A
// refusal is an error with what the service said.
func (c *client) do(ctx context.Context, method string, body []byte, into any, path []string, query string) error {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	answer, err := c.send(ctx, method, body, path, query)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // nothing is read after it
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAPIAnswer))
	if err != nil {
		return fmt.Errorf("read what the service answers: %w", err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s does not answer as the service does: %w", answer.Request.URL.Redacted(), err)
	}
	return nil
}

// copyAll copies what a path of the API answers, however long that takes.
func (c *client) copyAll(ctx context.Context, to io.Writer, query url.Values, path ...string) error {
	answer, err := c.send(ctx, http.MethodGet, nil, path, "?"+query.Encode())
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // nothing is read after it
	if _, err := io.Copy(to, answer.Body); err != nil {
		return fmt.Errorf("copy what the service answers: %w", err)
	}
	return nil
}

// send gives the answer, whose body the caller closes, unless it is a refusal.
func (c *client) send(ctx context.Context, method string, body []byte, path []string, query string) (*http.Response, error) {
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
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the service: %w", err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }() // nothing is read after it
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAPIAnswer))
	if err != nil {
		return nil, fmt.Errorf("read what the service answers: %w", err)
	}
	return nil, serviceRefusal(answer.Status, text)
}

func escaped(path []string) []string {
	out := make([]string, len(path))
	for i, part := range path {
		out[i] = url.PathEscape(part)
	}
	return out
}

// identify adds the token where there is one.
func (c *client) identify(r *http.Request) error {
	r.Header.Set("Content-Type", "application/json") // a service without a token tells programs from browsers by it
	if c.tokenFile == "" {
		return nil
	}
	text, err := os.ReadFile(c.tokenFile)
	if err != nil {
		return fmt.Errorf("--token-file: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(text)))
	return nil
}

func serviceRefusal(status string, answer []byte) error {
	var said struct{ Error string }
	if err := json.Unmarshal(answer, &said); err != nil || said.Error == "" {
		return fmt.Errorf("the service answers %s", status)
	}
	return fmt.Errorf("the service refuses (%s): %s", status, printable(said.Error))
}

// reason is who decides, and why: what every order says.
type reason struct {
	By  string `json:"by"`
	Why string `json:"why"`
}

func (r *reason) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.By, "by", os.Getenv("USER"), "who decides")
	cmd.Flags().StringVar(&r.Why, "why", "", "why, in a sentence that others will read (required)")
}

func (r *reason) check() error {
	if strings.TrimSpace(r.By) == "" {
		return errors.New("--by must say who decides")
	}
	if strings.TrimSpace(r.Why) == "" {
		return errors.New("--why must say why, in a sentence that others will read")
	}
	return nil
}
