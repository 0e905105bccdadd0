// Package pins lists versions of Python packages that can be installed together: for each version of Python, sets
// resolved by pip, and the versions for which an important package has files. It fetches nothing.
package pins
