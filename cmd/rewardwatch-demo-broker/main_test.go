package main

import (
	"bufio"
	"context"
	"io"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// The broker says where it is, has the topic of the demo, and ends with its input.
func TestBrokerServesUntilItsInputEnds(t *testing.T) {
	in, end := io.Pipe()
	said, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(in, out) }()
	address, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	conn, err := kafka.DialContext(ctx, "tcp", address[:len(address)-1])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	found, err := conn.ReadPartitions("agent-telemetry")
	if err != nil || len(found) != partitions {
		t.Errorf("%d partitions (%v), want %d", len(found), err, partitions)
	}
	_ = end.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := kafka.DialContext(ctx, "tcp", address[:len(address)-1]); err == nil {
		t.Error("the broker is still there after its end")
	}
}
