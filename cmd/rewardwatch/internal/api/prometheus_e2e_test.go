//go:build e2e

package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
)

// scrape is what Prometheus says of a target.
type scrape struct{ Health, LastError string }

// The real Prometheus scrapes over TLS with a password, and finds the file valid that the service reads.
func TestE2EPrometheusScrapesOverTLSWithAPassword(t *testing.T) {
	f := newWebFiles(t)
	file := f.write(t, encrypted+"basic_auth_users: {prometheus: '"+hashed(t, "a password")+"'}\n")
	if out, err := exec.CommandContext(t.Context(), "promtool", "check", "web-config", file).CombinedOutput(); err != nil || !strings.Contains(string(out), "SUCCESS") {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	s := listening(t, Config{WebConfigFile: file})
	for _, tt := range []struct{ password, health, why string }{
		{"a password", "up", ""},
		{"b password", "down", "401 Unauthorized"},
	} {
		config := fmt.Sprintf("scrape_configs: [{job_name: rewardwatch, scrape_interval: 1s, scrape_timeout: 1s, scheme: https, tls_config: {ca_file: %q}, "+
			"basic_auth: {username: prometheus, password_file: %q}, static_configs: [{targets: [%q]}]}]", f.File, testkit.WriteFile(t, tt.password+"\n"), s.Addr())
		got := scrapedBy(t, config)
		if got.Health != tt.health || !strings.Contains(got.LastError, tt.why) {
			t.Errorf("%s: %+v", tt.password, got)
		}
	}
}

// scrapedBy runs Prometheus with a configuration until it has scraped its target.
func scrapedBy(t *testing.T, config string) scrape {
	t.Helper()
	at := "127.0.0.1:" + deploytest.FreePorts(t, 1)[0]
	file, log := testkit.WriteFile(t, config), t.TempDir()+"/log"
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "prometheus", "--config.file="+file, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+at)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended already
		_ = cmd.Wait()                       // the signal is its error
		_ = out.Close()                      // it is only read on a failure
	}()
	var found scrape
	testkit.Eventually(t, "a scrape of the service; see "+log, func() bool {
		w, err := get(http.DefaultClient, "http://"+at+"/api/v1/targets")
		var answer struct {
			Data struct{ ActiveTargets []scrape }
		}
		if err != nil || json.Unmarshal([]byte(w.body), &answer) != nil || len(answer.Data.ActiveTargets) == 0 {
			return false
		}
		found = answer.Data.ActiveTargets[0]
		return found.Health != "unknown"
	})
	return found
}
