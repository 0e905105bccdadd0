package demo

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The broker is a process that responds until it is stopped.
func TestBrokerIsStartedAndStopped(t *testing.T) {
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, brokerName), "../../../rewardwatch-demo-broker")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the broker: %v\n%s", err, out)
	}
	b, err := startBrokerIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", b.addresses[0])
	if err != nil {
		t.Error(err)
	} else {
		_ = conn.Close()
	}
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", b.addresses[0]); err == nil {
		_ = conn.Close()
		t.Error("the broker still listens after its end")
	}
}

// If only the service is installed, the error says what is missing, where, and what else can be done.
func TestMissingBrokerIsNamed(t *testing.T) {
	dir := t.TempDir()
	_, err := startBrokerIn(dir)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{brokerName + " is missing from " + dir, "go install", "--brokers"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// A broker that ends without an address is an error that says how it ended.
func TestBrokerWithoutAddress(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, brokerName), []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := startBrokerIn(dir)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("%v does not say exit status 3", err)
	}
}
