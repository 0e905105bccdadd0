package headless

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	opensWindow = pattern.MustCompile(`\bpygame\.display\.set_mode\(`)
	opensSound  = pattern.MustCompile(`\bpygame\.mixer\b`)
	// human is an environment of Gymnasium that opens a window.
	human = pattern.MustCompile(`\brender_mode\s*=\s*["']human["']\s*[,)]`)
	// importsGym and renders are how programs with Gym before 0.26 open a window.
	importsGym = pattern.MustCompile(`(?m)^(?:import|from) gym\b`)
	renders    = pattern.MustCompile(`\benvs?\.render\(\s*(?:(?:mode\s*=\s*)?["']human["']\s*)?\)`)
	// ofPygame are the environments of Gymnasium whose windows are those of pygame.
	ofPygame = pattern.MustCompile(`^(?:CartPole|Pendulum|Acrobot|MountainCar(?:Continuous)?|LunarLander(?:Continuous)?|BipedalWalker(?:Hardcore)?|CarRacing|FrozenLake(?:8x8)?|Taxi|Blackjack|CliffWalking)-v[0-9]+$`)
)

// Human reports whether code makes an environment of Gymnasium that opens a window.
func Human(code string) bool { return human.MatchString(code) }

// DrawnByPygame reports whether Gymnasium draws an environment, by its id, with pygame, which can do so without a screen.
func DrawnByPygame(id string) bool { return ofPygame.MatchString(id) }

// Variables returns the environment variables, NAME=VALUE, by which the windows and sounds of a program need no devices.
// The texts are the code that it runs, and id is its environment. The code may set them itself.
func Variables(texts []string, id string) []string {
	has := func(code *pattern.Pattern) bool { return slices.ContainsFunc(texts, code.MatchString) }
	sets := func(name string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, name) })
	}
	var out []string
	if (has(opensWindow) || DrawnByPygame(id) && (has(human) || has(importsGym) && has(renders))) && !sets("SDL_VIDEODRIVER") {
		out = append(out, "SDL_VIDEODRIVER=dummy")
	}
	if has(opensSound) && !sets("SDL_AUDIODRIVER") {
		out = append(out, "SDL_AUDIODRIVER=dummy")
	}
	return out
}
