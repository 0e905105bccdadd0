// Package commandline composes proposed commands. Each part has its own file:
//
//	arguments  reads and sets the arguments of a program in a command
//	shell      the words that the shell expands, and the quoting of the others
//	place      the directory in which the command runs
package commandline
