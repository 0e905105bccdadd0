package keywords

// The libraries that train agents. Custom is none of them: the pipeline runs the commands of the project.
const (
	StableBaselines3 = "stable-baselines3"
	CleanRL          = "cleanrl"
	RLlib            = "rllib"
	Custom           = "custom"
)

// Packages are the Python packages that the generated scripts of a library need, as requirements name them once normalized.
var Packages = map[string][]string{
	StableBaselines3: {"stable-baselines3"},
	CleanRL:          {"gymnasium", "numpy", "torch", "tyro"},
	RLlib:            {"ray", "torch"},
}

// Algorithms are the classes of Stable-Baselines3 2 and RLlib, and the generated script in the manner of CleanRL.
var Algorithms = map[string][]string{
	StableBaselines3: {"A2C", "DDPG", "DQN", "PPO", "SAC", "TD3"},
	CleanRL:          {"PPO"},
	RLlib:            {"APPO", "DQN", "IMPALA", "PPO", "SAC"},
}

// Policies are those of Stable-Baselines3: of vectors, of images, and of dictionaries of both.
var Policies = []string{"MlpPolicy", "CnnPolicy", "MultiInputPolicy"}
