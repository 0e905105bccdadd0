package pins

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// WithoutSWIG returns the name of a requirement of Gym or Gymnasium without the extras that need SWIG, which the images
// lack, and whether one of them was for Box2D alone: of all that the extra all installs, few environments need anything.
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

// WithoutOther returns the name of a requirement of Gymnasium without the extra for other packages, and whether it had it.
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

// mujocoPy are the versions of mujoco-py, which has no newer ones, and of what it works with.
var mujocoPy = map[string]string{"mujoco-py": "==2.1.2.14", "cython": "==0.29.37", "gymnasium": "==0.29.1"}

// WithMuJoCoPy returns the versions of a package that work with mujoco-py, "" for any.
func WithMuJoCoPy(name string) string { return mujocoPy[name] }

// ForEnvironments matches the normalized names of packages that environments need, but that programs do not import.
var ForEnvironments = pattern.MustCompile(`^(mujoco(-py)?|box2d(-py)?|pygame(-ce)?|ale-py|atari-py|autorom|pybullet|gym-retro|stable-retro|procgen|dm-control|gymnasium-robotics|minigrid|highway-env|panda-gym|pettingzoo|gym-.*)$`)
