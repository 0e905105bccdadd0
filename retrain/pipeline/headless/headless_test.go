package headless

import (
	"slices"
	"testing"
)

func TestEndless(t *testing.T) {
	for name, test := range map[string]struct {
		code string
		want bool
	}{
		"nothing ends it":                     {"while True:\n    obs = env.step(policy(obs))\n", true},
		"an episode ends it":                  {"while True:\n    obs, done = env.step(1)\n    if done:\n        break\n", false},
		"in the same line":                    {"while True:\n    obs, done = env.step(1)\n    if done: break\n", false},
		"a person in the same line":           {"while True:\n    if cv2.waitKey(1) == 27: break\n", true},
		"only a loop inside ends":             {"while True:\n    for i in range(9):\n        if i: break\n", true},
		"a return of a loop inside":           {"def main():\n    while True:\n        for i in range(9):\n            if i > 3:\n                return\n", false},
		"the window is closed":                {"running = True\nwhile running:\n    for event in pygame.event.get():\n        if event.type == pygame.QUIT:\n            running = False\n", true},
		"the window is closed, or all is won": {"running = True\nwhile running:\n    for event in pygame.event.get():\n        if event.type == pygame.QUIT:\n            running = False\n    if won:\n        running = False\n", false},
		"done is set with others":             {"done = False\nwhile not done:\n    obs, reward, done, info = env.step(1)\n", false},
		"another condition":                   {"while steps < 100:\n    steps += 1\n", false},
		"never reached":                       {"forever = True\ntry:\n    while True:\n        if done is True:\n            if forever is True:\n                env.reset()\n            else:\n                break\nfinally:\n    env.close()\n", true},
		"reached":                             {"forever = False\nwhile True:\n    if forever:\n        env.reset()\n    else:\n        break\n", false},
		"a function for something else":       {"def serve():\n    while True:\n        pass\nprint(1)\n", false},
		"a function to begin with":            {"def play_game():\n    while True:\n        env.step(1)\nplay_game()\n", true},
		"a method":                            {"class A:\n    def run(self):\n        while True:\n            pass\n", false},
		"an endless count":                    {"for i in itertools.count():\n    env.step(1)\n", true},
		"an exit":                             {"while True:\n    if n > 3:\n        sys.exit(0)\n", false},
		"no loop":                             {"", false},
	} {
		if got := Endless(test.code); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestVariables(t *testing.T) {
	const window, sound = "pygame.display.set_mode((8, 8))\n", "pygame.mixer.init()\n"
	const human = "gym.make(ID, render_mode='human')\n"
	for name, test := range map[string]struct {
		texts []string
		id    string
		want  []string
	}{
		"a window and sounds in a module": {[]string{"import game\n", window + sound}, "", []string{"SDL_VIDEODRIVER=dummy", "SDL_AUDIODRIVER=dummy"}},
		"a program that sets it itself":   {[]string{"os.environ['SDL_VIDEODRIVER'] = 'dummy'\n", window}, "", nil},
		"a window of Gymnasium":           {[]string{human}, "LunarLander-v3", []string{"SDL_VIDEODRIVER=dummy"}},
		"a window of MuJoCo":              {[]string{human}, "Hopper-v5", nil},
		"a window of Gym":                 {[]string{"import gym\nfrom agent import A\n", "env.render()\n"}, "CartPole-v1", []string{"SDL_VIDEODRIVER=dummy"}},
		"pictures of Gym":                 {[]string{"import gym\n", "env.render(mode='rgb_array')\n"}, "CartPole-v1", nil},
		"no window":                       {[]string{"gym.make(ID, render_mode='rgb_array')\n"}, "LunarLander-v3", nil},
	} {
		if got := Variables(test.texts, test.id); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
