// Package secrets keeps files with secrets up to date, using the output of a command, such as a secret manager's
// client, or the value of an environment variable. The keys of the configuration that end in _file name such a file
// like any other.
package secrets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
)

const (
	defaultEvery   = model.Duration(5 * time.Minute)
	defaultTimeout = model.Duration(10 * time.Second)
	minEvery       = model.Duration(time.Second)
	maxTimeout     = model.Duration(time.Minute)

	maxSecret = 64 << 10    // maximum number of bytes of output, the same as for a file with a secret
	grace     = time.Second // time limit for processes that a command leaves behind with its output open
)

// ErrUnavailable means that a secret cannot be fetched or written, for errors.Is.
var ErrUnavailable = errors.New("secret unavailable")

// Secret configures a secret that the service writes to a file, with mode 600, before it reads any secrets. The
// directory must exist, and should be in memory, such as systemd's `RuntimeDirectory`.
type Secret struct {
	File    string         `yaml:"file"`    // file to write, for use in keys that end in `_file`
	Env     string         `yaml:"env"`     // environment variable with the secret (required unless `command` is set)
	Command []string       `yaml:"command"` // program and arguments, run without a shell. Its output is the secret
	Every   model.Duration `yaml:"every"`   // interval at which the command runs again. If it fails, the file is kept
	Timeout model.Duration `yaml:"timeout"` // time limit for the command
}

// UnmarshalYAML reads a secret over its defaults.
func (s *Secret) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Secret
	*s = Secret{Every: defaultEvery, Timeout: defaultTimeout}
	return unmarshal((*plain)(s))
}

// Check reports every value that is out of range.
func Check(all []Secret, report func(path, msg string)) {
	for i, s := range all {
		at := fmt.Sprintf("secrets[%d]", i)
		if s.File == "" {
			report(at+".file", "must not be empty")
		} else if slices.ContainsFunc(all[:i], func(o Secret) bool { return filepath.Clean(o.File) == filepath.Clean(s.File) }) {
			report(at+".file", "is written by another secret")
		}
		if (s.Env == "") == (len(s.Command) == 0) {
			report(at, "must have exactly one of env and command")
		}
		if len(s.Command) > 0 && s.Command[0] == "" {
			report(at+".command[0]", "must name a program")
		}
		if s.Every < minEvery {
			report(at+".every", "must be at least "+minEvery.String())
		}
		if s.Timeout <= 0 || s.Timeout > maxTimeout {
			report(at+".timeout", "must be greater than 0 and at most "+maxTimeout.String())
		}
	}
}

// Write fetches every secret once and writes its file. It fails with ErrUnavailable for the first secret that it cannot
// fetch or write.
func Write(ctx context.Context, all []Secret) error {
	for _, s := range all {
		if err := s.renew(ctx); err != nil {
			return err
		}
	}
	return nil
}

// NewStale returns the metric for the secrets whose last renewal failed.
func NewStale() prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{
		Name: names.MetricStale, Help: "Number of secrets whose last renewal failed and whose old value is still in use.",
	})
}

// Run renews the secrets of commands until ctx ends. Readers of a file never see half a secret. If a command fails, its
// file remains unchanged, and the failure is logged and counted in stale until the command succeeds again.
func Run(ctx context.Context, all []Secret, stale prometheus.Gauge, log zerolog.Logger) {
	var running sync.WaitGroup
	for _, s := range all {
		if len(s.Command) > 0 {
			running.Go(func() { s.run(ctx, stale, log) })
		}
	}
	running.Wait()
}

func (s Secret) run(ctx context.Context, stale prometheus.Gauge, log zerolog.Logger) {
	failed := false
	tick := time.NewTicker(time.Duration(s.Every))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			err := s.renew(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				log.Error().Err(err).Msg("failed to renew a secret, keeping its file")
			}
			switch {
			case err != nil && !failed:
				stale.Inc()
			case err == nil && failed:
				stale.Dec()
			}
			failed = err != nil
		}
	}
}

// renew writes the file if the secret has changed.
func (s Secret) renew(ctx context.Context) error {
	text, err := s.fetch(ctx)
	if err == nil {
		err = write(s.File, text)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnavailable, s.File, err)
	}
	return nil
}

// fetch returns the secret. Its errors do not contain the output of the command, which may be the secret.
func (s Secret) fetch(ctx context.Context) (string, error) {
	if s.Env != "" {
		text := os.Getenv(s.Env)
		if text == "" {
			return "", fmt.Errorf("the environment variable %s is empty", s.Env)
		}
		return text, nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.Timeout))
	defer cancel()
	var out bounded
	cmd := exec.CommandContext(ctx, s.Command[0], s.Command[1:]...) // #nosec G204 -- the owner of the configuration chooses it
	cmd.Stdout, cmd.WaitDelay = &out, grace
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s did not end within %s", s.Command[0], s.Timeout)
	case err != nil:
		return "", fmt.Errorf("run %s: %w", s.Command[0], err)
	case out.full:
		return "", fmt.Errorf("%s wrote more than %d bytes", s.Command[0], maxSecret)
	case strings.TrimSpace(out.text.String()) == "":
		return "", fmt.Errorf("%s wrote nothing", s.Command[0])
	}
	return out.text.String(), nil
}

// bounded keeps the first maxSecret bytes.
type bounded struct {
	text strings.Builder
	full bool
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	keep := min(len(p), maxSecret-b.text.Len())
	b.full = b.full || keep < len(p)
	_, _ = b.text.Write(p[:keep]) // never fails
	return len(p), nil
}

// write replaces a file atomically, or leaves it unchanged.
func write(file, text string) (err error) {
	if old, err := os.ReadFile(file); err == nil && string(old) == text {
		return os.Chmod(file, 0o600)
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*") // with mode 600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary.Name()) // the earlier error is more helpful
		}
	}()
	_, err = temporary.WriteString(text)
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}
