package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// buildInfo says which build this is.
type buildInfo struct {
	Version  string `json:"version"`  // "(devel)" where it was not built from a tagged module
	Revision string `json:"revision"` // commit, "" where it is not known
	Modified bool   `json:"modified"` // whether the work tree differed from the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCommand(c *console) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which build this is",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := readBuildInfo()
			return c.print(b, b.text)
		},
	}
}

// readBuildInfo reads what the Go toolchain wrote into the binary.
func readBuildInfo() buildInfo {
	b := buildInfo{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
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

func (b buildInfo) text(w io.Writer) error {
	revision := b.Revision
	if revision == "" {
		revision = "unknown"
	}
	if b.Modified {
		revision += " (modified)"
	}
	_, err := fmt.Fprintf(w, "rewardwatch %s\nrevision %s\n%s %s\n", b.Version, revision, b.Go, b.Platform)
	return err
}
