package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
)

//go:embed web
var web embed.FS

// layouts parses the pages, each with the layout.
func layouts() map[string]*template.Template {
	base := template.Must(template.New("layout").Funcs(template.FuncMap{"asset": asset, "visible": visible, "of": of, "times": times, "ordered": words.Ordered, "capital": words.Capital}).ParseFS(web, "web/layout.html", "web/parts.html"))
	out := map[string]*template.Template{}
	for _, file := range must(fs.Glob(web, "web/pages/*.html")) {
		out[path.Base(file)] = template.Must(template.Must(base.Clone()).ParseFS(web, file))
	}
	return out
}

// of returns the data of a template that is part of a page.
func of(p page, data any) page {
	p.Data = data
	return p
}

// must returns value. It panics if err is not nil, which only an embedded file can cause and tests would detect.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// asset returns the path of a file below static/, with a hash of its contents, so that a browser caches it until it
// changes.
func asset(name string) string {
	hash, known := hashes()[name]
	if !known {
		panic("a page refers to " + name + ", which is not embedded") // tests would detect this
	}
	return name + "?v=" + hash
}

// hashes returns the hashes of the styles, scripts and pictures, by name.
var hashes = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	err := fs.WalkDir(web, "web", func(name string, _ fs.DirEntry, err error) error {
		switch path.Ext(name) {
		case ".css", ".js", ".svg":
			sum := sha256.Sum256(must(web.ReadFile(name)))
			out[strings.TrimPrefix(name, "web/")] = hex.EncodeToString(sum[:6])
		}
		return err
	})
	return must(out, err)
})

// static serves styles and scripts.
func (c *Console) static(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	hash, known := hashes()[name]
	if !known {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", `"`+hash+`"`)
	w.Header().Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == hash {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeFileFS(w, r, web, "web/"+name)
}
