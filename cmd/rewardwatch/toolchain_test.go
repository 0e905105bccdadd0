package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// toolchain returns the Go that go.mod names.
func toolchain(t *testing.T) string {
	t.Helper()
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`(?m)^toolchain (go\S+)$`).FindSubmatch(mod)
	if name == nil {
		t.Fatal("go.mod names no toolchain")
	}
	return string(name[1])
}

// The standard library of an older Go has known holes, so neither the environment nor an image may choose it.
func TestMakeUsesTheToolchainOfTheModule(t *testing.T) {
	needed := toolchain(t)
	// Instead of go: it says the version that Go would choose, without a download.
	fake := "#!/bin/sh\n[ \"$GOTOOLCHAIN\" = local ] && echo $INSTALLED || echo $CHOSEN\n"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(fake), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, installed, chosen, argument, want string
	}{
		{"older", "go1.26.0", needed, "", needed + "+auto"},
		{"the same", needed, needed, "", "auto"},
		{"newer", "go1.99.3", "go1.99.3", "", "auto"},
		{"as asked", "go1.26.0", needed, "GOTOOLCHAIN=local", "local"},
		{"not to be had", "go1.26.0", "", "", "cannot be fetched. make GOTOOLCHAIN=local takes the installed one"},
	} {
		make := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-f", "Makefile", "--eval", "say-toolchain: ; @echo $$GOTOOLCHAIN", "say-toolchain")
		if c.argument != "" {
			make.Args = append(make.Args, c.argument)
		}
		make.Dir = "../.."
		make.Env = append(os.Environ(), "MAKEFLAGS=", "GOTOOLCHAIN=local", "INSTALLED="+c.installed, "CHOSEN="+c.chosen, "PATH="+dir+":"+os.Getenv("PATH"))
		if said, _ := make.CombinedOutput(); !strings.Contains("\n"+string(said), c.want) || c.chosen != "" && strings.TrimSpace(string(said)) != c.want {
			t.Errorf("%s: %q, want %q", c.name, said, c.want)
		}
	}
}

func TestGeneratedImagesAreBuiltWithTheToolchain(t *testing.T) {
	file, err := os.ReadFile("../../retrain/pipeline/templates/common/pipeline/Dockerfile.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	if want := "FROM golang:" + strings.TrimPrefix(toolchain(t), "go") + "-"; !strings.Contains(string(file), want) {
		t.Errorf("it does not begin %s:\n%s", want, file)
	}
}
