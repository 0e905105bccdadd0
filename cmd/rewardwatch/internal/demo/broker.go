package demo

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// brokerName is the name of the broker's binary, which is in the same directory as the binary of the service.
const brokerName = "rewardwatch-demo-broker"

// broker is the process of the demo's Kafka broker.
type broker struct {
	addresses []string
	process   *exec.Cmd
	input     io.Closer // closing it ends the process
}

// startBroker starts the broker whose binary is in the directory of this one. Call stop to end it.
func startBroker() (*broker, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return nil, fmt.Errorf("find the demo broker: %w", err)
	}
	return startBrokerIn(filepath.Dir(self))
}

// startBrokerIn starts the broker whose binary is in a directory.
func startBrokerIn(directory string) (*broker, error) {
	binary := filepath.Join(directory, brokerName)
	switch _, err := os.Stat(binary); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("start the demo broker: %s is missing from %s: install it there "+
			"(GOBIN=%[2]s go install github.com/rewardwatch/rewardwatch/cmd/%[1]s@latest), or set --brokers to an existing Kafka cluster",
			brokerName, directory)
	case err != nil:
		return nil, fmt.Errorf("start the demo broker: %w", err)
	}
	return startProcess(exec.Command(binary))
}

func startProcess(process *exec.Cmd) (*broker, error) {
	process.Stderr = os.Stderr
	input, err := process.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the demo broker: %w", err)
	}
	output, err := process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the demo broker: %w", err)
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("start the demo broker: %w", err)
	}
	b := &broker{process: process, input: input}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the address of the demo broker: %w", err), b.stop())
	}
	b.addresses = strings.Split(strings.TrimSpace(line), ",")
	return b, nil
}

// stop ends the process, and waits for it.
func (b *broker) stop() error {
	err := b.input.Close()
	return errors.Join(err, b.process.Wait())
}
