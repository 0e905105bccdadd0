//go:build e2e

package deploy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
)

// imageUser is the user of the image, which has no name outside of it.
const imageUser = 65532

// The image is identical wherever and whenever it is built, contains nothing unnecessary, and runs with a read-only
// root.
func TestE2EImage(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("entering the image and mounting its root need root")
	}
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.tar"), filepath.Join(dir, "second.tar")
	buildImage(t, "..", first, "022")
	buildImage(t, copyOfSources(t), second, "077")
	image := readImage(t, first)[0]
	if again := readImage(t, second)[0]; again.digest != image.digest {
		t.Errorf("the second build has the digest %s, the first %s", again.digest, image.digest)
	}
	imageIsConfigured(t, image)
	root := filepath.Join(dir, "root")
	files := image.unpack(t, root)
	if want := []string{
		"data/", "etc/", "etc/group", "etc/passwd", "etc/ssl/", "etc/ssl/certs/", "etc/ssl/certs/ca-certificates.crt", "usr/", "usr/bin/",
		"usr/bin/rewardwatch", "usr/share/", "usr/share/doc/", "usr/share/doc/rewardwatch/", "usr/share/doc/rewardwatch/NOTICE",
		"usr/share/doc/rewardwatch/copyright", "usr/share/doc/rewardwatch/third-party-licenses.txt", "usr/share/zoneinfo.zip",
	}; !slices.Equal(files, want) {
		t.Errorf("the image has the files %q", files)
	}
	if !x509.NewCertPool().AppendCertsFromPEM([]byte(read(t, root+"/etc/ssl/certs/ca-certificates.crt"))) {
		t.Error("there is no certificate authority")
	}
	imageRuns(t, root, image)
}

// An image for several architectures contains the binary for each.
func TestE2EImageOfArchitectures(t *testing.T) {
	dir := t.TempDir()
	run(t, "", "../.cache/venv-pipeline/bin/hadolint", "image/Dockerfile")
	run(t, "", "shellcheck", "image/build.sh")
	for file, text := range map[string]string{
		"data/.keep": "", "root/etc/passwd": "", "linux/amd64/rewardwatch": "for amd64", "linux/arm64/rewardwatch": "for arm64",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, "context", file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "context", file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	buildah := func(args ...string) {
		run(t, "", "buildah", append([]string{"--storage-driver", "vfs", "--root", dir + "/root", "--runroot", dir + "/run"}, args...)...)
	}
	buildah("build", "--isolation", "chroot", "--format", "oci", "--platform", "linux/amd64,linux/arm64", "--manifest", "rewardwatch",
		"--file", "image/Dockerfile", dir+"/context")
	buildah("manifest", "push", "--all", "rewardwatch", "oci-archive:"+dir+"/image.tar")
	images := readImage(t, dir+"/image.tar")
	if len(images) != 2 {
		t.Fatalf("there are %d images", len(images))
	}
	for _, image := range images {
		root := filepath.Join(dir, image.Architecture)
		image.unpack(t, root)
		if got := read(t, root+"/usr/bin/rewardwatch"); got != "for "+image.Architecture {
			t.Errorf("the image of %s has the binary %q", image.Architecture, got)
		}
	}
}

// buildImage runs the script for the architecture of this machine with a mask of file modes.
func buildImage(t *testing.T, sources, archive, mask string) {
	t.Helper()
	run(t, sources, "env", "ARCHS="+runtime.GOARCH, "VERSION=1.2.3", "REVISION=f00d", "SOURCE_DATE_EPOCH=1700000000", "GOFLAGS=-buildvcs=false",
		"bash", "-c", "umask "+mask+" && exec deploy/image/build.sh "+archive)
}

// copyOfSources copies the files of the repository, which changes their times and their directory.
func copyOfSources(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, "..", "bash", "-c", "git ls-files -z --cached --others --exclude-standard | xargs -0 -I FILE find FILE -maxdepth 0 -print0 | "+
		"xargs -0 cp --parents --no-dereference --target-directory="+dir)
	return dir
}

// ociImage is an image for one architecture in an archive.
type ociImage struct {
	digest       string            // of the index of the archive
	layers       [][]byte          // compressed
	Architecture string            `json:"architecture"`
	Created      time.Time         `json:"created"`
	Config       map[string]any    `json:"config"`
	History      []json.RawMessage `json:"history"`
}

// readImage returns the images for all architectures in an archive with the OCI layout.
func readImage(t *testing.T, archive string) []ociImage {
	t.Helper()
	type descriptor struct {
		MediaType string
		Digest    string
	}
	blobs := map[string][]byte{}
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for r := tar.NewReader(file); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if blobs[strings.TrimPrefix(h.Name, "blobs/sha256/")], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	decode := func(digest string, into any) {
		t.Helper()
		if err := json.Unmarshal(blobs[strings.TrimPrefix(digest, "sha256:")], into); err != nil {
			t.Fatalf("%s: %v", digest, err)
		}
	}
	var index, manifests struct{ Manifests []descriptor }
	decode("index.json", &index)
	decode(index.Manifests[0].Digest, &manifests)
	var images []ociImage
	for _, m := range manifests.Manifests {
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		decode(m.Digest, &manifest)
		image := ociImage{digest: index.Manifests[0].Digest}
		decode(manifest.Config.Digest, &image)
		for _, l := range manifest.Layers {
			image.layers = append(image.layers, blobs[strings.TrimPrefix(l.Digest, "sha256:")])
		}
		images = append(images, image)
	}
	return images
}

// unpack writes the layers to a directory, and returns the names of the files. The user of the image may only change
// data.
func (i ociImage) unpack(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	for _, layer := range i.layers {
		z, err := gzip.NewReader(bytes.NewReader(layer))
		if err != nil {
			t.Fatal(err)
		}
		for r := tar.NewReader(z); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			unpackFile(t, root, h, r)
			names = append(names, h.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func unpackFile(t *testing.T, root string, h *tar.Header, content io.Reader) {
	t.Helper()
	owner := 0
	if strings.HasPrefix(h.Name, "data/") {
		owner = imageUser
	}
	mode := h.FileInfo().Mode()
	if h.Uid != owner || h.Gid != owner || mode.Perm()&0o022 != 0 || !mode.IsDir() && !mode.IsRegular() || mode&(os.ModeSetuid|os.ModeSetgid) != 0 {
		t.Errorf("%s belongs to %d:%d and has the mode %s", h.Name, h.Uid, h.Gid, mode)
	}
	path := filepath.Join(root, h.Name)
	if mode.IsDir() {
		if err := os.MkdirAll(path, mode.Perm()); err != nil {
			t.Fatal(err)
		}
	} else {
		text, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, mode.Perm()); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 {
		if err := os.Chown(path, h.Uid, h.Gid); err != nil {
			t.Fatal(err)
		}
	}
}

// imageIsConfigured checks the settings of the image for runtimes.
func imageIsConfigured(t *testing.T, image ociImage) {
	t.Helper()
	const labels = "org.opencontainers.image."
	want := fmt.Sprint(map[string]any{
		"User": fmt.Sprintf("%d:%[1]d", imageUser), "WorkingDir": "/", "Env": []any{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "ZONEINFO=/usr/share/zoneinfo.zip",
		},
		"Entrypoint": []any{"/usr/bin/rewardwatch"}, "Cmd": []any{"run", "--config", "/etc/rewardwatch/rewardwatch.yml"},
		"ExposedPorts": map[string]any{"9464/tcp": map[string]any{}}, "Volumes": map[string]any{"/data": map[string]any{}},
		"Labels": map[string]any{
			labels + "title": "Rewardwatch", labels + "description": "Monitors deployed reinforcement-learning agents for drift", labels + "licenses": "Apache-2.0",
			labels + "source":        "https://github.com/rewardwatch/rewardwatch",
			labels + "documentation": "https://github.com/rewardwatch/rewardwatch/blob/main/docs/operating.md",
			labels + "version":       "1.2.3", labels + "revision": "f00d", labels + "created": "2023-11-14T22:13:20Z",
		},
	})
	if got := fmt.Sprint(image.Config); got != want {
		t.Errorf("the configuration is\n%s, want\n%s", got, want)
	}
	if image.Architecture != runtime.GOARCH || image.Created.Unix() != 1700000000 {
		t.Errorf("the image is of %s, made at %s", image.Architecture, image.Created)
	}
}

// imageConfig is a configuration that needs no server, but a time zone.
const imageConfig = `ingest: {log: {directory: data/log}}
retrain:
  recipes: /etc/rewardwatch/recipes
  targets: [{name: trainer, webhook: "https://trainer.example/retrain", secret_file: /etc/rewardwatch/trainer.secret}]
  triggers: [{on: schedule, policies: [checkout], cron: "CRON_TZ=Europe/Berlin 0 3 * * *", recipe: checkout-ranker, target: trainer}]
http: {listen: "127.0.0.1:PORT"}
`

// imageRuns starts the image like a runtime: as its user, with a read-only root and a volume for data.
func imageRuns(t *testing.T, root string, image ociImage) {
	t.Helper()
	port, volume := deploytest.FreePorts(t, 1)[0], filepath.Join(t.TempDir(), "data")
	for _, dir := range []string{"proc", "dev", "etc/rewardwatch"} { // runtimes create their mount points
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range map[string]string{
		"rewardwatch.yml": strings.ReplaceAll(imageConfig, "PORT", port), "trainer.secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
	} {
		path := filepath.Join(root, "etc/rewardwatch", file)
		if err := os.WriteFile(path, []byte(text), 0o440); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, 0, imageUser); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(root+"/etc/rewardwatch/recipes", os.DirFS("recipes")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(volume, 0o750), os.Chown(volume, imageUser, imageUser)); err != nil {
		t.Fatal(err)
	}
	const mounts = `set -e
mount --bind "$1" "$1"
mount --bind "$2" "$1/data"
mount --rbind /proc "$1/proc"
mount --rbind /dev "$1/dev"
mount -o remount,ro,bind "$1"
exec chroot --userspec="$3" --groups= "$1" "${@:4}"`
	user := image.Config["User"].(string)
	var log strings.Builder
	args := []string{"--mount", "bash", "-c", mounts, "bash", root, volume, user}
	for _, part := range []string{"Entrypoint", "Cmd"} {
		for _, word := range image.Config[part].([]any) {
			args = append(args, word.(string))
		}
	}
	cmd := exec.CommandContext(t.Context(), "unshare", args...)
	for _, v := range image.Config["Env"].([]any) {
		cmd.Env = append(cmd.Env, v.(string))
	}
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ready := false
	for deadline := time.Now().Add(5 * time.Minute); !ready && len(ended) == 0 && time.Now().Before(deadline); {
		w, err := http.Get("http://127.0.0.1:" + port + "/-/ready")
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		ready = w.StatusCode == http.StatusOK
		_ = w.Body.Close() // it is not read
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	if err := <-ended; err != nil || !ready {
		t.Fatalf("ready %v, %v:\n%s", ready, err, log.String())
	}
	if state, err := filepath.Glob(volume + "/*/*"); err != nil || len(state) == 0 {
		t.Errorf("there is no state in the volume: %v", err)
	}
}
