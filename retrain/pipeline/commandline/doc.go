// Package commandline has the parts of proposed commands:
//
//	arguments  which arguments of a program a command has, and how they are set
//	shell      the words that the shell expands, and how the others are quoted
//	place      the directory in which the command runs
package commandline
