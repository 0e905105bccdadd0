package checkpoint

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// A directory with segments of format 2 can be read, continues with segments of the current format, and falls back to
// the old ones.
func TestSegmentsOfFormat2AreRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/format2")); err != nil {
		t.Fatal(err)
	}
	d := openDirectory(t, dir)
	all := parts("policy", "newest", "group/0/running", strings.Repeat("r", 1000), "group/1/running", "one",
		"group/2/frozen", strings.Repeat("f", 500), "group/0/gates", "")
	s := openStore(d)
	wantLoad(t, s, "bank-a", all)
	mustSave(t, s, "bank-a", parts("policy", "after"), "group/2/frozen")
	delete(all, "group/2/frozen")
	all["policy"] = []byte("after")
	wantLoad(t, openStore(d), "bank-a", all)
	if err := os.Truncate(d.Where("bank-a", 4), 30); err != nil {
		t.Fatal(err)
	}
	all["policy"], all["group/2/frozen"] = []byte("newest"), bytes.Repeat([]byte("f"), 500)
	wantLoad(t, openStore(d), "bank-a", all)
	if _, err := os.Stat(d.Where("bank-a", 1)); errors.Is(err, fs.ErrNotExist) {
		t.Error("a segment that holds live parts is gone")
	}
}

// A head from a newer build is refused because of its version, without a fallback.
func TestANewerHeadIsRefusedByItsVersion(t *testing.T) {
	segment := encode("bank-a", 3, parts("x", "one"), index{})
	at := bytes.Index(segment, []byte("one")) + len("one")
	segment[at]++ // version of the head
	body := segment[:len(segment)-checksumSize]
	if _, _, _, err := decode(resealed(body)); !errors.Is(err, errOtherVersion) || !errors.Is(err, saved.ErrNewer) {
		t.Errorf("got %v", err)
	}
}
