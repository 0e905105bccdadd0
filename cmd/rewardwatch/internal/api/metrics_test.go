package api

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// oneSeries is a metric that writes itself as text.
type oneSeries struct{ prometheus.Gauge }

func (oneSeries) WriteText(w io.Writer, openMetrics bool) error {
	text := "# HELP many Many series.\n# TYPE many gauge\nmany 2\n"
	if openMetrics {
		text = "# HELP many Many series.\n# TYPE many gauge\nmany 2.0\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// Every client gets the metrics of the registry and those that are exported beside it, in the format that it reads.
func TestMetricsAreWhole(t *testing.T) {
	reg := prometheus.NewRegistry()
	few := prometheus.NewCounter(prometheus.CounterOpts{Name: "few_total", Help: "Few series."})
	reg.MustRegister(few)
	s, err := New(Config{}, nil, nil, reg, nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	before := httptest.NewRecorder()
	s.Metrics().ServeHTTP(before, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if got := before.Body.String(); !strings.Contains(got, "few_total 0") || strings.Contains(got, "many") {
		t.Errorf("before any series are exported: %s", got)
	}
	many := prometheus.NewGauge(prometheus.GaugeOpts{Name: "many", Help: "Many series."})
	many.Set(2)
	s.Export(oneSeries{many})
	const openMetrics = "application/openmetrics-text;version=1.0.0"
	for name, c := range map[string]struct {
		query, accept, coding string
		want                  []string
		kind                  string
	}{
		"text":         {"", "text/plain", "", []string{"few_total 0\n", "many 2\n"}, "text/plain"},
		"OpenMetrics":  {"", openMetrics, "identity, gzip;q=0", []string{"few_total 0.0\n", "many 2.0\n# EOF\n"}, "application/openmetrics-text"},
		"compressed":   {"", openMetrics, "br, gzip;q=0.8", []string{"few_total 0.0\n", "many 2.0\n# EOF\n"}, "application/openmetrics-text"},
		"some by name": {"?name[]=many", "text/plain", "", []string{"many 2\n"}, "text/plain"},
		"protobuf":     {"", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "", []string{"few_total", "many"}, "application/vnd.google.protobuf"},
	} {
		t.Run(name, func(t *testing.T) {
			r, answer := httptest.NewRequest(http.MethodGet, "/metrics"+c.query, nil), httptest.NewRecorder()
			r.Header.Set("Accept", c.accept)
			r.Header.Set("Accept-Encoding", c.coding)
			s.Metrics().ServeHTTP(answer, r)
			var body io.Reader = answer.Body
			if answer.Header().Get("Content-Encoding") == "gzip" {
				if body, err = gzip.NewReader(body); err != nil {
					t.Fatal(err)
				}
			} else if strings.Contains(c.coding, "q=0.8") {
				t.Error("it is not compressed")
			}
			all, err := io.ReadAll(body)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(string(all), want) {
					t.Errorf("without %q: %s", want, all)
				}
			}
			if kind := answer.Header().Get("Content-Type"); !strings.HasPrefix(kind, c.kind) {
				t.Errorf("an answer of the type %q", kind)
			}
			if c.query != "" && strings.Contains(string(all), "few_total") {
				t.Errorf("others are there, too: %s", all)
			}
		})
	}
}
