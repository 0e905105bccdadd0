package cli

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// viewServer serves a view at a fixed time.
func viewServer(t *testing.T, cfg api.Config, v api.View, o *apitest.FixedOrders) *api.Server {
	t.Helper()
	s, err := api.New(cfg, v, o, prometheus.NewRegistry(), nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	s.Now = func() time.Time { return apitest.QuietTime }
	return s
}

// tokenServer returns a viewServer that accepts orders with the token in tokenFile.
func tokenServer(t *testing.T, v api.View, o *apitest.FixedOrders) (s *api.Server, tokenFile string) {
	t.Helper()
	tokenFile = testkit.WriteFile(t, apitest.SomeToken+"\n")
	return viewServer(t, api.Config{TokenFile: tokenFile}, v, o), tokenFile
}
