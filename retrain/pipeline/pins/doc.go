// Package pins lists versions of Python packages that can be installed together. For each Python version, it has sets
// of versions that pip resolved, and the versions of important packages that have files. It downloads nothing.
package pins
