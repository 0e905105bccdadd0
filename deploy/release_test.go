//go:build e2e

package deploy

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// release makes a release of the packages, the chart and the Python package, like `make release`, which adds the image.
func release(t *testing.T, contents string) {
	makefile := read(t, "../Makefile")
	tool := func(name, version string) string {
		t.Helper()
		path, err := filepath.Abs("../.cache/bin/" + name + "-" + regexp.MustCompile(version + ` := (\S+)`).FindStringSubmatch(makefile)[1])
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	dir, binary := t.TempDir(), contents+"/bin/rewardwatch"
	for _, kind := range []string{"deb", "rpm"} {
		run(t, contents, "env", "GOARCH="+runtime.GOARCH, "VERSION=1.0.0",
			tool("nfpm", "NFPM_VERSION"), "package", "--config", "deploy/package/nfpm.yaml", "--packager", kind, "--target", dir+"/")
	}
	run(t, "", tool("helm", "HELM_VERSION"), "package", "helm/rewardwatch", "--destination", dir)
	run(t, "", "package/python.sh", "../.cache/venv/bin/python", dir)
	gpg := keyring(t)
	add := func(key string) string {
		return run(t, "", "env", gpg, "SIGNING_KEY="+key, "OLDEST_GO="+runtime.Version(), "VERSION=1.0.0", "CYCLONEDX="+tool("cyclonedx-gomod", "CYCLONEDX_VERSION"), "package/release.sh", dir, binary)
	}
	key := regexp.MustCompile(`(?m)^fpr:.*:([0-9A-F]{40}):$`).FindStringSubmatch(run(t, "", "env", gpg, "gpg", "--batch", "--with-colons", "--fingerprint"))
	if said := add(signer); key == nil || !strings.Contains(said, "signed by the key "+key[1]) {
		t.Errorf("the release says %q, want the fingerprint %q", said, key)
	}
	run(t, dir, "env", gpg, "gpg", "--batch", "--verify", "SHA256SUMS.asc", "SHA256SUMS")
	sums := read(t, dir+"/SHA256SUMS")
	if want := checksums(t, dir); sums != want {
		t.Errorf("the checksums are\n%s, want\n%s", sums, want)
	}
	for _, kind := range []string{`\.deb`, `\.rpm`, `\.tgz`, `\.whl`, `\.tar\.gz`, `\.cdx\.json`} {
		if len(regexp.MustCompile(`(?m)^[0-9a-f]{64}  rewardwatch\S*`+kind+`$`).FindAllString(sums, -1)) != 1 {
			t.Errorf("not one file %s in\n%s", kind, sums)
		}
	}
	run(t, dir, "sha256sum", "--check", "--strict", "SHA256SUMS")
	verifiesDownload(t, dir, gpg)
	billOfMaterials(t, fmt.Sprintf("%s/rewardwatch_1.0.0_linux_%s.cdx.json", dir, runtime.GOARCH), binary)
	add("")
	if _, err := os.Stat(dir + "/SHA256SUMS.asc"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a key, the old signature: %v", err)
	}
	if again := read(t, dir+"/SHA256SUMS"); again != sums {
		t.Errorf("once more, the checksums are\n%s, before\n%s", again, sums)
	}
	old := exec.CommandContext(t.Context(), "package/release.sh", t.TempDir(), binary)
	old.Env = append(os.Environ(), "OLDEST_GO=go1.999.1", "VERSION=1.0.0")
	if said, err := old.CombinedOutput(); err == nil || !strings.Contains(string(said), "which is older than go1.999.1") {
		t.Errorf("built with an older Go: %v\n%s", err, said)
	}
}

// verifiesDownload checks one file of a release with the commands of the page, which detect a file that differs from
// the released one.
func verifiesDownload(t *testing.T, dir, gpg string) {
	t.Helper()
	commands := regexp.MustCompile(`(?m)^gpg --verify .*\nsha256sum .*$`).FindString(read(t, "../docs/operating.md"))
	if commands == "" {
		t.Fatal("docs/operating.md does not say how to verify a download")
	}
	files, err := filepath.Glob(dir + "/*.deb")
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	download := t.TempDir()
	for _, file := range []string{files[0], dir + "/SHA256SUMS", dir + "/SHA256SUMS.asc"} {
		run(t, "", "cp", file, download)
	}
	verify := func() error {
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", commands)
		cmd.Dir, cmd.Env = download, append(os.Environ(), gpg)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	}
	if err := verify(); err != nil {
		t.Error(err)
	}
	for _, file := range []string{filepath.Base(files[0]), "SHA256SUMS"} {
		whole := read(t, filepath.Join(download, file))
		for _, added := range []string{"\n", ""} {
			if err := os.WriteFile(filepath.Join(download, file), []byte(whole+added), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := verify(); (err != nil) != (added != "") {
				t.Errorf("with %q added to %s: %v", added, file, err)
			}
		}
	}
}

// signer is the owner of the key that signs the test release.
const signer = "release@rewardwatch.example"

// keyring creates a key and returns the setting with which gpg finds it.
func keyring(t *testing.T) string {
	t.Helper()
	home := "GNUPGHOME=" + t.TempDir()
	t.Cleanup(func() { // the agent started by gpg
		kill := exec.CommandContext(context.WithoutCancel(t.Context()), "gpgconf", "--kill", "all")
		kill.Env = append(os.Environ(), home)
		if out, err := kill.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	run(t, "", "env", home, "gpg", "--batch", "--quiet", "--passphrase", "", "--quick-gen-key", signer, "ed25519", "sign", "never")
	return home
}

// checksums returns the checksums of all files in a directory except SHA256SUMS and its signature, in the format of
// sha256sum.
func checksums(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir) // sorted
	if err != nil {
		t.Fatal(err)
	}
	var sums strings.Builder
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), "SHA256SUMS") {
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(read(t, filepath.Join(dir, f.Name())))), f.Name())
		}
	}
	return sums.String()
}

// billOfMaterials checks that a bill of materials lists every linked module with its version.
func billOfMaterials(t *testing.T, file, binary string) {
	t.Helper()
	var bill struct {
		BOMFormat string
		Metadata  struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal([]byte(read(t, file)), &bill); err != nil {
		t.Fatal(err)
	}
	if m := bill.Metadata.Component; bill.BOMFormat != "CycloneDX" || m.Name != "github.com/rewardwatch/rewardwatch" || m.Version != "v1.0.0" {
		t.Errorf("a bill in the format %s of %s %s", bill.BOMFormat, m.Name, m.Version)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, c := range bill.Components {
		if c.Name != "std" {
			got = append(got, c.Name+" "+c.Version)
		}
	}
	for _, d := range info.Deps {
		want = append(want, d.Path+" "+d.Version)
	}
	slices.Sort(got)
	slices.Sort(want)
	if len(want) < 20 || !slices.Equal(got, want) {
		t.Errorf("%d modules are listed, and %d are linked:\n%v\n%v", len(got), len(want), got, want)
	}
}

// The commands of `make release` create every kind of file in one directory before the checksums are created.
func TestE2EReleaseMakesEveryKind(t *testing.T) {
	said := run(t, "..", "env", "-u", "MAKEFLAGS", "-u", "MAKELEVEL", "make", "--dry-run", "--always-make", "release", "VERSION=1.2.3")
	from := 0
	for _, want := range []string{
		"rm -rf bin/release/1.2.3\n", "app.version=v1.2.3'", "for packager in deb rpm", "--target bin/release/1.2.3/", "deploy/image/build.sh bin/release/1.2.3/rewardwatch-image.tar",
		"package --version 1.2.3 --app-version 1.2.3 deploy/helm/rewardwatch --destination bin/release/1.2.3/", "deploy/package/python.sh ",
		"deploy/package/release.sh bin/release/1.2.3 bin/image/linux/amd64/rewardwatch bin/image/linux/arm64/rewardwatch",
	} {
		at := strings.Index(said[from:], want)
		if at < 0 {
			t.Fatalf("no %q where it should stand in\n%s", want, said)
		}
		from += at
	}
}
