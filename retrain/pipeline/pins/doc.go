// Package pins knows versions of Python packages that install together: for each version of Python, sets that pip
// resolved, and the range for which an important package has files. It fetches nothing.
package pins
