//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// webhookSecret is the key that the service and the receiver share.
const webhookSecret = "whsec_ZW5kLXRvLWVuZC10ZXN0cy1zaGFyZWQtc2VjcmV0LTMyYg=="

// order is the part of a retrain request's body that the receiver needs.
type order struct {
	Type string `json:"type"`
	Data struct {
		ID       string   `json:"id"`
		Incident string   `json:"incident"`
		Policy   string   `json:"policy"`
		Signals  []string `json:"signals"`
		Cause    string   `json:"cause"`
		Versions struct {
			Before struct {
				Env string `json:"env_version"`
			} `json:"before"`
			After struct {
				Env string `json:"env_version"`
			} `json:"after"`
		} `json:"versions"`
		Contract struct {
			Objective string `json:"objective"`
		} `json:"contract"`
		Config struct {
			Run string `json:"run_name"`
		} `json:"config"`
	} `json:"data"`
}

// delivery is a webhook with a signature that the Standard Webhooks library has verified.
type delivery struct {
	id    string
	body  []byte
	head  http.Header
	order order
}

// receiver takes webhooks as a trainer would. It refuses those that cannot be verified, and fails the test.
type receiver struct {
	server     *httptest.Server
	secretFile string
	job        func(delivery) // run for each webhook-id, if set
	arrived    chan struct{}  // if set, a delivery is announced on it and answered after a delay

	working    sync.WaitGroup
	mu         sync.Mutex
	deliveries []delivery // one per webhook-id
	repeats    int        // number of deliveries whose webhook-id had been seen
	refused    error
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	verifier, err := standardwebhooks.NewWebhook(webhookSecret)
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{secretFile: filepath.Join(t.TempDir(), "trainer.secret"), arrived: make(chan struct{})}
	if err := os.WriteFile(r.secretFile, []byte(webhookSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		d, err := verify(verifier, req)
		defer r.announce()
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			r.refused = errors.Join(r.refused, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.accept(d)
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(r.server.Close)
	t.Cleanup(r.working.Wait)
	return r
}

// announce announces a delivery, and leaves time to disturb the answer.
func (r *receiver) announce() {
	select {
	case r.arrived <- struct{}{}:
		time.Sleep(100 * time.Millisecond)
	default:
	}
}

// accept accepts a delivery once: its ID is its idempotency key. The caller holds the lock.
func (r *receiver) accept(d delivery) {
	if slices.ContainsFunc(r.deliveries, func(known delivery) bool { return known.id == d.id }) {
		r.repeats++
		return
	}
	r.deliveries = append(r.deliveries, d)
	if r.job != nil {
		r.working.Go(func() { r.job(d) })
	}
}

func verify(verifier *standardwebhooks.Webhook, req *http.Request) (delivery, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return delivery{}, fmt.Errorf("read webhook: %w", err)
	}
	if err := verifier.Verify(body, req.Header); err != nil {
		return delivery{}, fmt.Errorf("verify webhook: %w", err)
	}
	d := delivery{id: req.Header.Get(standardwebhooks.HeaderWebhookID), body: body, head: req.Header}
	if err := json.Unmarshal(body, &d.order); err != nil {
		return delivery{}, fmt.Errorf("webhook body: %w", err)
	}
	return d, nil
}

// received returns the webhooks so far, and the number of deliveries that were repeats.
func (r *receiver) received() (all []delivery, repeats int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.deliveries), r.repeats, r.refused
}

// pager receives what Alertmanager sends to people.
type pager struct {
	server *httptest.Server

	mu    sync.Mutex
	pages map[string]int // by status and labels.policy
	about map[page]int
}

// page is the subject of a page.
type page struct{ status, incident, severity string }

func startPager(t *testing.T) *pager {
	t.Helper()
	p := &pager{pages: map[string]int{}, about: map[page]int{}}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var told struct {
			Status string            `json:"status"`
			Common map[string]string `json:"commonLabels"`
		}
		if err := json.NewDecoder(req.Body).Decode(&told); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pages[told.Status+" "+told.Common["alertname"]+" "+told.Common["policy"]]++
		p.about[page{told.Status, told.Common["incident"], told.Common["severity"]}]++
	}))
	t.Cleanup(p.server.Close)
	return p
}

// incidents returns how often each page was sent.
func (p *pager) incidents() map[page]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.about)
}

func (p *pager) address() string { return p.server.Listener.Addr().String() }

// paged checks that Alertmanager has sent one page with a status about a policy's drift.
func (p *pager) paged(status, policy string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.pages[status+" RewardDrift "+policy]; n != 1 {
		return fmt.Errorf("%d pages: %v", n, p.pages)
	}
	return nil
}
