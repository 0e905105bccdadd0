package cli

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asService makes the test binary act as the rewardwatch binary, so that a test can kill a whole process.
const asService = "REWARDWATCH_TEST_AS_SERVICE"

func TestMain(m *testing.M) {
	if os.Getenv(asService) != "" {
		os.Exit(Run())
	}
	goleak.VerifyTestMain(m)
}
