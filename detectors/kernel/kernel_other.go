//go:build !amd64

package kernel

var (
	Passed = plainPassed // see plainPassed
	SumsOf = plainSumsOf // see plainSumsOf
	Found  = plainFound  // see plainFound
)
