package pins

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// WithoutSWIG returns the name of a Gym or Gymnasium requirement without the extras that need SWIG, which the images
// lack. alone reports whether it removed the box2d extra. The extra all does not count, because few environments need
// any of what it installs.
func WithoutSWIG(name string) (without string, alone bool) {
	bare, list, _ := strings.Cut(strings.TrimSuffix(name, "]"), "[")
	if bare = strings.TrimSpace(bare); !slices.Contains([]string{"gym", "gymnasium"}, Normalized(bare)) {
		return name, false
	}
	var left []string
	for extra := range strings.SplitSeq(list, ",") {
		switch Normalized(extra) {
		case "box2d":
			alone = true
		case "all":
			left = append(left, "classic_control")
		case "":
		default:
			left = append(left, extra)
		}
	}
	if len(left) > 0 {
		bare += "[" + strings.Join(left, ",") + "]"
	}
	return bare, alone
}

// WithoutOther returns the name of a Gymnasium requirement without the extra other, and reports whether it had that
// extra.
func WithoutOther(name string) (without string, other bool) {
	bare, list, _ := strings.Cut(strings.TrimSuffix(name, "]"), "[")
	extras := strings.Split(list, ",")
	if Normalized(bare) != "gymnasium" || !slices.Contains(extras, "other") {
		return name, false
	}
	if extras = slices.DeleteFunc(extras, func(x string) bool { return x == "other" }); len(extras) == 0 {
		return bare, true
	}
	return bare + "[" + strings.Join(extras, ",") + "]", true
}

// mujocoPy are the last version of mujoco-py, and the versions of other packages that work with it.
var mujocoPy = map[string]string{"mujoco-py": "==2.1.2.14", "cython": "==0.29.37", "gymnasium": "==0.29.1"}

// WithMuJoCoPy returns the version of a package that works with mujoco-py, or "" for any.
func WithMuJoCoPy(name string) string { return mujocoPy[name] }

// ForEnvironments matches the normalized names of packages that environments need but programs do not import.
var ForEnvironments = pattern.MustCompile(`^(mujoco(-py)?|box2d(-py)?|pygame(-ce)?|ale-py|atari-py|autorom|pybullet|gym-retro|stable-retro|procgen|dm-control|gymnasium-robotics|minigrid|highway-env|panda-gym|pettingzoo|gym-.*)$`)
