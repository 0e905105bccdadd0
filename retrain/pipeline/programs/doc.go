// Package programs determines how a repository trains and evaluates its agent, by reading its files without running
// them:
//
//	scripts    the console scripts that the packaging declares
//	advice     the commands that pages and scripts of the repository recommend
//	programs   which program trains, and which evaluates
//	arguments  the arguments with which the model is written to the pipeline's working directory
//	starting   what the training makes when it starts: its environment, its steps and its hyperparameters
//
// Package modules determines what the Python files define, package lookup the values of names when a program starts, and
// package hydra the settings that it reads. Code that cannot be interpreted is ignored. Everything that is recorded is
// bounded.
package programs
