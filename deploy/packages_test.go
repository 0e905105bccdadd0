//go:build e2e

package deploy

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
)

// exposure is the maximum exposure of the unit according to systemd, out of 100.
const exposure = "20"

func TestE2EPackages(t *testing.T) {
	contents := contentsOfPackages(t)
	t.Run("Debian", func(t *testing.T) { debianPackage(t, contents) })
	t.Run("RPM", func(t *testing.T) { rpmPackage(t, contents) })
	t.Run("release", func(t *testing.T) { release(t, contents) })
}

// debianPackage installs, starts as its user, upgrades, removes and purges the package, with Debian's own dpkg in a
// directory.
func debianPackage(t *testing.T, contents string) {
	first, second := packages(t, contents, "deb")
	root := debianRoot(t)
	dpkg := func(args ...string) {
		t.Helper()
		run(t, "", "dpkg", append([]string{"--root=" + root, "--force-script-chrootless", "--force-depends", "--force-not-root"}, args...)...)
	}
	within := func(path string) string { return filepath.Join(root, path) }
	exists := func(path string) bool {
		_, err := os.Stat(within(path))
		return err == nil
	}
	dpkg("--install", first)
	unit, config := "/usr/lib/systemd/system/rewardwatch.service", "/etc/rewardwatch/rewardwatch.yml"
	run(t, "", "systemd-analyze", "security", "--offline=true", "--threshold="+exposure, within(unit))
	run(t, "", within("/usr/bin/rewardwatch"), "validate", within(config))

	if got := run(t, "", "dpkg-query", "--admindir="+within("/var/lib/dpkg"), "--show", "--showformat=${Depends}", "rewardwatch"); strings.Contains(read(t, within(unit)), "ExecReload=/bin/kill") && !strings.Contains(got, "procps") {
		t.Errorf("a minimal system has no kill to reload with: the package depends on %s", got)
	}
	text := read(t, within(config))
	if lines := regexp.MustCompile(`(?m)^[^#\n].*\n`).FindAllString(text, -1); len(lines) != 3 {
		t.Errorf("the configuration has %d lines:\n%s", len(lines), text)
	}
	at := "127.0.0.1:" + deploytest.FreePorts(t, 1)[0]
	edited := strings.NewReplacer("/var/log", within("/var/log"), "http: {", "http: {listen: "+strconv.Quote(at)+", ").Replace(text)
	if err := os.WriteFile(within(config), []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	starts(t, root, read(t, within(unit)), at)
	if !exists("/var/log/rewardwatch/audit.log") {
		t.Error("there is no audit log")
	}

	dpkg("--install", second)
	if got := read(t, within(config)); got != edited {
		t.Errorf("the upgrade has changed the configuration:\n%s", got)
	}
	if got := run(t, "", "dpkg-query", "--admindir="+within("/var/lib/dpkg"), "--show", "--showformat=${Version}", "rewardwatch"); got != "2.0.0" {
		t.Errorf("version %s is installed", got)
	}
	starts(t, root, read(t, within(unit)), at)

	dpkg("--remove", "rewardwatch")
	if exists("/usr/bin/rewardwatch") || exists(unit) || !exists(config) || !exists("/var/lib/rewardwatch/data") {
		t.Error("removing leaves the program, or takes the configuration or the state")
	}
	dpkg("--purge", "rewardwatch")
	if exists(config) {
		t.Error("purging leaves the configuration")
	}
}

// rpmPackage installs, upgrades and removes the package with rpm in a directory, where its scripts have no shell: they
// are those of the Debian package.
func rpmPackage(t *testing.T, contents string) {
	first, second := packages(t, contents, "rpm")
	root := t.TempDir()
	rpm := func(args ...string) string {
		t.Helper()
		return run(t, "", "rpm", append([]string{"--root", root}, args...)...)
	}
	unit, config := filepath.Join(root, "/usr/lib/systemd/system/rewardwatch.service"), filepath.Join(root, "/etc/rewardwatch/rewardwatch.yml")
	rpm("--install", "--nodeps", "--noscripts", first)
	rpm("--verify", "--nodeps", "--noscripts", "rewardwatch")
	run(t, "", "systemd-analyze", "security", "--offline=true", "--threshold="+exposure, unit)
	binary := filepath.Join(root, "/usr/bin/rewardwatch")
	run(t, "", binary, "validate", config)
	if got, want := run(t, "", "rpm", "-qp", "--scripts", first), read(t, "package/postinstall.sh"); !strings.Contains(got, strings.TrimSpace(want)) {
		t.Errorf("its scripts are\n%s", got)
	}
	_, listed, _ := strings.Cut(run(t, "", binary, "--help"), "Available Commands:")
	verbs := regexp.MustCompile(`(?m)^  ([a-z]+) `).FindAllStringSubmatch(listed, -1)
	for _, verb := range verbs {
		page := filepath.Join(root, "/usr/share/man/man1/rewardwatch-"+verb[1]+".1.gz")
		if verb[1] != "help" && !strings.Contains(run(t, "", "zcat", page), "\n.SH OPTIONS\n") {
			t.Errorf("%s has no page", verb[1])
		}
	}
	if len(verbs) < 20 {
		t.Errorf("%d commands", len(verbs))
	}
	licenses := read(t, filepath.Join(root, "/usr/share/doc/rewardwatch/third-party-licenses.txt"))
	for _, module := range []string{"github.com/segmentio/kafka-go", "gonum.org/v1/gonum", "github.com/rs/zerolog", "htmx.LICENSE"} {
		if !strings.Contains(licenses, "==== "+module) {
			t.Errorf("there is no license of %s", module)
		}
	}

	edited := read(t, config) + "# edited\n"
	if err := os.WriteFile(config, []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	rpm("--upgrade", "--nodeps", "--noscripts", second)
	if got := rpm("--query", "--queryformat", "%{VERSION}", "rewardwatch"); got != "2.0.0" || read(t, config) != edited {
		t.Errorf("after the upgrade to %s, the configuration is\n%s", got, read(t, config))
	}
	rpm("--erase", "--nodeps", "--noscripts", "rewardwatch")
	if _, err := os.Stat(binary); err == nil || read(t, config+".rpmsave") != edited {
		t.Error("removing leaves the program, or loses the configuration")
	}
}

// contentsOfPackages returns a directory with the files that nfpm.yaml names.
func contentsOfPackages(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, "..", "go", "build", "-o", dir+"/bin/rewardwatch", "./cmd/rewardwatch")
	run(t, "", "package/contents.sh", dir+"/bin")
	if err := os.CopyFS(dir+"/deploy/package", os.DirFS("package")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"LICENSE", "NOTICE", "CHANGELOG.md"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(read(t, "../"+file)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// packages builds the package of one kind in two versions.
func packages(t *testing.T, dir, kind string) (first, second string) {
	t.Helper()
	nfpm, err := filepath.Abs("../.cache/bin/nfpm-" + regexp.MustCompile(`NFPM_VERSION := (\S+)`).FindStringSubmatch(read(t, "../Makefile"))[1])
	if err != nil {
		t.Fatal(err)
	}
	var files [2]string
	for i, version := range []string{"1.0.0", "2.0.0"} {
		files[i] = dir + "/" + version + "." + kind
		run(t, dir, "env", "GOARCH="+runtime.GOARCH, "VERSION="+version,
			nfpm, "package", "--config", "deploy/package/nfpm.yaml", "--packager", kind, "--target", files[i])
	}
	return files[0], files[1]
}

// debianRoot returns a directory in which dpkg can install.
func debianRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(filepath.Dir(root), 0o755); err != nil { // for the user of the service
		t.Fatal(err)
	}
	for _, dir := range []string{"/var/lib/dpkg/info", "/var/lib/dpkg/updates", "/var/lib/dpkg/triggers", "/var/log", "/etc"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range map[string]string{
		"/var/lib/dpkg/status": "", "/etc/passwd": "", "/etc/group": "", "/etc/shadow": "", "/etc/gshadow": "", "/etc/login.defs": read(t, "/etc/login.defs"),
	} {
		if err := os.WriteFile(root+file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// starts runs the unit's command, as its user if the test is allowed to, until it is healthy.
func starts(t *testing.T, root, unit, at string) {
	t.Helper()
	user := regexp.MustCompile(`(?m)^rewardwatch:[^:]*:(\d+):(\d+):.*:/usr/sbin/nologin$`).FindStringSubmatch(read(t, root+"/etc/passwd"))
	if user == nil {
		t.Fatalf("there is no user:\n%s", read(t, root+"/etc/passwd"))
	}
	uid, _ := strconv.Atoi(user[1]) // digits
	gid, _ := strconv.Atoi(user[2])
	command := strings.Fields(regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(unit)[1])
	for i, word := range command {
		if strings.HasPrefix(word, "/") {
			command[i] = root + word
		}
	}
	var log strings.Builder
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &log, &log, root+"/var/lib/rewardwatch"
	for _, dir := range []string{cmd.Dir, root + "/var/log/rewardwatch"} { // as created by systemd
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		if os.Getuid() == 0 {
			if err := os.Chown(dir, uid, gid); err != nil {
				t.Fatal(err)
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	healthy := false
	for !healthy && len(ended) == 0 {
		w, err := http.Get("http://" + at + "/-/healthy")
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		body, err := io.ReadAll(w.Body)
		healthy = err == nil && w.StatusCode == http.StatusOK && string(body) == "healthy\n"
		_ = w.Body.Close() // already read
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	if err := <-ended; err != nil || !healthy {
		t.Fatalf("healthy %v, %v:\n%s", healthy, err, log.String())
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// run returns the output of a command.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
