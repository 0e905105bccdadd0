package api

import (
	"net/http"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
)

func TestGatesKeepToTheOpenAPIDocument(t *testing.T) {
	v := apitest.Gates()
	s := quietServer(t, Config{}, v, nil)
	for _, version := range []string{"v2", "v3", "v5", "v9"} {
		w := ask(s, http.MethodGet, "/api/v1/gates/"+v.Policies[1].Policy+"/"+version)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d: %s", version, w.Code, w.Body)
		}
		checkAgainstOpenAPI(t, "/api/v1/gates/{policy}/{version}", w.Body.Bytes())
	}
}
