// Package e2e tests the console in a headless Chromium: the content of its pages, that code in names is never run, and
// that people reach everything without a mouse, on a phone and without JavaScript. Its tests need the build tag e2e;
// `make test` runs them.
package e2e
