package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// retrained runs the job for the request that was received: it waits for the duration of the training, and then makes
// the agents act by a new version of the policy until the request has its outcome.
func (d *demo) retrained(ctx context.Context, page string) error {
	id := d.receiver.got().id
	d.say("The simulated training job has started. It takes %s.", d.training)
	if accepted, err := d.report(ctx, page, id, map[string]string{"state": "started"}); err != nil || !accepted {
		return err
	}
	ends := time.Now().Add(d.training)
	if err := until(ctx, func() bool { return time.Now().After(ends) }); err != nil {
		return err
	}
	if accepted, err := d.report(ctx, page, id, map[string]string{"state": "succeeded", "version": retrainedVersion}); err != nil || !accepted {
		return err
	}
	d.agents.retrained.Store(true)
	d.say("The job has succeeded, and the agents now use policy_version %s.", retrainedVersion)
	var request ledger.Request
	var failed error
	if err := until(ctx, func() bool {
		request, failed = d.app.Server.Requests.Request(ctx, id)
		return failed != nil || request.State.Final()
	}); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("demo: %w", failed)
	}
	d.say("Outcome of the retraining: %s, %s.", request.State, request.Reason)
	if request.State == ledger.StateMet {
		d.say("The incident has closed, and the policy is collecting a new baseline.")
	}
	return nil
}

// report posts the status of the job, like the training job of a user. The service does not accept the status if a
// person has ended the request.
func (d *demo) report(ctx context.Context, page, id string, status map[string]string) (accepted bool, err error) {
	body, _ := json.Marshal(status) // strings: it cannot fail
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, page+"/api/v1/retrain-requests/"+id+"/status", bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("demo: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false, fmt.Errorf("demo: report the status of the job: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // the body is not needed
	switch text, _ := io.ReadAll(io.LimitReader(answer.Body, int64(ingest.MiB))); answer.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusConflict:
		d.say("The service rejected the job's report because the request has ended. The policy is unchanged.")
		return false, nil
	default:
		return false, fmt.Errorf("demo: report the status of the job: %s: %s", answer.Status, text)
	}
}

// receiver is the webhook receiver of the trainer. It verifies signatures, as receivers that users write should.
type receiver struct {
	secret   string
	server   *http.Server
	listener net.Listener
	done     chan struct{}

	mu    sync.Mutex
	first *received
}

// received is the first delivery.
type received struct {
	id, incident, expected string
	err                    error
}

func startReceiver() (*receiver, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	r := &receiver{secret: "whsec_" + base64.StdEncoding.EncodeToString(key), done: make(chan struct{})}
	var err error
	if r.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start the webhook receiver: %w", err)
	}
	r.server = &http.Server{Handler: r, ReadTimeout: 10 * time.Second}
	go func() {
		defer close(r.done)
		_ = r.server.Serve(r.listener) // ends with the demo
	}()
	return r, nil
}

func (r *receiver) url() string { return "http://" + r.listener.Addr().String() + "/retrain" }

// ServeHTTP accepts a delivery whose signature is valid.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	got, status := &received{id: req.Header.Get("webhook-id")}, http.StatusNoContent
	if got.err = r.verify(req, got); got.err != nil {
		status = http.StatusUnauthorized
	}
	r.mu.Lock()
	if r.first == nil {
		r.first = got
	}
	r.mu.Unlock()
	w.WriteHeader(status)
}

// verify checks the signature of a delivery and parses its body.
func (r *receiver) verify(req *http.Request, got *received) error {
	body, err := io.ReadAll(io.LimitReader(req.Body, int64(ingest.MiB)))
	if err != nil {
		return err
	}
	hook, err := webhooks.NewWebhook(r.secret)
	if err != nil {
		return err
	}
	if err := hook.Verify(body, req.Header); err != nil {
		return err
	}
	var order struct {
		Data struct {
			Incident string
			Contract recipe.Contract
		}
	}
	err = json.Unmarshal(body, &order)
	got.incident, got.expected = order.Data.Incident, order.Data.Contract.Expected.Text
	return err
}

// got returns the first delivery, or nil before it arrives.
func (r *receiver) got() *received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first
}

func (r *receiver) stop() error {
	err := r.server.Close()
	<-r.done
	return err
}
