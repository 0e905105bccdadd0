// Package pipeline generates the files of a retraining pipeline from one short description of a reinforcement-learning
// project. The work passes through a list of filters, each in a separate file:
//
//	parse     reads the file and those that it extends
//	resolve   fills in what the file leaves to defaults
//	validate  checks every value
//	plan      turns the description into a graph of stages
//	render    fills the templates of the targets
//	verify    checks every artefact, and corrects what has only one right form
//
// A program can add filters before verify, which add artefacts that depend on the rest of the program.
//
// A filter after a mistake does not run, so an artefact exists only if everything before it was right.
package pipeline
