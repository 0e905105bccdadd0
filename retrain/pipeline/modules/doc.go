// Package modules determines what the Python files of a repository define, by reading them without running them:
//
//	python    what a module imports from the repository, and how Python runs its file
//	scan      the functions, classes, parsers and decorators of a file, found once per file
//	flags     the arguments of a program: of argparse, click, typer, absl, fire, docopt, and fields of classes
//	classes   the arguments that a program parses for the fields of classes
//	commands  the subcommands of click, typer, argparse, fire, and programs that compare words
//
// Whatever is recorded per file is bounded, so that the time for a hostile file is proportional to its size.
package modules
