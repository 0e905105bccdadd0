package alerts

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

func TestCheckAlertmanagerConfig(t *testing.T) {
	for name, test := range map[string]struct {
		urls []string
		want []string
	}{
		"none":      {nil, nil},
		"good ones": {[]string{"http://127.0.0.1:9093", "https://am.example/prefix"}, nil},
		"bad ones": {
			[]string{"127.0.0.1:9093", "ftp://x", "http://", "http://me:secret@am", "http://am/?a=b", "http://am", "http://am", "/am"},
			[]string{
				"urls[0]: must be a URL such as http://alertmanager:9093", "urls[1]: must begin with http:// or https://", "urls[2]: must name a host",
				"urls[3]: must not contain a user or password", "urls[4]: must not have a query or fragment", "urls[6]: is listed twice",
				"urls[7]: must begin with http:// or https://",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultAlertmanagerConfig()
			cfg.URLs = test.urls
			var got []string
			cfg.Check(func(path, msg string) { got = append(got, path+": "+msg) })
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCheckTimeout(t *testing.T) {
	bad := []string{"timeout: must be greater than 0 and at most 1m"}
	for timeout, want := range map[time.Duration][]string{
		-time.Second: bad, 0: bad, time.Millisecond: nil, time.Minute: nil, time.Minute + time.Millisecond: bad,
	} {
		var got []string
		AlertmanagerConfig{Timeout: model.Duration(timeout)}.Check(func(path, msg string) { got = append(got, path+": "+msg) })
		if !slices.Equal(got, want) {
			t.Errorf("%v: got %q, want %q", timeout, got, want)
		}
	}
}
