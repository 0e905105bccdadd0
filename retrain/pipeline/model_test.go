package pipeline

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
)

// Requests to a model must not cross a network in clear text.
func TestModelURLs(t *testing.T) {
	for text, ok := range map[string]bool{
		"https://api.example.com/v1": true, "http://127.0.0.1:8000/v1": true, "http://[::1]:8000": true, "http://localhost:11434/v1": true, "http://127.8.0.1": true,
		"http://api.example.com/v1": false, "http://10.0.0.7/v1": false, "http://localhost.example.com": false, "http://0.0.0.0:80": false, "http://2130706433": false,
		"https://me:word@api.example.com": false, "https://api.example.com/?key=x": false, "https://api.example.com/#x": false, "ftp://127.0.0.1": false,
		"https:///v1": false, "https:api.example.com": false, "unix:/run/model": false, "https://\x00": false, "": false,
	} {
		if err := strict.ModelURL(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestModelMistakesHavePlaces(t *testing.T) {
	for text, want := range map[string]string{
		"{url: \"http://api.example.com/v1\", name: m}":             "pipeline.yaml:49:14: model.url: must be https: plain http is allowed only for 127.0.0.1",
		"{url: \"https://api.example.com/v1\"}":                     "model.name: must be the name of a model",
		"{name: m}":                                                 "model.url: must be set because other keys of model are set",
		"{url: \"https://a.example\", name: m, timeout: 1h}":        "model.timeout: must be a duration in seconds or minutes",
		"{url: \"https://a.example\", name: m, timeout: 11m}":       "model.timeout: must be at most 10m",
		"{url: \"https://a.example\", name: m, calls: 101}":         "model.calls: must be from 1 to 100",
		"{url: \"https://a.example\", name: m, key: sk-0123456789}": `unknown key "key"`,
	} {
		_, err := run(t, trigger, trigger+"model: "+text+"\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// The model section does not affect the artefacts, except that a key in the repository's directory is excluded from the
// image.
func TestModelMakesNoArtefact(t *testing.T) {
	without := mustRun(t)
	with := mustRun(t, trigger, trigger+"model: {url: \"https://api.example.com/v1\", name: m, key_file: k}\n")
	for i := range without.Artefacts {
		text := with.Artefacts[i].Text
		if with.Artefacts[i].Path == "pipeline/Dockerfile.dockerignore" {
			text = strings.Replace(text, "\n**/k\n", "\n", 1)
		} else if strings.Contains(text, "**/k") {
			t.Errorf("%s names the key", with.Artefacts[i].Path)
		}
		if without.Artefacts[i].Text != text {
			t.Errorf("%s differs", without.Artefacts[i].Path)
		}
	}
	if got, want := ModelKeyFile(with), filepath.Join(filepath.Dir(with.Path), "k"); got != want {
		t.Errorf("the key is in %s, want %s", got, want)
	}
	for file, want := range map[string]string{"./keys/[m].key": "\n**/keys/\\[m].key\n", "../key": "\n**/__pycache__\n# rewardwatch:keep", "/home/me/key": "\n**/__pycache__\n# rewardwatch:keep"} {
		w := mustRun(t, trigger, trigger+"model: {url: \"https://api.example.com/v1\", name: m, key_file: \""+file+"\"}\n")
		if text := artefact(t, w, "pipeline/Dockerfile.dockerignore"); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", file, want, text)
		}
	}
}
