package keywords

// Packages are the Python packages that the generated scripts of a library need, as requirements name them once normalized.
var Packages = map[string][]string{
	"stable-baselines3": {"stable-baselines3"},
	"cleanrl":           {"gymnasium", "numpy", "torch", "tyro"},
	"rllib":             {"ray", "torch"},
}

// Algorithms are the classes of Stable-Baselines3 2 and RLlib, and the generated script in the manner of CleanRL.
var Algorithms = map[string][]string{
	"stable-baselines3": {"A2C", "DDPG", "DQN", "PPO", "SAC", "TD3"},
	"cleanrl":           {"PPO"},
	"rllib":             {"APPO", "DQN", "IMPALA", "PPO", "SAC"},
}

// Policies are those of Stable-Baselines3: of vectors, of images, and of dictionaries of both.
var Policies = []string{"MlpPolicy", "CnnPolicy", "MultiInputPolicy"}
