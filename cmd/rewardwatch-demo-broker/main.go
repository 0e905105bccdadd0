// Command rewardwatch-demo-broker is the Kafka broker of `rewardwatch demo`, which starts it. It keeps everything in memory.
// It has a binary of its own, so that the binary of the service has no code of tests.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

// partitions is how many partitions the topic has.
const partitions = 4

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "rewardwatch-demo-broker: %v\n", err)
		os.Exit(2)
	}
}

// run prints the address of the broker as one line, and serves until in ends, as it does when the demo exits. An
// interrupt from the terminal reaches the demo too, which still commits while it stops.
func run(in io.Reader, out io.Writer) error {
	signal.Ignore(os.Interrupt)
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "agent-telemetry"))
	if err != nil {
		return fmt.Errorf("start the broker: %w", err)
	}
	defer broker.Close()
	if _, err := fmt.Fprintln(out, strings.Join(broker.ListenAddrs(), ",")); err != nil {
		return fmt.Errorf("print the address: %w", err)
	}
	_, err = io.Copy(io.Discard, in)
	return err
}
