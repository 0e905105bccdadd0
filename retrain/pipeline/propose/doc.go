// Package propose reads a repository of a reinforcement-learning project and proposes the file from which its pipeline is
// generated.
//
// It takes names of environments, algorithms and packages from the files, finds the programs that train and evaluate, and
// pins versions of packages that install together. What it does not find is left to a person, with a comment that says so.
package propose
