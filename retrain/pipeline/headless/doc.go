// Package headless finds what keeps a program from running without a person and a screen, by reading its code alone.
package headless
