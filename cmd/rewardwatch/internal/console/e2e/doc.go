// Package e2e tests the console in a headless Chromium: what its pages show, that nothing in them is run that a name
// carries, and that people reach everything without a mouse, on a phone and without JavaScript. Its tests need the
// build tag e2e; `make test` runs them.
package e2e
