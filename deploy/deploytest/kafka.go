package deploytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// StartKafka starts a real broker on ports of 127.0.0.1, with its own directory and further variables for kafka.sh, and
// stops it at the end of the test. root is the root of the repository. run calls kafka.sh for this broker, for example
// with "topic", NAME.
func StartKafka(t testing.TB, root, port, controllerPort string, env ...string) (run func(args ...string)) {
	t.Helper()
	env = append(append(os.Environ(), env...), "KAFKA_DIR="+t.TempDir(), "KAFKA_PORT="+port, "KAFKA_CONTROLLER_PORT="+controllerPort)
	run = func(args ...string) {
		cmd := exec.Command(filepath.Join(root, "deploy/local/kafka/kafka.sh"), args...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("kafka.sh %v: %v\n%s", args, err, out)
		}
	}
	t.Cleanup(func() { run("stop") })
	run("start")
	return run
}
