package pins

import "regexp"

var (
	onlyWindows = regexp.MustCompile(`^(pywin32.*|pypiwin32|pydirectinput.*|pywinauto|pygetwindow|vgamepad|dxcam|d3dshot|bettercam|windows-.*|winregistry|pywinpty|wmi|comtypes|pyreadline3?|win32-setctime|win-inet-pton|wincertstore|directx.*|tensorflow-directml.*|tensorflow-intel|torch-directml)$`)
	onlyMac     = regexp.MustCompile(`^(pyobjc.*|appnope|tensorflow-macos|tensorflow-metal|applescript|py2app|mlx)$`)
)

// OnlyFor returns the system that a package of a normalized name is for alone, "" if it is for Linux too.
func OnlyFor(name string) string {
	switch {
	case onlyWindows.MatchString(name):
		return "Windows"
	case onlyMac.MatchString(name):
		return "macOS"
	}
	return ""
}

// ofTorch are packages, by their normalized names, that compute with torch in any version.
var ofTorch = regexp.MustCompile(`^(stable-baselines3|sb3-contrib|rl-zoo3|imitation|tianshou|pfrl|d3rlpy|torchrl|tensordict|pytorch-lightning|lightning)$`)

// Below returns the package that decides what a package of a normalized name computes, but whose version it leaves open;
// "" if there is none.
func Below(name string) string {
	if ofTorch.MatchString(name) {
		return "torch"
	}
	return ""
}
