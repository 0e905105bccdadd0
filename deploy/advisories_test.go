//go:build e2e

package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// planted writes an advisory for a function of a module, in all versions of the module.
func planted(t *testing.T, dir, id, module, symbol string) {
	t.Helper()
	text := fmt.Sprintf(`{"schema_version":"1.3.1","id":%q,"modified":"2026-01-01T00:00:00Z","summary":"planted","affected":[{
		"package":{"name":%[2]q,"ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],
		"ecosystem_specific":{"imports":[{"path":%[2]q,"symbols":[%q]}]}}],
		"database_specific":{"url":"https://example.com"}}`, id, module, symbol)
	if err := os.WriteFile(filepath.Join(dir, id+".json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A vulnerability whose code is called makes `make advisories` fail, unless an exemption with a test and a reason names
// it.
func TestE2EAdvisories(t *testing.T) {
	makefile := read(t, "../Makefile")
	tool := func(name, version string) string {
		path, err := filepath.Abs("../.cache/bin/" + name + "-" + regexp.MustCompile(version + ` := (\S+)`).FindStringSubmatch(makefile)[1])
		if err != nil {
			t.Fatal(err)
		}
		return strings.ToUpper(name) + "=" + path
	}
	const avro = "github.com/twmb/avro"
	reaches := func(t *testing.T, dir string) { planted(t, dir, "GO-2026-0001", avro, "SchemaCache.Parse") }
	unreached := func(t *testing.T, dir string) { planted(t, dir, "GO-2026-0002", avro, "Schema.DecodeSingleObject") }
	nothing := func(*testing.T, string) {}
	for _, c := range []struct {
		name       string
		plant      func(t *testing.T, dir string)
		exemptions string
		fails      bool
		want       string
	}{
		{"reached", reaches, "", true, "calls avro.SchemaCache.Parse"},
		{"not reached", unreached, "# none\n", false, "none of 1 advisories reaches ./ingest/avro"},
		{"exempt", reaches, "GO-2026-0001 TestE2EAdvisories it is planted\n", false, "none of 1 advisories reaches ./ingest/avro"},
		{"exempt without a reason", reaches, "GO-2026-0001 TestE2EAdvisories\n", true, "GO-2026-0001 has no reason"},
		{"exempt without a test", reaches, "GO-2026-0001 TestOfNothing it is planted\n", true, "the test TestOfNothing, which does not exist"},
		{"exempt by mistake", reaches, "GO-2026-0003 TestE2EAdvisories it is planted\n", true, "contains no advisory GO-2026-0003"},
		{"exempt though not reached", unreached, "# one\nGO-2026-0002 TestE2EAdvisories it is planted\n", true, "exemptions:2: GO-2026-0002 does not reach ./ingest/avro"},
		{"no database", nothing, "", true, "contains no advisories"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, exemptions := t.TempDir(), filepath.Join(t.TempDir(), "exemptions")
			c.plant(t, dir)
			if err := os.WriteFile(exemptions, []byte(c.exemptions), 0o600); err != nil {
				t.Fatal(err)
			}
			scan := exec.CommandContext(t.Context(), "deploy/lint/advisories.sh", dir, exemptions, "./ingest/avro")
			scan.Dir = ".."
			scan.Env = append(os.Environ(), tool("govulncheck", "GOVULNCHECK_VERSION"), tool("indexdb", "ADVISORIES_VERSION"))
			said, err := scan.CombinedOutput()
			if (err != nil) != c.fails || !strings.Contains(string(said), c.want) {
				t.Errorf("%v, want %q:\n%s", err, c.want, said)
			}
		})
	}
}
