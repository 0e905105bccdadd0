// Package programs finds how a repository trains and evaluates its agent, by reading its files alone:
//
//	python     what modules define and import
//	console    console scripts, and sub-commands of click, typer, argparse and fire
//	flags      the arguments of a program
//	advice     the commands that pages and scripts of the repository name
//	programs   which program trains, and which evaluates
//	arguments  the arguments with which the model is in the working directory of a pipeline
//
// Reading is tolerant: what it cannot follow is left out. Everything that it keeps has a bound.
package programs
