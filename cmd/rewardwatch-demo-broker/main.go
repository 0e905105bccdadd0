// Command rewardwatch-demo-broker is the Kafka broker of `rewardwatch demo`, which starts it. It keeps the newest
// records in memory. It is a separate binary, so that the binary of the service contains no test code.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

const (
	partitions = 4        // of the topic
	kept       = 32 << 20 // bytes per partition, a few minutes of telemetry: a demo may run for days
	trimEvery  = 10 * time.Second
)

func main() {
	if err := run(os.Stdin, os.Stdout, kept, trimEvery); err != nil {
		fmt.Fprintf(os.Stderr, "rewardwatch-demo-broker: %v\n", err)
		os.Exit(2)
	}
}

// run prints the address of the broker on one line, and serves until in ends, which happens when the demo exits. It
// ignores interrupts: an interrupt from the terminal also reaches the demo, which still commits while it stops. At each
// interval, it drops the oldest records of partitions with more bytes than kept.
func run(in io.Reader, out io.Writer, kept int, interval time.Duration) error {
	signal.Ignore(os.Interrupt)
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "agent-telemetry"),
		kfake.BrokerConfigs(map[string]string{"log.retention.bytes": strconv.Itoa(kept)}))
	if err != nil {
		return fmt.Errorf("start the broker: %w", err)
	}
	defer broker.Close()
	if _, err := fmt.Fprintln(out, strings.Join(broker.ListenAddrs(), ",")); err != nil {
		return fmt.Errorf("print the address: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, in)
		ended <- err
	}()
	for {
		select {
		case err := <-ended:
			return err
		case <-time.After(interval):
			broker.ApplyRetention() // the broker trims only topics that were created with their own limit
		}
	}
}
