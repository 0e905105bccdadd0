package pipeline

import (
	"path/filepath"
	"regexp"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
)

var (
	modelName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$`)
	modelTimeout = regexp.MustCompile(`^[1-9][0-9]{0,2}[sm]$`)
)

// validateModel checks the configuration of a language model.
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
	if err := strict.ModelURL(m.URL); err != nil {
		w.report("model.url", "%v, not %q", err, m.URL)
	}
	w.matches(modelName, "model.name", m.Name, "the name of a model")
}

// ModelKeyFile returns the path of the file with the model's API key, or "". model.key_file is relative to the file
// that sets it.
func ModelKeyFile(w *Work) string {
	path := w.File.Model.KeyFile
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(w.place("model.key_file").File), path)
}
