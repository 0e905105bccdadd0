package recipe

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sameAsFile compares text with a golden file, or rewrites the file with -update.
func sameAsFile(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		check(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	check(t, err)
	if got != string(want) {
		t.Errorf("%s differs; run `go test ./retrain/recipe -update` and look at the difference.\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

func directories(t *testing.T, pattern string) []string {
	t.Helper()
	dirs, err := filepath.Glob(pattern)
	check(t, err)
	if len(dirs) == 0 {
		t.Fatalf("nothing matches %s", pattern)
	}
	return dirs
}

func TestBadRecipesNameEveryMistakeAndItsPlace(t *testing.T) {
	for _, dir := range directories(t, "testdata/bad_recipes/*") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			recipes, err := Load(dir, []string{"env"})
			if _, ok := errors.AsType[*yamlfile.Error](err); recipes != nil || !ok {
				t.Fatalf("got %v, %v", recipes, err)
			}
			sameAsFile(t, filepath.Join(dir, "errors.txt"), err.Error()+"\n")
		})
	}
}

func TestGoodRecipesAreResolved(t *testing.T) {
	for _, dir := range directories(t, "testdata/good_recipes/*") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			recipes, err := Load(dir, []string{"env"})
			check(t, err)
			var b strings.Builder
			for _, name := range slices.Sorted(maps.Keys(recipes)) {
				fmt.Fprintf(&b, "%s\n", name)
				for _, l := range recipes[name].Leaves() {
					fmt.Fprintf(&b, "  %s = %s (%s)\n", l.Path, l.Value, l.From)
				}
			}
			sameAsFile(t, filepath.Join(dir, "resolved.txt"), b.String())
		})
	}
}

func TestRecipeDirectories(t *testing.T) {
	if recipes, err := Load("", nil); len(recipes) != 0 || err != nil {
		t.Errorf("no directory gives %v, %v", recipes, err)
	}
	var bad *yamlfile.Error
	if _, err := Load("testdata/none", nil); !errors.Is(err, os.ErrNotExist) || errors.As(err, &bad) {
		t.Errorf("a directory that is not there gives %v", err)
	}
	dir := t.TempDir()
	check(t, os.Mkdir(filepath.Join(dir, "folder.yaml"), 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "huge.yaml"), make([]byte, yamlfile.MaxSize+1), 0o600))
	check(t, os.Symlink("nowhere", filepath.Join(dir, "link.yaml")))
	check(t, syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600))
	check(t, os.Symlink("/dev/zero", filepath.Join(dir, "zero.yml")))
	check(t, os.WriteFile(filepath.Join(dir, "deep.yaml"), []byte("config:\n  a: "+strings.Repeat("[", 90_000)), 0o600))
	_, err := Load(dir, nil)
	if !errors.As(err, &bad) || len(bad.Problems) != 6 || strings.Count(err.Error(), "cannot be read") != 5 || !strings.Contains(err.Error(), "nested deeper") {
		t.Errorf("files that cannot be read give %v", err)
	}
}

// plainMerge is RFC 7396, section 2, to the letter, on a copy.
func plainMerge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	inherited, _ := target.(map[string]any) // nil if it is not a mapping
	out := map[string]any{}
	maps.Copy(out, inherited)
	for name, value := range changes {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = plainMerge(out[name], value)
		}
	}
	return out
}

// recipeWriter writes a random delta, each leaf on a separate line. A leaf is a string with its own place, so that
// after any merge its value is its origin. The beginning of a key determines its type.
type recipeWriter struct {
	*rand.Rand
	file string
	text strings.Builder
	line int
}

func (w *recipeWriter) put(indent int, text string) string {
	w.line++
	at := fmt.Sprintf("%s:%d", w.file, w.line)
	fmt.Fprintf(&w.text, "%s%s\n", strings.Repeat("  ", indent), strings.ReplaceAll(text, "HERE", at))
	return at
}

func (w *recipeWriter) mapping(indent int) map[string]any {
	out := map[string]any{}
	for _, n := range w.Perm(4)[:1+w.IntN(3)] {
		switch key := fmt.Sprint(n); {
		case w.IntN(5) == 0:
			kind := []string{"m", "l", "s"}[w.IntN(3)]
			w.put(indent, kind+key+": null")
			out[kind+key] = nil
		case indent < 5 && w.IntN(2) == 0:
			w.put(indent, "m"+key+":")
			out["m"+key] = w.mapping(indent + 1)
		case w.IntN(3) == 0:
			w.put(indent, "l"+key+":")
			items := []any{}
			for range 1 + w.IntN(3) {
				items = append(items, w.put(indent+1, `- "HERE"`))
			}
			out["l"+key] = items
		default:
			out["s"+key] = w.put(indent, "s"+key+`: "HERE"`)
		}
	}
	return out
}

func TestResolutionIsAPlainMerge(t *testing.T) {
	const length = 5
	rnd := rand.New(rand.NewPCG(7, 11))
	leaves := 0
	for range 300 {
		l := newRecipeLoader(nil)
		wants := make([]map[string]any, length)
		for i := range length {
			w := &recipeWriter{Rand: rnd, file: fmt.Sprintf("r%d.yaml", i)}
			if i > 0 {
				w.put(0, fmt.Sprintf("parent: r%d", i-1))
			}
			w.put(0, "config:")
			var parent any
			if i > 0 {
				parent = wants[i-1]
			}
			wants[i] = plainMerge(parent, w.mapping(1)).(map[string]any)
			l.take(w.file, []byte(w.text.String()))
		}
		recipes, err := l.resolveAll()
		check(t, err)
		for i, want := range wants {
			r := recipes[fmt.Sprintf("r%d", i)]
			text, err := json.Marshal(r.config)
			check(t, err)
			var got map[string]any
			check(t, json.Unmarshal(text, &got))
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("recipe %d resolves to\n%s\nwant\n%v", i, text, want)
			}
			for _, l := range r.Leaves() {
				if l.Value == "{}" {
					continue // mappings whose members were all removed keep the place where they were written
				}
				leaves++
				if l.Value != fmt.Sprintf("%q", l.From) {
					t.Fatalf("%s = %s is said to come from %s", l.Path, l.Value, l.From)
				}
			}
		}
	}
	if leaves < 1000 {
		t.Errorf("only %d leaves were looked at", leaves)
	}
}

func FuzzRecipe(f *testing.F) {
	for _, dir := range []string{"testdata/good_recipes/*/*", "testdata/bad_recipes/*/*", "testdata/recipes/*"} {
		files, err := filepath.Glob(dir)
		check(f, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			check(f, err)
			f.Add(text)
		}
	}
	published, err := NewValidator()
	check(f, err)
	f.Fuzz(func(t *testing.T, text []byte) {
		l := newRecipeLoader([]string{"env"})
		l.take("fuzz.yaml", text)
		recipes, err := l.resolveAll()
		if err != nil || recipes.Fault(l.names[0]) != "" {
			return
		}
		inc := retraintest.Incident("i1", "ranker")
		o := newOrder("rr_1", inc, inc.Alarms)
		check(t, o.instruct(recipes[l.names[0]], moment{}))
		body, err := newBody(o, inc.MutedUntil)
		check(t, err)
		check(t, published.Check(body))
	})
}

// testRecipes returns the recipes of testdata/recipes.
func testRecipes(t testing.TB) Recipes {
	t.Helper()
	recipes, err := Load("testdata/recipes", []string{"env"})
	check(t, err)
	return recipes
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Other versions of YAML, and Python, read these words differently than this program.
func TestBooleansOfOtherYAMLVersionsInRecipes(t *testing.T) {
	dir := t.TempDir()
	text := "contract: {objective: a, hypothesis: b, owner: c, expected: mean return >= 1 over 200 episodes within 7d}\nconfig:\n  use_sde: no\n  quoted: \"no\"\n"
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(dir, nil)
	if want := "a.yaml:3:12: config.use_sde: must be true or false, or a string in quotes, not no"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
