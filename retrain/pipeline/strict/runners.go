package strict

import (
	"slices"
	"strings"
)

// labels are the labels that actionlint 1.7.12 knows: those of GitHub-hosted runners, and those that every self-hosted
// runner has.
var labels = strings.Fields("windows-latest windows-latest-8-cores windows-2025 windows-2025-vs2026 windows-2022 windows-11-arm " +
	"ubuntu-slim ubuntu-latest ubuntu-latest-4-cores ubuntu-latest-8-cores ubuntu-latest-16-cores ubuntu-24.04 ubuntu-24.04-arm " +
	"ubuntu-22.04 ubuntu-22.04-arm macos-latest macos-latest-xlarge macos-latest-large macos-26-intel macos-26-xlarge " +
	"macos-26-large macos-26 macos-15-intel macos-15-xlarge macos-15-large macos-15 macos-14-xlarge macos-14-large macos-14 " +
	"linux macos windows self-hosted x64 arm arm64")

// IsNotLinux reports whether the label of a GitHub Actions runner belongs to another operating system.
func IsNotLinux(label string) bool {
	system, _, _ := strings.Cut(strings.ToLower(label), "-")
	return !IsOwnLabel(label) && (system == "windows" || system == "macos")
}

// IsOwnLabel reports whether the label of a GitHub Actions runner is one that a team defined itself.
func IsOwnLabel(label string) bool { return !slices.Contains(labels, strings.ToLower(label)) }
