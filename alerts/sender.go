package alerts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/alerts/redact"
)

// maxAnswer is how many bytes of an Alertmanager's answer to a refused push are reported.
const maxAnswer = 512

// errRefused is returned if an Alertmanager answered with anything but success. The push is retried whatever the
// status: a 4xx can come from a proxy that is still being set up, and the alert must get through then.
var errRefused = errors.New("alertmanager rejected the alerts")

// sender pushes to one Alertmanager.
type sender struct {
	index  int // of this sender in the notifier and in tracked.accepted
	url    string
	client *http.Client
	wake   chan struct{} // holds one value while there is something new to push
}

// push posts alerts. It succeeds if the answer is 2xx.
func (s *sender) push(ctx context.Context, batch []offer) error {
	messages := make([]message, len(batch))
	for i := range batch {
		messages[i] = batch[i].message
	}
	body, err := json.Marshal(messages)
	if err != nil {
		return fmt.Errorf("encode alerts: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("push alerts: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return fmt.Errorf("push alerts: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // the answer has been read
	return checkAnswer(response)
}

// checkAnswer returns errRefused unless the answer is a success.
func checkAnswer(response *http.Response) error {
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the response to pushed alerts: %w", err)
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%w: %d %s: %s", errRefused, response.StatusCode, http.StatusText(response.StatusCode), redact.Credentials(strings.TrimSpace(string(answer)), response.Request))
	}
	return nil
}

// notifierMetrics are the metrics of a Notifier.
type notifierMetrics struct {
	sent, failed prometheus.Counter
}

func newNotifierMetrics(reg prometheus.Registerer, receivers int, unconfirmed func() float64) notifierMetrics {
	pushes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: MetricNotifications, Help: "Pushes to Alertmanager, by result.",
	}, []string{"result"})
	pending := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: MetricNotifyPending, Help: "Alerts whose current state has not been accepted by any Alertmanager.",
	}, unconfirmed)
	configured := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: MetricAlertmanagers, Help: "Alertmanagers to which alerts are pushed.",
	})
	configured.Set(float64(receivers))
	reg.MustRegister(pushes, pending, configured)
	return notifierMetrics{sent: pushes.WithLabelValues("sent"), failed: pushes.WithLabelValues("failed")}
}

// pushed counts one push by its result.
func (m notifierMetrics) pushed(err error) {
	if err != nil {
		m.failed.Inc()
		return
	}
	m.sent.Inc()
}
