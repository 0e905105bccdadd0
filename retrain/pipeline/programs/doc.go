// Package programs finds how a repository trains and evaluates its agent, only by reading its files:
//
//	scripts    the console scripts that the packaging declares
//	advice     the commands that pages and scripts of the repository name
//	programs   which program trains, and which evaluates
//	arguments  the arguments with which the model is in the working directory of a pipeline
//	lookup     the values that names have when the training starts, for its hyperparameters and environment
//
// What the Python files define is in package modules. Reading is tolerant: what it cannot follow is left out. Everything
// that it keeps has a bound.
package programs
