package keywords

// Packages are the Python packages that the generated scripts of a library need, with normalized names.
var Packages = map[string][]string{
	"stable-baselines3": {"stable-baselines3"},
	"cleanrl":           {"gymnasium", "numpy", "torch", "tyro"},
	"rllib":             {"ray", "torch"},
}

// Algorithms are the classes of Stable-Baselines3 2.x and RLlib, and the algorithm of the CleanRL-style script.
var Algorithms = map[string][]string{
	"stable-baselines3": {"A2C", "DDPG", "DQN", "PPO", "SAC", "TD3"},
	"cleanrl":           {"PPO"},
	"rllib":             {"APPO", "DQN", "IMPALA", "PPO", "SAC"},
}

// Policies are the policies of Stable-Baselines3: for vectors, for images, and for dictionaries of both.
var Policies = []string{"MlpPolicy", "CnnPolicy", "MultiInputPolicy"}
