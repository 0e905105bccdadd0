package keywords

// The libraries that train agents. Custom stands for none of them: the pipeline then runs commands of the project.
const (
	StableBaselines3 = "stable-baselines3"
	CleanRL          = "cleanrl"
	RLlib            = "rllib"
	Custom           = "custom"
)

// Packages are the Python packages that the generated scripts of a library need, with normalized names.
var Packages = map[string][]string{
	StableBaselines3: {"stable-baselines3"},
	CleanRL:          {"gymnasium", "numpy", "torch", "tyro"},
	RLlib:            {"ray", "torch"},
}

// Algorithms are the classes of Stable-Baselines3 2.x and RLlib, and the algorithm of the CleanRL-style script.
var Algorithms = map[string][]string{
	StableBaselines3: {"A2C", "DDPG", "DQN", "PPO", "SAC", "TD3"},
	CleanRL:          {"PPO"},
	RLlib:            {"APPO", "DQN", "IMPALA", "PPO", "SAC"},
}

// Policies are the policies of Stable-Baselines3: for vectors, for images, and for dictionaries of both.
var Policies = []string{"MlpPolicy", "CnnPolicy", "MultiInputPolicy"}
