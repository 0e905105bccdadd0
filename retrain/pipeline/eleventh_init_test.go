package pipeline

import "testing"

// What was wrong in the proposals for repositories of the eleventh trial: environments in a directory named env.
func TestProposalsForTheEleventhTrial(t *testing.T) {
	const train = "import torch\nfrom env.shop import Shop\nif __name__ == '__main__':\n    train(Shop())\n"
	const shop = "import gymnasium as gym\nimport pandas as pd\nimport plotly.figure_factory as ff\nclass Shop(gym.Env):\n    pass\n"
	proposes(t, "a directory named env", map[string]string{"main.py": train, "env/shop.py": shop}, []string{"- pandas==", "- plotly=="}, []string{"# - env"})
	proposes(t, "a virtual environment", map[string]string{"requirements.txt": "torch==2.4.0\n", "main.py": "import torch\nif __name__ == '__main__':\n    train()\n", "env/lib/python3.11/shop.py": shop}, nil, []string{"pandas"})
}
