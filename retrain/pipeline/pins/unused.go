package pins

import "slices"

// leaf is a package that programs use by importing its module alone, or another one that loads it by its name.
type leaf struct {
	module string
	loads  []string // modules of others
}

// leaves are the packages of which it is known that nothing else uses them. Those that many load by their name, such as
// tensorboard, opencv-python, scipy or mpi4py, are none.
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

// Unused reports whether nothing uses a package, by its normalized name and what the programs name.
func Unused(name string, named func(module string) bool) bool {
	l, ok := leaves[name]
	return ok && !named(l.module) && !slices.ContainsFunc(l.loads, named)
}
