package api

import (
	"compress/gzip"
	"io"
	stdlog "log"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Series are metrics with many series, which write themselves as text.
type Series interface {
	prometheus.Collector
	// WriteText writes the metrics in the text format of Prometheus or of OpenMetrics, without the end marker of the
	// latter.
	WriteText(w io.Writer, openMetrics bool) error
}

// Export adds metrics with many series to those of the gatherer. Call it before Open.
func (s *Server) Export(all ...Series) { s.series.Store(&all) }

// Metrics returns the handler for the metrics of the gatherer and of Export.
func (s *Server) Metrics() http.Handler {
	fast, slow := sync.Pool{New: func() any {
		w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails only for levels that do not exist
		return w
	}}, promhttp.HandlerFor(prometheus.GathererFunc(s.gather), promhttp.HandlerOpts{
		ErrorLog:          stdlog.New(s.log, "", 0),
		ErrorHandling:     promhttp.ContinueOnError, // one bad series must not hide all others
		EnableOpenMetrics: true,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		format, all := expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...), s.series.Load()
		isText := format.FormatType() == expfmt.TypeTextPlain || format.FormatType() == expfmt.TypeOpenMetrics
		if all == nil || !isText || r.URL.Query().Has("name[]") {
			slow.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", string(format))
		if !acceptsGzip(r) {
			s.writeText(w, format, *all)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := fast.Get().(*gzip.Writer)
		defer fast.Put(z)
		z.Reset(w)
		s.writeText(z, format, *all)
		_ = z.Close() // the answer is in memory
	})
}

// gather returns all metrics, like a registry.
func (s *Server) gather() ([]*dto.MetricFamily, error) {
	all := s.series.Load()
	if all == nil {
		return s.gatherer.Gather()
	}
	reg := prometheus.NewRegistry()
	for _, series := range *all {
		if err := reg.Register(series); err != nil {
			return nil, err
		}
	}
	return prometheus.Gatherers{s.gatherer, reg}.Gather()
}

// writeText writes all metrics to a writer that does not fail. It logs metrics that cannot be gathered, and writes all
// others.
func (s *Server) writeText(w io.Writer, format expfmt.Format, all []Series) {
	families, err := s.gatherer.Gather()
	if err != nil {
		s.log.Error().Err(err).Msg("metrics are missing from a scrape")
	}
	encoder := expfmt.NewEncoder(w, format)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			s.log.Error().Err(err).Str("metric", f.GetName()).Msg("a metric is missing from a scrape")
		}
	}
	for _, series := range all {
		_ = series.WriteText(w, format.FormatType() == expfmt.TypeOpenMetrics)
	}
	if end, has := encoder.(expfmt.Closer); has {
		_ = end.Close()
	}
}

// acceptsGzip reports whether the client accepts answers that are compressed with gzip.
func acceptsGzip(r *http.Request) bool {
	for _, accepted := range r.Header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(accepted, ",") {
			name, quality, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
			if strings.EqualFold(name, "gzip") && quality != "q=0" {
				return true
			}
		}
	}
	return false
}
