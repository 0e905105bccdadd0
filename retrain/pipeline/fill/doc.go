// Package fill lets a language model propose what the templates of a pipeline leave open. It is off unless the file names
// an endpoint. Its steps, each in a separate file:
//
//	holes     what may be filled: kept parts of artefacts, each with a type, a bound and a check
//	prompt    what the endpoint gets to see
//	endpoint  the call, bounded in time and size
//	checks    what an answer must keep, with python for functions
//	answers   the file with the answers that kept it, which is the cache as well
//
// A proposal reaches an artefact only when a person accepts it.
package fill
