package pins

import (
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	onlyWindows = pattern.MustCompile(`^(pywin32.*|pypiwin32|pydirectinput.*|pywinauto|pygetwindow|vgamepad|dxcam|d3dshot|bettercam|windows-.*|winregistry|pywinpty|wmi|comtypes|pyreadline3?|win32-setctime|win-inet-pton|wincertstore|directx.*|tensorflow-directml.*|tensorflow-intel|torch-directml)$`)
	onlyMac     = pattern.MustCompile(`^(pyobjc.*|appnope|tensorflow-macos|tensorflow-metal|applescript|py2app|mlx)$`)
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

// drawsModel is code that imports Keras and draws a model with it.
const drawsModel = `(?m:^[ \t]*(?:from|import)[ \t]+[^\n]*\bkeras\b)(?s:.*)\bplot_model\(|\bkeras\.utils\.(?:\w+\.)?plot_model\(`

var (
	// ofDrawing draws a model of Keras.
	ofDrawing = pattern.MustCompile(drawsModel)
	// ofRender has environments draw, and ofOldRender those of Gym before 0.26.
	ofRender    = pattern.MustCompile(`\brender_mode["']?\s*[=:]\s*["']|\bRecordVideo\(`)
	ofOldRender = pattern.MustCompile(`\benvs?\.render\(`)
	// ofPools makes environments of EnvPool, and makesOther those of Gymnasium, also by libraries.
	ofPools    = pattern.MustCompile(`\benvpool\.make\w*\(`)
	makesOther = pattern.MustCompile(`\b(?:gym|gymnasium)\.make(?:_vec)?\(|\bmake_(?:vec_|atari_)env\(`)
	importsGym = pattern.MustCompile(`(?m)^(?:import|from) gym\b`)
	// drawn are the environments that Gymnasium draws with pygame, beside those that need it anyway.
	drawn = pattern.MustCompile(`^(?:CartPole|Pendulum|Acrobot|MountainCar|FrozenLake|Taxi|Blackjack|CliffWalking)`)
	// hasPygame are requirements that bring pygame.
	hasPygame = pattern.MustCompile(`^pygame|\[.*\b(classic[-_]control|toy[-_]text|box2d|extra|all)\b`)

	// ofSystem are the packages of Debian that code needs, which pip does not install.
	ofSystem = []struct {
		name string
		code *pattern.Pattern
	}{
		{"ffmpeg", pattern.MustCompile(`\bwriter\s*=\s*["']ffmpeg["']|\bFFMpegWriter\(|["']ffmpeg["'][ \t]*,[ \t]*["']-`)},
		{"fonts-dejavu-core", pattern.MustCompile(`\btruetype\(\s*["']DejaVu`)},
		{"graphviz", pattern.MustCompile(drawsModel + `|\bgraphviz\.(?:Digraph|Graph|Source)\(|\bmake_dot\(`)},
		{"imagemagick", pattern.MustCompile(`\bwriter\s*=\s*["']imagemagick["']|\bImageMagickWriter\(`)},
		{"libegl1", pattern.MustCompile(`MUJOCO_GL["']\]?\s*[,=]\s*["']egl\b|PYOPENGL_PLATFORM["']\]?\s*[,=]\s*["']egl\b`)},
		{"libosmesa6", pattern.MustCompile(`MUJOCO_GL["']\]?\s*[,=]\s*["']osmesa\b|PYOPENGL_PLATFORM["']\]?\s*[,=]\s*["']osmesa\b`)},
		{"xvfb", pattern.MustCompile(`\bpyvirtualdisplay\b|\bxvfbwrapper\b|\bxvfb-run\b`)},
	}
)

// Companions returns the packages that an environment needs beside its library, by its id, as the programs use it.
func (i *Interfaces) Companions(id string) []Companion {
	if i.pools != "" && i.makes == "" {
		return nil
	}
	out := Companions(id)
	if (i.rendered != "" || i.renders != "" && i.oldGym != "") && drawn.MatchString(id) {
		out = append(out, Companion{"pygame", hasPygame})
	}
	return out
}

// Systems returns the packages of Debian that the programs need, and the first file that needs each.
func (i *Interfaces) Systems() map[string]string { return i.systems }

// ofTorch are packages, by their normalized names, that compute with torch in any version.
var ofTorch = pattern.MustCompile(`^(stable-baselines3|sb3-contrib|rl-zoo3|imitation|tianshou|pfrl|d3rlpy|torchrl|tensordict|pytorch-lightning|lightning)$`)

// Below returns the package that decides what a package of a normalized name computes, but whose version it leaves open;
// "" if there is none.
func Below(name string) string {
	if ofTorch.MatchString(name) {
		return "torch"
	}
	return ""
}
