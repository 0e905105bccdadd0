package strict

import (
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"strings"
)

// ModelURL returns what is wrong with the URL of a model's endpoint. Requests must not cross a network in clear text.
func ModelURL(text string) error {
	u, err := url.Parse(text)
	if err == nil && u.Port() != "" && !IsPort(u.Port()) {
		return errors.New("must have a port of at most 65535")
	}
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return errors.New("must be a URL without a user, query or fragment, such as https://api.example.com/v1")
	}
	if strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions") {
		return errors.New("must be a base URL without /chat/completions, which is added automatically")
	}
	switch {
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http":
		return errors.New("must be https, or http on this machine")
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("must be https: plain http is allowed only for 127.0.0.1, [::1] and localhost")
	}
	return nil
}

// Below returns the path of a file relative to a directory, or "" if the file is not below it.
func Below(dir, file string) string {
	whole, err := filepath.Abs(dir)
	if err != nil || file == "" {
		return ""
	}
	other, err := filepath.Abs(file)
	if err != nil {
		return ""
	}
	if rel, err := filepath.Rel(whole, other); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return ""
}
