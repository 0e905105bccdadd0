package headless

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	opensWindow = pattern.MustCompile(`\bpygame\.display\.set_mode\(`)
	opensSound  = pattern.MustCompile(`\bpygame\.mixer\b`)
	// human matches code that makes a Gymnasium environment open a window.
	human = pattern.MustCompile(`\brender_mode\s*=\s*["']human["']\s*[,)]`)
	// importsGym and renders match code of programs that open a window with Gym before 0.26.
	importsGym = pattern.MustCompile(`(?m)^(?:import|from) gym\b`)
	renders    = pattern.MustCompile(`\benvs?\.render\(\s*(?:(?:mode\s*=\s*)?["']human["']\s*)?\)`)
	// ofPygame matches Gymnasium environments that open windows with pygame.
	ofPygame = pattern.MustCompile(`^(?:CartPole|Pendulum|Acrobot|MountainCar(?:Continuous)?|LunarLander(?:Continuous)?|BipedalWalker(?:Hardcore)?|CarRacing|FrozenLake(?:8x8)?|Taxi|Blackjack|CliffWalking)-v[0-9]+$`)
)

// Human reports whether code makes a Gymnasium environment that opens a window.
func Human(code string) bool { return human.MatchString(code) }

// DrawnByPygame reports whether Gymnasium draws an environment with pygame, which does not require a screen.
func DrawnByPygame(id string) bool { return ofPygame.MatchString(id) }

// Variables returns the environment variables, as NAME=VALUE, with which the windows and sounds of a program need no
// devices. texts are its code, and id is its environment. Variables that the code sets itself are omitted.
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
