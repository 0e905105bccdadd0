// Command rewardwatch watches deployed reinforcement-learning agents for drift.
package main

import "os"

func main() {
	os.Exit(run())
}
