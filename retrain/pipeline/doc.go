// Package pipeline generates the files of a retraining pipeline from a short description of a reinforcement-learning
// project. The work passes through a list of filters, each in its own file:
//
//	parse     reads the file and those that it extends
//	resolve   sets the defaults of what the file omits
//	validate  checks every value
//	plan      derives a graph of stages
//	render    fills the templates of the targets
//	verify    checks every artefact, and corrects mistakes with a unique correction
//
// A program can insert filters before verify, for artefacts that depend on the rest of the program.
//
// Filters after the one that finds a mistake do not run, so artefacts exist only if everything before them is correct.
package pipeline
