package ingest

import (
	"testing"

	"github.com/goccy/go-yaml"
)

func TestByteSize(t *testing.T) {
	for text, want := range map[string]ByteSize{
		"0": 0, "1048576": MiB, "1GiB": GiB, "64KiB": 64 * KiB, "64 KiB": 64 * KiB, "10MB": 10e6, "10mb": 10e6, "5kB": 5e3,
		"1.5GiB": GiB + 512*MiB, "2TiB": 2 * TiB, "3TB": 3e12, "7B": 7, " 1MiB ": MiB, "4GB": 4e9, "8388607TiB": 8388607 * TiB,
	} {
		var s ByteSize
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q: %d (%v), want %d", text, s, err, want)
		}
		var again ByteSize
		if err := again.UnmarshalText([]byte(s.String())); err != nil || again != s {
			t.Errorf("%q: written as %q, which reads as %d (%v)", text, s, again, err)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1PiB", "1 2", "1e3", "0x10", "1.2.3", "8388608TiB", "99999999999999999999", "1G"} {
		s := ByteSize(-5)
		if err := s.UnmarshalText([]byte(text)); err == nil || s != -5 {
			t.Errorf("%q: read as %d, want an error and nothing set", text, s)
		}
	}
}

func TestDeadLetterConfigFromYAML(t *testing.T) {
	for text, want := range map[string]DeadLetterConfig{
		"{directory: /d, max_size: 1GiB}":  {Directory: "/d", MaxSize: GiB},
		"{max_size: 2097152, topic: dead}": {Directory: DefaultDeadLetterConfig().Directory, MaxSize: 2 * MiB, Topic: "dead"},
		"{}":                               DefaultDeadLetterConfig(),
	} {
		c := DefaultDeadLetterConfig()
		if err := yaml.UnmarshalWithOptions([]byte(text), &c, yaml.Strict()); err != nil || c != want {
			t.Errorf("%s: %+v (%v), want %+v", text, c, err, want)
		}
	}
}

func TestDeadLetterConfigCheck(t *testing.T) {
	for _, c := range []struct {
		config DeadLetterConfig
		want   []string
	}{
		{DefaultDeadLetterConfig(), nil},
		{DeadLetterConfig{Topic: "dead"}, nil},
		{DeadLetterConfig{}, []string{"directory", "max_size"}},
		{DeadLetterConfig{Directory: "d", MaxSize: MiB - 1}, []string{"max_size"}},
	} {
		var paths []string
		c.config.Check(func(path, _ string) { paths = append(paths, path) })
		if len(paths) != len(c.want) || len(paths) > 0 && paths[0] != c.want[0] {
			t.Errorf("%+v: faults at %q, want %q", c.config, paths, c.want)
		}
	}
}
