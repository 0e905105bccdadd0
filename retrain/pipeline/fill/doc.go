// Package fill lets a language model propose text for the parts that a pipeline's templates leave open. It is off
// unless the file names an endpoint. Each step has its own file:
//
//	holes     what may be filled: kept parts of artefacts, each with a type, a size limit and checks
//	prompt    what is sent to the endpoint
//	endpoint  the request, bounded in time and size
//	checks    the rules for an answer; those for functions are in python
//	answers   the file of valid answers, which is also the cache
//
// A proposal reaches an artefact only when a person accepts it.
package fill
