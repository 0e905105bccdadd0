package main

import (
	"bufio"
	"context"
	"io"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// The broker reports its address, has the demo's topic with its most recent records, and ends with its input.
func TestBrokerServesUntilItsInputEnds(t *testing.T) {
	in, end := io.Pipe()
	said, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(in, out, 10_000, 10*time.Millisecond) }()
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
	leader, err := kafka.DialLeader(ctx, "tcp", address[:len(address)-1], "agent-telemetry", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = leader.Close() }()
	for range 100 {
		if _, err := leader.WriteMessages(kafka.Message{Value: make([]byte, 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	for first, last := int64(0), int64(0); last != 100 || first < 80; time.Sleep(10 * time.Millisecond) {
		if first, last, err = leader.ReadOffsets(); err != nil {
			t.Fatal(err)
		}
		if first > 95 || ctx.Err() != nil {
			t.Fatalf("%d to %d of 100 records are there, want about the newest nine", first, last)
		}
	}
	_ = end.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := kafka.DialContext(ctx, "tcp", address[:len(address)-1]); err == nil {
		t.Error("the broker is still there after its end")
	}
}
