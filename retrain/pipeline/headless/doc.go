// Package headless finds what prevents a program from running without a user and a screen, by reading its source.
package headless
