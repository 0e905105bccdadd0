package pipeline

import (
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
)

var (
	modelName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$`)
	modelTimeout = regexp.MustCompile(`^[1-9][0-9]{0,2}[sm]$`)
)

// validateModel checks how a language model is reached.
func validateModel(w *Work) {
	m := &w.File.Model
	w.matches(modelTimeout, "model.timeout", m.Timeout, "a duration in seconds or minutes, such as 90s or 2m")
	if d, err := time.ParseDuration(m.Timeout); err == nil && d > 10*time.Minute {
		w.report("model.timeout", "must be at most 10m")
	}
	w.within("model.calls", m.Calls, 1, 100)
	if m.URL == "" {
		if m.Name != "" || m.KeyFile != "" || m.Readme {
			w.report("model.url", "must be set because other keys of model are set")
		}
		return
	}
	if err := modelURL(m.URL); err != nil {
		w.report("model.url", "%v, not %q", err, m.URL)
	}
	w.matches(modelName, "model.name", m.Name, "the name of a model")
}

// modelURL returns what is wrong with the URL of an endpoint: what is sent to it must not cross a network in clear text.
func modelURL(text string) error {
	u, err := url.Parse(text)
	if err == nil && u.Port() != "" && !strict.IsPort(u.Port()) {
		return errors.New("must have a port of at most 65535")
	}
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return errors.New("must be a URL without a user, query or fragment, such as https://api.example.com/v1")
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

// ModelKeyFile returns the path of the file with the key of the model, "" for none. In the file it is relative to the file
// that names it.
func ModelKeyFile(w *Work) string {
	path := w.File.Model.KeyFile
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(w.place("model.key_file").File), path)
}
