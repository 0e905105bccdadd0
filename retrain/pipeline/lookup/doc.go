// Package lookup determines the values that names in the code of a repository have when a program starts, and from them
// the hyperparameters of its algorithm, by reading files without running them. Everything that is recorded is bounded.
package lookup
