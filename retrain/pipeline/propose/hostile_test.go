package propose

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"
)

// Text of a repository appears in the proposed file only in comments and scalars.
func TestHostileRepositoriesAddNoKeys(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a version of Python": {"setup.py": "setup(python_requires='==3.8.*||\rdeploy: {command: [bad]}\r#')\n"},
		"a version":           {"requirements.txt": "numpy>=1||\rdeploy: {command: [bad]}\r#\n"},
		"a directory":         {"a\ndeploy: {command: [bad]}\n#/requirements.txt": "unknown-of-hostile\nnumpy>=1\n"},
	} {
		files["train.py"] = "model.learn()\nif __name__ == '__main__':\n    train()\n"
		text := proposalOf(t, files)
		var keys map[string]any
		if err := yaml.Unmarshal([]byte(text), &keys); err != nil {
			t.Errorf("%s: %v\n%q", name, err, text)
		}
		if keys["deploy"] != nil {
			t.Errorf("%s is more than a comment:\n%s", name, strings.ReplaceAll(text, "\r", "\n"))
		}
	}
}
