package app

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// version is the version of a release, set by the linker (-X): Go finds no tag in a source archive.
var version string

// BuildInfo identifies the build.
type BuildInfo struct {
	Version  string `json:"version"`  // "(devel)" if it is not a release, nor built from a tagged module
	Revision string `json:"revision"` // commit, "" if unknown
	Modified bool   `json:"modified"` // whether the work tree differed from the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ReadBuildInfo reads the build information that the Go toolchain has written into the binary.
func ReadBuildInfo() BuildInfo {
	b := BuildInfo{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = cmp.Or(version, info.Main.Version, b.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// Release identifies this build to other services: by its tag, or else its commit, or "" if it has neither.
func (b BuildInfo) Release() string {
	if tag, _, pre := strings.Cut(b.Version, "-"); strings.HasPrefix(tag, "v") && !pre && !strings.Contains(b.Version, "+") {
		return b.Version
	}
	return b.Revision
}

// String returns b as lines of text for people.
func (b BuildInfo) String() string {
	revision := b.Revision
	if revision == "" {
		revision = "unknown"
	}
	if b.Modified {
		revision += " (modified)"
	}
	return fmt.Sprintf("rewardwatch %s\nrevision %s\n%s %s\n", b.Version, revision, b.Go, b.Platform)
}
