// Package modules determines what the Python files of a repository define, only by reading them:
//
//	python    what a module imports from others of the repository, and how Python runs its file
//	scan      its functions, classes, parsers and decorators, found once for each file
//	flags     the arguments of a program: of argparse, click, typer, absl, fire, and fields of classes
//	commands  the sub-commands of click, typer, argparse and fire, and those of a program that compares words
//
// Everything that it keeps of one file has a bound, so that the cost of a hostile one grows no faster than its size.
package modules
