package pipelines

import (
	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline"
)

// extensions are the file name extensions of pipeline files.
var extensions = []string{"yaml", "yml"}

// completeFile completes the only argument with the name of a pipeline file.
func completeFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return extensions, cobra.ShellCompDirectiveFilterFileExt
}

// completeDirectory completes the only argument with the name of a directory.
func completeDirectory(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeArtefact completes a pipeline file, and then the files that it generates.
func completeArtefact(o pipeline.Options) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, given string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return completeFile(cmd, args, given)
		}
		w, err := pipeline.Run(args[0], "", in("", o))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp // the command itself reports the error
		}
		var paths []string
		for i := range w.Artefacts {
			paths = append(paths, w.Artefacts[i].Path)
		}
		return paths, cobra.ShellCompDirectiveNoFileComp
	}
}
