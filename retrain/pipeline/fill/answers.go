package fill

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// File is the path of the proposals file, relative to the root of the repository.
const File = "pipeline/proposals.json"

// maxAnswers bounds the number of proposals in the file, and maxFile its size in bytes.
const (
	maxAnswers = 100
	maxFile    = 1 << 20
)

// answer is a proposal that passed all checks.
type answer struct {
	Key   string `json:"key"` // hash of the prompt, the model and the hole
	Hole  string `json:"hole"`
	Model string `json:"model"`
	Text  string `json:"text"`
}

// answers are the contents of the proposals file, oldest first. A prompt that has an answer is not sent again.
type answers struct {
	Version int      `json:"version"`
	Answers []answer `json:"answers"`
}

// keyOf returns the hash of everything that an answer depends on.
func keyOf(h *Hole, model string, prompt []message) (string, error) {
	text, err := json.Marshal([]any{1, h.Name, h.File, model, prompt})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// readAnswers reads the proposals of a repository. It returns none if the file does not exist.
func readAnswers(root *os.Root) (*answers, error) {
	out := &answers{Version: 1}
	f, err := root.Open(filepath.FromSlash(File))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d KiB: remove it", File, maxFile>>10)
	}
	if err := json.Unmarshal(text, out); err != nil || out.Version != 1 {
		return nil, fmt.Errorf("%s is not a valid proposals file: remove it, and run fill again", File)
	}
	return out, nil
}

func (a *answers) find(key string) (string, bool) {
	i := slices.IndexFunc(a.Answers, func(x answer) bool { return x.Key == key })
	if i < 0 {
		return "", false
	}
	return a.Answers[i].Text, true
}

// add adds an answer, and removes any earlier answer with the same key. The oldest answers over maxAnswers are dropped.
func (a *answers) add(x answer) {
	a.Answers = slices.DeleteFunc(a.Answers, func(y answer) bool { return y.Key == x.Key })
	a.Answers = append(a.Answers, x)
	a.Answers = a.Answers[max(0, len(a.Answers)-maxAnswers):]
}

// write replaces the file atomically.
func (a *answers) write(root *os.Root) error {
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.FromSlash(File)
	if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := root.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return root.Rename(path+".new", path)
}
