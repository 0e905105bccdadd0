package app

import "testing"

func TestReleaseIsWhatOthersCanGet(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for version, want := range map[string]string{
		"v0.1.0":                               "v0.1.0",
		"(devel)":                              commit,
		"v0.1.1-0.20261125000000-0123456789ab": commit, // a commit behind the tag
		"v0.1.0+dirty":                         commit,
	} {
		if got := (BuildInfo{Version: version, Revision: commit}).Release(); got != want {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}
