// Package propose reads the repository of a reinforcement-learning project, and proposes the file from which its
// pipeline is generated.
//
// It extracts the names of environments, algorithms and packages from the files, finds the programs that train and
// evaluate, and chooses versions of packages that install together. What it does not find is left to the user, with a
// comment that says so.
package propose
