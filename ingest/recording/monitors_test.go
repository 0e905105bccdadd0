package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// rows stores rows of monitor.csv as text, and checks that their positions increase.
type rows struct {
	fileProcessor
	t    *testing.T
	next int64
	read []string
}

func (r *rows) Process(_ context.Context, events []ingest.Event) error {
	for i := range events {
		e := &events[i]
		if e.Pos.Offset < r.next {
			r.t.Errorf("record %d follows record %d", e.Pos.Offset, r.next-1)
		}
		r.next = e.Pos.Offset + 1
		r.read = append(r.read, fmt.Sprintf("%s|%s|%s %g at %g", e.Policy, e.Env, e.AgentID, e.Return, float64(e.TS)/1e9))
	}
	return nil
}

// writeFiles writes files to a new directory and returns the directory.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, content := range files {
		at := filepath.Join(directory, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// monitorOf returns a monitor.csv with the given header and rows, whose columns are return, length and time.
func monitorOf(header string, rows ...string) string {
	return "#{" + header + "}\nr,l,t\n" + strings.Join(rows, "\n") + "\n"
}

func TestMonitorsAreMerged(t *testing.T) {
	const env = `"env_id": "E", "t_start": 100`
	for _, c := range []struct {
		name    string
		files   map[string]string
		paths   []string
		policy  string
		want    []string
		refused int64
	}{
		{
			name:  "parallel environments of one run",
			files: map[string]string{"0.monitor.csv": monitorOf(env, "1,9,1", "2,9,5"), "1.monitor.csv": monitorOf(`"env_id": "E", "t_start": 101`, "3,9,1", "4,9,2", "5,9,4")},
			paths: []string{"0.monitor.csv", "1.monitor.csv"},
			want:  []string{"E||0 1 at 101", "E||1 3 at 102", "E||1 4 at 103", "E||0 2 at 105", "E||1 5 at 105"},
		},
		{
			name:  "a resumed run, and NDJSON between",
			files: map[string]string{"a.monitor.csv": monitorOf(env, "1,9,9") + monitorOf(env, "2,9,1"), "b.monitor.csv": monitorOf(env, "3,9,8", "4,9,10"), "c": `{"policy":"p","reward":1}`, "d.monitor.csv": monitorOf(env, "5,9,1")},
			paths: []string{"a.monitor.csv", "b.monitor.csv", "c", "d.monitor.csv"},
			want:  []string{"E||b 3 at 108", "E||a 1 at 109", "E||a 2 at 101", "E||b 4 at 110", "p|| 0 at 0", "E||d 5 at 101"},
		},
		{
			name:  "runs one after the other, as they are listed",
			files: map[string]string{"late/0.monitor.csv": monitorOf(env, "1,9,50"), "early/0.monitor.csv": monitorOf(env, "2,9,1"), "a.csv": monitorOf(env, "3,9,9"), "b.csv": monitorOf(env, "4,9,5")},
			paths: []string{"late/0.monitor.csv", "early/0.monitor.csv", "a.csv", "b.csv"},
			want:  []string{"E||0 1 at 150", "E||0 2 at 101", "E|| 3 at 109", "E|| 4 at 105"},
		},
		{
			name:  "rows without times stay behind those before them",
			files: map[string]string{"a.monitor.csv": monitorOf(env, "1,9,5", "2,9,x"), "b.monitor.csv": monitorOf(env, "3,9,", "4,9,6")},
			paths: []string{"a.monitor.csv", "b.monitor.csv"},
			want:  []string{"E||b 3 at 0", "E||a 1 at 105", "E||a 2 at 0", "E||b 4 at 106"},
		},
		{
			name:    "rows that are refused",
			files:   map[string]string{"a.monitor.csv": monitorOf(env, "x,9,1", "1,9,3", "y,9,4"), "b.monitor.csv": monitorOf(env, "2,9,2", "x", "3,9,4"), "empty.monitor.csv": "\n", "headed.monitor.csv": monitorOf(env)},
			paths:   []string{"a.monitor.csv", "empty.monitor.csv", "b.monitor.csv", "headed.monitor.csv"},
			want:    []string{"E||b 2 at 102", "E||a 1 at 103", "E||b 3 at 104"},
			refused: 3,
		},
		{
			name:  "the folder where there is no id",
			files: map[string]string{"lander/0.monitor.csv": monitorOf(`"env_id": "None"`, "1,9,1"), "walker/0.monitor.csv": monitorOf(`"t_start": 5`, "2,9,1")},
			paths: []string{"lander/0.monitor.csv", "walker/0.monitor.csv"},
			want:  []string{"lander||0 1 at 0", "walker||0 2 at 6"},
		},
		{
			name: "a directory",
			files: map[string]string{
				"ppo/E_1/0.monitor.csv": monitorOf(env, "1,9,1"), "ppo/E_1/1.monitor.csv.gz": string(gzipped(t, []byte(monitorOf(env, "2,9,2")))),
				"a2c/monitor.csv": monitorOf(`"env_id": "None", "t_start": 99`, "3,9,1"), "ppo/progress.csv": "x\n", "notes.json": "{",
			},
			paths: []string{"."},
			want:  []string{"a2c|| 3 at 100", "ppo/E_1|E|0 1 at 101", "ppo/E_1|E|1 2 at 102"},
		},
		{
			name:  "the directory of a run",
			files: map[string]string{"lander/2.monitor.csv": monitorOf(env, "1,9,1"), "lander/10.monitor.csv": monitorOf(env, "2,9,0.5")},
			paths: []string{"lander"},
			want:  []string{"lander|E|10 2 at 100.5", "lander|E|2 1 at 101"},
		},
		{
			name: "a policy that is given", policy: "mine",
			files: map[string]string{"lander/0.monitor.csv": monitorOf(env, "1,9,1"), "walker/0.monitor.csv": monitorOf(env, "2,9,2")},
			paths: []string{"lander", "walker/0.monitor.csv"},
			want:  []string{"mine|E|0 1 at 101", "mine||0 2 at 102"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			directory := writeFiles(t, c.files)
			var paths []string
			for _, name := range c.paths {
				paths = append(paths, filepath.Join(directory, filepath.FromSlash(name)))
			}
			got := rows{t: t}
			counts, err := ReadFiles(t.Context(), FilesConfig{Policy: c.policy}, paths, &got)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.read, c.want) {
				t.Errorf("rows %q, want %q", got.read, c.want)
			}
			if n := int64(len(c.want)); counts.Accepted != n || counts.Read != n+c.refused {
				t.Errorf("counts %+v, want %d accepted and %d refused", counts, n, c.refused)
			}
		})
	}
}

// The rows of any number of files are in the order of a stable sort.
func TestMonitorsAreSorted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		files, paths := map[string]string{}, []string{}
		var want []int // times
		for i := range 1 + random.IntN(8) {
			var lines []string
			for at := random.IntN(50); at < 1000; at += random.IntN(100) {
				lines = append(lines, fmt.Sprintf("1,1,%d", at))
				want = append(want, at+1)
			}
			name := fmt.Sprintf("%d.monitor.csv", i)
			files[name], paths = monitorOf(`"env_id": "E", "t_start": 1`, lines...), append(paths, name)
		}
		directory := writeFiles(t, files)
		for i := range paths {
			paths[i] = filepath.Join(directory, paths[i])
		}
		slices.Sort(want)
		var p fileProcessor
		if _, err := ReadFiles(t.Context(), FilesConfig{}, paths, &p); err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(p.times, want, func(ns int64, s int) bool { return cmp.Compare(ns, int64(s)*1e9) == 0 }) {
			t.Fatalf("times %d, want %d seconds", p.times, want)
		}
	}
}

func TestMonitorsThatCannotBeRead(t *testing.T) {
	const env = `"env_id": "E", "t_start": 100`
	whole := gzipped(t, []byte(monitorOf(env, "2,9,2", "3,9,3")))
	directory := writeFiles(t, map[string]string{
		"0.monitor.csv": monitorOf(env, "1,9,1", "4,9,4"), "1.monitor.csv": string(whole[:len(whole)-9]), "2.monitor.csv": string(whole[:5]), "none/x.csv": "",
	})
	for name, c := range map[string]struct {
		paths []string
		want  []string
		words string
	}{
		"interrupted":       {[]string{"0.monitor.csv", "1.monitor.csv"}, []string{"E||0 1 at 101", "E||1 2 at 102"}, "1.monitor.csv: interrupted after"},
		"broken at its top": {[]string{"0.monitor.csv", "2.monitor.csv"}, []string{"E||0 1 at 101", "E||0 4 at 104"}, "2.monitor.csv: interrupted after"},
		"nothing in it":     {[]string{"none"}, nil, "none is a directory that contains neither a local log nor a file named monitor.csv or *.monitor.csv"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.paths {
				c.paths[i] = filepath.Join(directory, c.paths[i])
			}
			got := rows{t: t}
			_, err := ReadFiles(t.Context(), FilesConfig{}, c.paths, &got)
			if err == nil || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), c.words) {
				t.Errorf("error %v, want one with %q", err, c.words)
			}
			if !slices.Equal(got.read[:min(len(got.read), len(c.want))], c.want) {
				t.Errorf("rows %q, want %q first", got.read, c.want)
			}
		})
	}
}
