// Command rewardwatch monitors deployed reinforcement-learning agents for drift.
package main

import (
	"os"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/cli"
)

func main() {
	os.Exit(cli.Run())
}
