package command

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/retrain/training"
)

// asService is the first argument of a test binary that acts as a service.
const asService = "as-service"

const killedRequests = 50

// serve delivers requests one after another, like the dispatcher: it delivers again what it does not know to be
// delivered. Its memory is in files that a kill leaves intact, because each line is a single write.
func serve(args []string) error {
	dir := args[0]
	told, err := os.OpenFile(filepath.Join(dir, "told"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	r, err := Open(filepath.Join(dir, "runs"), zerolog.Nop())
	if err != nil {
		return err
	}
	r.every = 5 * time.Millisecond
	failed := make(chan error, 1)
	go func() {
		failed <- r.Run(context.Background(), func(_ context.Context, request string, rep training.Report) error {
			_, err := fmt.Fprintf(told, "%s %s %s\n", request, rep.State, rep.Version)
			return err
		})
	}()
	c := Config{Run: []string{"/bin/sh", filepath.Join(dir, "train.sh")}, Directory: dir, TimeLimit: model.Duration(time.Minute)}
	for i := range killedRequests {
		request := fmt.Sprintf("rr_%d", i)
		delivered := filepath.Join(dir, request+".delivered")
		if _, err := os.Stat(delivered); err == nil {
			continue
		}
		if err := r.Start(context.Background(), c, body(request, request)); err != nil {
			return err
		}
		if err := os.WriteFile(delivered, nil, 0o600); err != nil {
			return err
		}
	}
	return <-failed
}

// Killing the service at any moment neither loses a run nor doubles one.
func TestServiceIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	g := newRig(t)
	script := "echo $REWARDWATCH_REQUEST >> starts\nsleep 0.$(($$ % 4))\n" +
		`echo "{\"policy_version\": \"of $REWARDWATCH_REQUEST\"}" > "$REWARDWATCH_RESULT"` + "\n"
	check(t, os.WriteFile(filepath.Join(g.dir, "train.sh"), []byte(script), 0o600))
	kills := 0
	for ; g.delivered() < killedRequests; kills++ {
		some := min(g.delivered()+rand.IntN(3), killedRequests)
		g.serveUntil(func() bool { return g.delivered() >= some }, rand.N(60*time.Millisecond))
	}
	g.serveUntil(func() bool { return g.succeeded() == killedRequests }, 0)
	t.Logf("%d kills", kills)
	starts := map[string]int{}
	for line := range strings.Lines(g.text("starts")) {
		starts[strings.TrimSpace(line)]++
	}
	for i := range killedRequests {
		if request := fmt.Sprintf("rr_%d", i); starts[request] != 1 {
			t.Errorf("%s was run %d times", request, starts[request])
		}
	}
}

// serveUntil starts a service and kills it the given time after a condition is met.
func (g *rig) serveUntil(enough func() bool, later time.Duration) {
	g.t.Helper()
	self, err := os.Executable()
	check(g.t, err)
	service := exec.CommandContext(g.t.Context(), self, asService, g.dir)
	var said strings.Builder
	service.Stderr = &said
	check(g.t, service.Start())
	eventually(g.t, "the service", enough)
	time.Sleep(later)
	_ = service.Process.Signal(syscall.SIGKILL) // fails if it has ended by itself, which is checked below
	if _ = service.Wait(); service.ProcessState.ExitCode() != -1 {
		g.t.Errorf("the service ended by itself: %s", said.String())
	}
}

// delivered counts the requests that the service knows to be delivered.
func (g *rig) delivered() int {
	found, err := filepath.Glob(filepath.Join(g.dir, "*.delivered"))
	check(g.t, err)
	return len(found)
}

// succeeded counts the requests whose version was reported, and fails if a run was reported to end in any other
// way.
func (g *rig) succeeded() int {
	seen := map[string]bool{}
	lines := bufio.NewScanner(strings.NewReader(g.text("told")))
	for lines.Scan() {
		request, rest, _ := strings.Cut(lines.Text(), " ")
		switch rest {
		case "started ":
		case "succeeded of " + request:
			seen[request] = true
		default:
			g.t.Errorf("told: %s", lines.Text())
		}
	}
	return len(seen)
}
