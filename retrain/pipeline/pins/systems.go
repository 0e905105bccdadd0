package pins

import (
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	onlyWindows = pattern.MustCompile(`^(pywin32.*|pypiwin32|pydirectinput.*|pywinauto|pygetwindow|vgamepad|dxcam|d3dshot|bettercam|windows-.*|winregistry|pywinpty|wmi|comtypes|pyreadline3?|win32-setctime|win-inet-pton|wincertstore|directx.*|tensorflow-directml.*|tensorflow-intel|torch-directml)$`)
	onlyMac     = pattern.MustCompile(`^(pyobjc.*|appnope|tensorflow-macos|tensorflow-metal|applescript|py2app|mlx)$`)
)

// OnlyFor returns the only operating system that a package with a normalized name supports, or "" if it supports Linux.
func OnlyFor(name string) string {
	switch {
	case onlyWindows.MatchString(name):
		return "Windows"
	case onlyMac.MatchString(name):
		return "macOS"
	}
	return ""
}

// drawsModel matches code that draws a Keras model.
const drawsModel = `(?m:^[ \t]*(?:from|import)[ \t]+[^\n]*\bkeras\b)(?s:.*)\bplot_model\(|\bkeras\.utils\.(?:\w+\.)?plot_model\(`

var (
	// ofDrawing matches code that draws a Keras model.
	ofDrawing = pattern.MustCompile(drawsModel)
	// ofRender matches code that renders environments, and ofOldRender the rendering of Gym before 0.26.
	ofRender    = pattern.MustCompile(`\brender_mode["']?\s*[=:]\s*["']|\bRecordVideo\(`)
	ofOldRender = pattern.MustCompile(`\benvs?\.render\(`)
	// ofPools matches code that makes EnvPool environments, and makesOther Gymnasium environments, also through
	// libraries.
	ofPools    = pattern.MustCompile(`\benvpool\.make\w*\(`)
	makesOther = pattern.MustCompile(`\b(?:gym|gymnasium)\.make(?:_vec)?\(|\bmake_(?:vec_|atari_)env\(`)
	importsGym = pattern.MustCompile(`(?m)^(?:import|from) gym\b`)
	// drawn matches environments that Gymnasium draws with pygame, except those that need pygame anyway.
	drawn = pattern.MustCompile(`^(?:CartPole|Pendulum|Acrobot|MountainCar|FrozenLake|Taxi|Blackjack|CliffWalking)`)
	// hasPygame matches requirements that install pygame.
	hasPygame = pattern.MustCompile(`^pygame|\[.*\b(classic[-_]control|toy[-_]text|box2d|extra|all)\b`)

	// ofSystem are the Debian packages that code needs, which pip does not install.
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

// Companions returns the packages that an environment needs in addition to its library, considering how the programs
// use it.
func (i *Interfaces) Companions(id string, own bool) []Companion {
	if i.pools != "" && i.makes == "" {
		return nil
	}
	out := Companions(id)
	if own {
		of := world(id)
		out = out[len(of):]
	}
	if (i.rendered != "" || i.renders != "" && i.oldGym != "") && drawn.MatchString(id) {
		out = append(out, Companion{"pygame", hasPygame})
	}
	return out
}

// Systems returns the Debian packages that the programs need, with the first file that needs each.
func (i *Interfaces) Systems() map[string]string { return i.systems }

// ofTorch matches the normalized names of packages that compute with any version of torch.
var ofTorch = pattern.MustCompile(`^(stable-baselines3|sb3-contrib|rl-zoo3|imitation|tianshou|pfrl|d3rlpy|torchrl|tensordict|pytorch-lightning|lightning)$`)

// Below returns the package that determines the results of another one, which does not fix its version, or "".
func Below(name string) string {
	if ofTorch.MatchString(name) {
		return "torch"
	}
	return ""
}
