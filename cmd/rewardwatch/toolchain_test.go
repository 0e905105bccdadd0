package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// toolchain returns the Go version that go.mod names.
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

// The standard library of an older Go has known vulnerabilities, so neither the environment nor an image may choose it.
func TestMakeUsesTheToolchainOfTheModule(t *testing.T) {
	needed := toolchain(t)
	// A fake go command: it prints the version that Go would choose, without a download.
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

// Renovate finds these versions by its expression, and updates them with the toolchain.
func TestGeneratedImagesAreBuiltWithTheToolchain(t *testing.T) {
	text, err := os.ReadFile("../../.github/renovate.json")
	if err != nil {
		t.Fatal(err)
	}
	var renovate struct {
		CustomManagers []struct{ ManagerFilePatterns, MatchStrings []string }
	}
	if err := json.Unmarshal(text, &renovate); err != nil || len(renovate.CustomManagers) != 1 {
		t.Fatalf("%d managers, %v", len(renovate.CustomManagers), err)
	}
	manager := renovate.CustomManagers[0]
	path, version := regexp.MustCompile(strings.Trim(manager.ManagerFilePatterns[0], "/")), regexp.MustCompile(manager.MatchStrings[0])
	list := exec.CommandContext(t.Context(), "git", "ls-files", "*Dockerfile*")
	list.Dir = "../.."
	files, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	images := 0
	for _, name := range strings.Fields(string(files)) {
		file, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(file), "FROM golang:") {
			continue
		}
		images++
		found := version.FindSubmatch(file)
		if !path.MatchString(name) || found == nil || "go"+string(found[1]) != toolchain(t) {
			t.Errorf("%s: its path matches %q: %t, its version %q, want %s", name, path, path.MatchString(name), found, toolchain(t))
		}
	}
	if images != 2 {
		t.Errorf("%d images are built with Go, want the template and the example", images)
	}
}

// Targets that remove files do not fetch anything.
func TestMakeCleanNeedsNoGo(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\necho \"$GOTOOLCHAIN $*\" >>"+dir+"/asked\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	make := exec.CommandContext(t.Context(), "make", "--no-print-directory", "--dry-run", "clean")
	make.Dir, make.Env = "../..", append(os.Environ(), "MAKEFLAGS=", "PATH="+dir+":"+os.Getenv("PATH"))
	said, err := make.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "rm -rf bin") {
		t.Fatalf("%v: %s", err, said)
	}
	if asked, err := os.ReadFile(dir + "/asked"); err == nil {
		t.Errorf("it runs go:\n%s", asked)
	}
}
