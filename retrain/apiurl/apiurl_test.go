package apiurl

import (
	"strings"
	"testing"
)

func TestURLsOfAPIs(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{Appended("https://git.lab.example/api/v4"), "must not end with /api/v4, which is added automatically"},
		{Appended("https://flow.example/prod/api/v2/"), "must not end with /api/v2, which is added automatically"},
		{Appended("https://flow.example/api"), "must not end with /api, which is added automatically"},
		{Appended("https://flow.example/prod"), ""},
		{Appended("https://api.example/v4"), ""},
		{GitHub("https://github-api.corp.example"), ""},
		{GitHub("http://github-mock:3000"), ""},
		{GitHub("https://github.corp.example"), "must be the URL of the API, https://github.corp.example/api/v3"},
		{GitHub("https://ghe.corp.example:8443/"), "https://ghe.corp.example:8443/api/v3"},
		{GitHub("https://api.github.corp.example"), ""},
		{GitHub("http://github.corp.example"), ""},
		{GitHub("https://github.localdomain"), ""},
		{GitHub("https://gh.internal:8443/"), ""},
		{GitHub("https://www.github.com/"), "must be https://api.github.com"},
		{GitHub("https://github.com"), "must be https://api.github.com"},
		{GitHub("https://tea.ghe.com"), "https://api.tea.ghe.com"},
		{GitHub("https://git.corp.example/api/v3"), ""},
		{GitHub("https://api.tea.ghe.com"), ""},
		{GitHub("http://127.0.0.1:3000"), ""},
		{Repository("tea/leaves.git"), "must be without .git"},
		{Repository("tea/leaves.github"), ""},
	} {
		if (test.got == "") != (test.want == "") || !strings.Contains(test.got, test.want) {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}
