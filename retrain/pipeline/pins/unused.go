package pins

import "slices"

// leaf is a package that is used only by importing its module, or through another package that loads it.
type leaf struct {
	module string
	loads  []string // modules of packages that load it
}

// leaves are packages that nothing else is known to use. They exclude packages that many others load by name, such as
// tensorboard, opencv-python, scipy and mpi4py.
var leaves = map[string]leaf{
	"click":        {"click", nil},
	"gym":          {"gym", []string{"stable_baselines", "stable_baselines3", "sb3_contrib", "shimmy", "d4rl", "ray", "tianshou", "gymnasium"}},
	"loguru":       {"loguru", nil},
	"matplotlib":   {"matplotlib", []string{"pylab", "pandas", "seaborn", "optuna", "networkx", "gym", "gymnasium", "stable_baselines3", "wandb", "sklearn"}},
	"pandas":       {"pandas", []string{"stable_baselines3", "sb3_contrib", "ray", "plotly", "seaborn", "wandb", "sklearn", "optuna"}},
	"pillow":       {"PIL", []string{"tensorboard", "tensorboardX", "wandb", "imageio", "matplotlib", "torchvision", "gym", "gymnasium", "pyglet", "skimage"}},
	"pygame":       {"pygame", []string{"gym", "gymnasium", "pettingzoo", "highway_env", "minigrid"}},
	"scikit-learn": {"sklearn", []string{"imblearn", "skopt", "optuna", "xgboost", "lightgbm"}},
	"seaborn":      {"seaborn", nil},
	"torchaudio":   {"torchaudio", []string{"transformers", "lightning", "torchrl"}},
	"torchvision":  {"torchvision", []string{"transformers", "timm", "lightning", "torchrl", "ultralytics"}},
}

// Unused reports whether nothing uses a package with a normalized name. named reports whether programs mention a
// module.
func Unused(name string, named func(module string) bool) bool {
	l, ok := leaves[name]
	return ok && !named(l.module) && !slices.ContainsFunc(l.loads, named)
}
