// Command manpages writes a manual page for each command of rewardwatch into a directory. It is a separate program,
// because the service does not need the renderer.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manpages DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write removes the directory first, so that no page of a former command remains. The date of a page is
// SOURCE_DATE_EPOCH, or now.
func write(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.Commands()
	root.InitDefaultCompletionCmd()
	root.DisableAutoGenTag = true
	forgetUser(root)
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Rewardwatch", Manual: "Rewardwatch"}, dir)
}

// forgetUser removes the name of the user who builds the pages, which is the default of --by.
func forgetUser(cmd *cobra.Command) {
	if by := cmd.Flags().Lookup("by"); by != nil {
		by.DefValue = ""
	}
	for _, sub := range cmd.Commands() {
		forgetUser(sub)
	}
}
