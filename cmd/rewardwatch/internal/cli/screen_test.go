package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// pseudoTerminal returns a terminal to write to, and a function that returns what was written once it is closed.
func pseudoTerminal(t *testing.T, columns uint16) (*os.File, func() string) {
	t.Helper()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	screen, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(screen, &pty.Winsize{Rows: 24, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(screen) // ends with an error once the other side is closed
		read <- string(text)
	}()
	return tty, func() string {
		if err := tty.Close(); err != nil {
			t.Fatal(err)
		}
		text := <-read
		if err := screen.Close(); err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(text, "\r\n", "\n")
	}
}

// Colors are only used on terminals, and not for people who have disabled them.
func TestColours(t *testing.T) {
	rows := [][]string{{"SIGNAL", "STATE"}, {"return", "drift"}, {"drift", "ok"}}
	plain := "SIGNAL  STATE\nreturn  drift\ndrift   ok\n"
	tests := map[string]struct {
		name, value string
		want        string
	}{
		"a terminal": {"TERM", "xterm", "SIGNAL  STATE\nreturn  \x1b[31mdrift\x1b[0m\ndrift   \x1b[32mok\x1b[0m\n"},
		"NO_COLOR":   {"NO_COLOR", "1", plain},
		"a dumb one": {"TERM", "dumb", plain},
		"no TERM":    {"TERM", "", "SIGNAL  STATE\nreturn  \x1b[31mdrift\x1b[0m\ndrift   \x1b[32mok\x1b[0m\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tty, shown := pseudoTerminal(t, 80)
			t.Setenv(tt.name, tt.value)
			if err := terminal.PrintTable(tty, rows); err != nil {
				t.Fatal(err)
			}
			if got := shown(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("a file", func(t *testing.T) {
		f, err := os.Create(t.TempDir() + "/out")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := terminal.PrintTable(f, rows); err != nil {
			t.Fatal(err)
		}
		if got := testkit.Read(t, f.Name()); got != plain {
			t.Errorf("got %q", got)
		}
	})
	t.Run("/dev/null", func(t *testing.T) {
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		if terminal.IsTerminal(null) {
			t.Error("it passes for a terminal")
		}
	})
}

// On a terminal, replay and calibrate show their progress and then remove it; a pipe gets nothing.
func TestProgressOnATerminal(t *testing.T) {
	f := newFleet(3, 2)
	f.episodes(120)
	file := f.file(t)
	for verb, args := range map[string][]string{
		"Replaying": {"replay", file},
		"Reading":   {"calibrate", "--config", testkit.WriteConfig(t, "policies: [{match: '*', signals: [return], baseline: {units: 100}}]"), "--seconds", "0.1", file},
	} {
		t.Run(args[0], func(t *testing.T) {
			tty, shown := pseudoTerminal(t, 40)
			var out bytes.Buffer
			execute(context.Background(), &terminal.Console{In: strings.NewReader(""), Out: &out, Err: tty}, args)
			got := shown()
			if !strings.HasPrefix(got, "\r\x1b[K"+verb+" ") || !strings.Contains(got, " events") || !strings.HasSuffix(got, "\r\x1b[K") {
				t.Errorf("the terminal was shown %q", got)
			}
			for _, line := range strings.Split(got, "\r\x1b[K") {
				if terminal.Width(line) > 39 {
					t.Errorf("a line of %d columns would wrap: %q", terminal.Width(line), line)
				}
			}
			if strings.ContainsAny(out.String(), "\r\x1b") {
				t.Errorf("the results have control characters: %q", out.String())
			}
			var errs bytes.Buffer
			execute(context.Background(), &terminal.Console{In: strings.NewReader(""), Out: &out, Err: &errs}, args)
			if errs.Len() > 0 {
				t.Errorf("a pipe was told %q", errs.String())
			}
		})
	}
}

// Neither a result nor an error is ever written after the rest of a progress line.
func TestResultsStandAboveProgress(t *testing.T) {
	f := drifting(1, 4)
	f.lines = append([][]byte{[]byte("{")}, f.lines...)
	tty, shown := pseudoTerminal(t, 0)
	config := testkit.WriteConfig(t, "policies: [{match: '*', signals: [return]}]")
	code := execute(context.Background(), &terminal.Console{In: strings.NewReader(""), Out: tty, Err: tty}, []string{"replay", "--config", config, f.file(t)})
	got := shown()
	if code != exitDrift {
		t.Errorf("exit %d", code)
	}
	for _, result := range []string{"\x1b[31mDRIFT     \x1b[0m", "\x1b[32mRESOLVED  \x1b[0m", "rewardwatch: rejected", "Read "} {
		found := regexp.MustCompile(`(?m)^(.*)`+regexp.QuoteMeta(result)).FindAllStringSubmatch(got, -1)
		if found == nil {
			t.Errorf("no %q in %q", result, got)
		}
		for _, line := range found {
			if _, behind, _ := cutLast(line[1], "\r\x1b[K"); behind != "" {
				t.Errorf("%q stands behind %q", result, behind)
			}
		}
	}
}

// cutLast cuts text after the last separator; without one, all of it is after.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return "", text, false
	}
	return text[:i], text[i+len(separator):], true
}
