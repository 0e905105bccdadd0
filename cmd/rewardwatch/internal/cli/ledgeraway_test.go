package cli

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// fileOfLedger is a ledger on SQLite that is damaged while a service uses it.
type fileOfLedger string

// copied returns the current content of the ledger.
func (f fileOfLedger) copied(t *testing.T) []byte {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.db")
	db, err := sql.Open("sqlite", string(f))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `VACUUM INTO '`+to+`'`)
	content, readErr := os.ReadFile(to)
	if err := errors.Join(err, readErr, db.Close()); err != nil {
		t.Fatal(err)
	}
	return content
}

// garble overwrites the file that the service has open.
func (f fileOfLedger) garble(t *testing.T) {
	t.Helper()
	for _, file := range []string{string(f), string(f) + "-wal"} {
		info, err := os.Stat(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(file, bytes.Repeat([]byte("garbage!"), int(info.Size())/8), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// putBack replaces it with a copy, as described in the runbook.
func (f fileOfLedger) putBack(t *testing.T, content []byte) {
	t.Helper()
	for _, file := range []string{string(f), string(f) + "-wal", string(f) + "-shm"} {
		if err := os.Rename(file, file+".damaged"); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	ready := string(f) + ".ready"
	if err := errors.Join(os.WriteFile(ready, content, 0o600), os.Rename(ready, string(f))); err != nil {
		t.Fatal(err)
	}
}

// trainer counts the orders that it receives, by ID.
type trainer struct {
	mu  sync.Mutex
	ids []string
}

func (tr *trainer) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.ids = append(tr.ids, r.Header.Get("webhook-id"))
}

func (tr *trainer) orders() []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return slices.Clone(tr.ids)
}

// retrainingConfig returns a guarded configuration that orders retrainings from a trainer, and its ledger.
func retrainingConfig(t *testing.T, broker, webhook string) (config string, ledger fileOfLedger) {
	t.Helper()
	config = guardedConfig(t, broker)
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	ledger = fileOfLedger(filepath.Join(dir, "ledger", "ledger.db"))
	added := fmt.Sprintf("retrain:\n  ledger: {sqlite: %q}\n  recipes: ../config/testdata/recipes\n  triggers: [{on: incident, recipe: ranker, target: t}]\n"+
		"  targets: [{name: t, webhook: %q, secret_file: %q, allow_private: true}]\n", string(ledger), webhook, secret)
	if err := errors.Join(os.WriteFile(secret, []byte("whsec_"+strings.Repeat("AAAA", 8)), 0o600), os.WriteFile(config, append(text, added...), 0o600)); err != nil {
		t.Fatal(err)
	}
	return config, ledger
}

// fetch returns the status and the text of a response.
func (p *process) fetch(t *testing.T, path string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.address+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return answerTo(t, r)
}

// requests returns the IDs of the requests in the ledger; false while it is unavailable.
func (p *process) requests() (ids []string, known bool) {
	var a struct {
		Requests []ledger.Request `json:"retrain_requests"`
	}
	known = p.get("/api/v1/retrain-requests", &a)
	for _, q := range a.Requests {
		ids = append(ids, q.ID)
	}
	return ids, known
}

// If the ledger is damaged while the service is running, the service still judges and reports drift. Once a copy is put
// back, an incident that opened in the meantime has ordered one retraining, and a request of an incident that was
// accepted in the meantime is withdrawn.
func TestServiceGoesOnWithoutItsLedger(t *testing.T) {
	t.Parallel()
	tr := &trainer{}
	served := httptest.NewServer(tr)
	defer served.Close()
	broker := startBroker(t, 1)
	config, ledger := retrainingConfig(t, broker, served.URL)
	f := newFleet(21, 5)
	f.episodes(700)
	f.produce(t, broker, 0, len(f.lines))
	p := startService(t, config)
	testkit.Eventually(t, "all units", func() bool { return p.units() == int64(f.ended) })
	whole := ledger.copied(t)
	ledger.garble(t)
	suspended := func(is string) func() bool {
		return func() bool {
			code, text := p.fetch(t, "/metrics")
			return code == http.StatusOK && strings.Contains(text, "\nrewardwatch_retrain_ledger_suspended "+is+"\n")
		}
	}
	testkit.Eventually(t, "the suspension", suspended("1"))

	at := len(f.lines)
	f.mean = -1.4
	f.episodes(100)
	f.produce(t, broker, at, len(f.lines))
	testkit.Eventually(t, "all units without the ledger", func() bool { return p.units() == int64(f.ended) })
	if opened := p.incidents(); len(opened) != 1 || opened[0].State != "open" || len(p.alarms()) == 0 {
		t.Fatalf("incidents %+v", opened)
	}
	if code, text := p.fetch(t, "/-/ready"); code != http.StatusOK || !strings.Contains(text, "its file is damaged") {
		t.Errorf("ready: %d %s", code, text)
	}
	if code, text := p.fetch(t, "/api/v1/retrain-requests"); code != http.StatusServiceUnavailable || !strings.Contains(text, "its file is damaged") {
		t.Errorf("requests: %d %s", code, text)
	}
	if code, text := p.fetch(t, "/metrics"); code != http.StatusOK || !strings.Contains(text, "\nrewardwatch_alarms{") || strings.Contains(text, "rewardwatch_retrain_requests{") {
		t.Errorf("metrics: %d", code)
	}

	if code, text := p.order(t, "policies/ranker/forget", `{"by":"ann","why":"a test"}`); code != http.StatusServiceUnavailable || !strings.Contains(text, "ledger") {
		t.Errorf("forgetting a policy whose orders cannot be withdrawn: %d %s", code, text)
	}

	ledger.putBack(t, whole)
	testkit.Eventually(t, "the ledger", suspended("0"))
	testkit.Eventually(t, "the order", func() bool { return len(tr.orders()) == 1 })
	p.killMember(t)
	p = startService(t, config)
	testkit.Eventually(t, "the units read again", func() bool { return p.units() == int64(f.ended) })
	if ids, known := p.requests(); !known || !slices.Equal(ids, tr.orders()) {
		t.Errorf("requests %v, orders %v", ids, tr.orders())
	}
	p.interrupt(t)
}

// A person accepts an incident while the ledger is unavailable: its request, which waited for approval, is withdrawn
// afterwards, although the incident has closed. Restarting the service in between changes nothing.
func TestAcceptedWithoutTheLedger(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	for name, restart := range map[string]bool{"it comes back": false, "the service starts anew": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := startBroker(t, 1)
			config, file := retrainingConfig(t, broker, "http://127.0.0.1:1")
			text, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			asking := strings.Replace(string(text), "target: t}", "target: t, approval: true}", 1)
			if err := os.WriteFile(config, []byte(asking), 0o600); err != nil {
				t.Fatal(err)
			}
			f := newFleet(21, 5)
			f.episodes(700)
			f.mean = -1.4
			f.episodes(100)
			f.produce(t, broker, 0, len(f.lines))
			p := startService(t, config)
			var id string
			testkit.Eventually(t, "a request", func() bool {
				ids, _ := p.requests()
				id = strings.Join(ids, "")
				return len(ids) == 1
			})
			whole := file.copied(t)
			file.garble(t)
			testkit.Eventually(t, "the suspension", func() bool {
				_, metrics := p.fetch(t, "/metrics")
				return strings.Contains(metrics, "\nrewardwatch_retrain_ledger_suspended 1\n")
			})
			if code, answer := p.order(t, "retrain-requests/"+id+"/approve", `{"by":"bob","why":"x"}`); code != http.StatusServiceUnavailable || !strings.Contains(answer, "damaged") {
				t.Errorf("an approval gives %d %s", code, answer)
			}
			if code, answer := p.order(t, "incidents/"+p.incidents()[0].ID+"/accept", `{"by":"bob","why":"new prices"}`); code != http.StatusOK {
				t.Fatalf("accept gives %d %s", code, answer)
			}
			if restart {
				p.interrupt(t)
			}
			file.putBack(t, whole)
			if restart {
				p = startService(t, config)
			}
			testkit.Eventually(t, "the withdrawal", func() bool {
				var q ledger.Request
				return p.get("/api/v1/retrain-requests/"+id, &q) && q.State == ledger.StateWithdrawn
			})
			p.interrupt(t)
		})
	}
}
