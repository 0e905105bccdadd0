package pipeline

import "testing"

// What was wrong in the proposals for repositories of the fourteenth trial: a misspelled name of the requirements, and the
// Python of an image.
func TestProposalsForTheFourteenthTrial(t *testing.T) {
	const train = "import torch\nif __name__ == '__main__':\n    train()\n"
	for _, name := range []string{"requeriments.txt", "requirement.txt", "reqs.txt", "req.txt", "requirements_gpu.txt"} {
		proposes(t, name, map[string]string{name: "torch==2.4.0\ntqdm==4.66.1\n", "train.py": train}, []string{"- torch==2.4.0\n", "- tqdm==4.66.1\n"}, nil)
	}
	proposes(t, "other texts", map[string]string{"requests.txt": "torch==2.4.0\n", "required_reading.txt": "torch==2.4.0\n", "train.py": train}, nil, []string{"2.4.0"})
	proposes(t, "the image", map[string]string{"docker/Dockerfile": "FROM python:3.10-slim\nCOPY . .\n", "requirements.txt": "torch==2.4.0\n", "train.py": train},
		[]string{"base: python:3.10.20-slim-bookworm # docker/Dockerfile names Python 3.10\n"}, nil)
	proposes(t, "the image and the packaging", map[string]string{"Dockerfile": "FROM python:3.8\n", "pyproject.toml": "[project]\nname = \"d\"\nrequires-python = \">=3.11\"\ndependencies = [\"torch==2.4.0\"]\n", "train.py": train},
		nil, []string{"base:"})
	proposes(t, "d3rlpy", map[string]string{"train.py": "import d3rlpy, torch\nimport gymnasium\nif __name__ == '__main__':\n    d3rlpy.algos.CQLConfig().create().fit(data, n_steps=10000)\n"},
		[]string{"- d3rlpy==2.8.1 ", "- gymnasium==1.0.0 "}, nil)
}
