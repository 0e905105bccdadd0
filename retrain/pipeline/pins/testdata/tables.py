"""Writes sets.tsv: versions of packages that install together, as uv resolves them.

    pip install uv packaging
    python tables.py ../sets.tsv

What is embedded differs from its output: pre-releases and odd old versions were taken out by hand, and versions of some
packages that are published as source only were added.

A set is for a version of Python, and of what was published before a month. Each group is resolved with the versions of
those before it, and halved if it cannot be. Nothing is built: packages that are published as source only have their
versions here. ranges.tsv is what `pip index versions NAME --only-binary=:all: --python-version X` printed, where X
must have a patch (3.7 is 3.7.0, for which pandas 1.3 is not); lowest versions of 0.1 and 0.2 are not checked. newest.tsv
is an extract of a list of packages of PyPI. TestSetsAreThoseOfTheScript compares what does not need PyPI.
"""

import re
import subprocess
import sys
import tempfile

SETS = {  # months by version of Python, the newest first; "" is without a limit
    "3.13.13": [""],
    "3.12.13": ["", "2025-03"],
    "3.11.15": ["", "2025-03", "2024-05"],
    "3.10.20": ["", "2024-05", "2023-06"],
    "3.9.25": ["", "2023-03"],
    "3.8.20": ["", "2022-06"],
    "3.7.17": ["", "2021-06"],
}
NOW = "2026-11"

GROUPS = """
numpy scipy pandas matplotlib pillow scikit-learn h5py numba torch torchvision torchaudio gymnasium stable-baselines3 sb3-contrib
tensordict torchrl lightning pytorch-lightning torchmetrics tensorboard protobuf pyyaml tqdm cloudpickle packaging typing-extensions
jax jaxlib flax optax chex distrax rlax dm-haiku orbax-checkpoint brax jumanji gymnax
tensorflow keras tf-keras tensorflow-probability dm-sonnet
pettingzoo shimmy pygame pyglet mujoco ale-py minigrid highway-env moviepy imageio imageio-ffmpeg pybullet box2d
opencv-python opencv-python-headless seaborn scikit-image nes-py networkx sympy joblib psutil requests click rich typer einops absl-py termcolor colorlog loguru tabulate attrs dill plotly
tensorboardx wandb optuna omegaconf hydra-core pydantic huggingface-hub tyro python-dotenv prettytable easydict gin-config ml-collections filelock threadpoolctl
dm-control gymnasium-robotics procgen crafter gym-minigrid mo-gymnasium vizdoom envpool supersuit
ray pyarrow mlflow jinja2 fastapi uvicorn flask pyzmq redis grpcio msgpack lz4 zstandard
cvxpy casadi shapely sumolib traci gitpython sacred optax chex dm-env dm-tree statsmodels polars numexpr tables cython ipython
pyserial mss pynput yfinance openpyxl xlrd ipdb gdown antlr4-python3-runtime lxml beautifulsoup4 aiohttp websockets pyvirtualdisplay
transformers accelerate datasets timm torch-geometric gpytorch botorch pyro-ppl torchinfo torchsummary kornia captum
skrl tianshou imitation rl-zoo3 pfrl stable-baselines tf-agents tf-slim box2d-py gputil higher pytorch-kinematics learn2learn tensorflow-gpu tensorflow-cpu huggingface-sb3 seals safety-gymnasium onnx onnxscript onnxruntime warp-lang nle minihack
""".strip().splitlines()

SOURCE = {  # versions by the month since which they count, the oldest first
    # wandb and datasets are set by hand in sets.tsv for the months before 2025-09: uv went back to very old ones.
    "crafter": {"2021-06": "1.7.1", "2022-06": "1.8.0", "2024-05": "1.8.3"},
    "gputil": {"2021-06": "1.4.0"},
    "gym": {"2021-06": "0.18.3", "2022-06": "0.21.0", "2023-03": "0.26.2"},
    "gym-minigrid": {"2021-06": "1.0.2", "2022-06": "1.0.3", "2023-03": "1.2.2"},
    "hydra-core": {"2021-06": "1.1.0", "2022-06": "1.2.0", "2023-03": "1.3.2", "2026-11": "1.3.8"},
    "moviepy": {"2021-06": "1.0.3", "2026-11": "2.2.1"},
    "omegaconf": {"2021-06": "2.1.0", "2022-06": "2.2.2", "2023-03": "2.3.0", "2026-11": "2.3.1"},
    "pfrl": {"2021-06": "0.2.1", "2022-06": "0.3.0", "2024-05": "0.4.0"},
    "pynput": {"2021-06": "1.7.3", "2022-06": "1.7.6", "2025-03": "1.7.7", "2026-11": "1.8.2"},
    "rlcard": {"2021-06": "1.0.4", "2022-06": "1.0.7", "2023-06": "1.2.0"},
    "sacred": {"2021-06": "0.8.2", "2023-03": "0.8.4", "2024-05": "0.8.5", "2026-11": "0.8.7"},
}


def source(name, head):
    python, month = head.split(" ")
    if python in ("3.7", "3.8"):
        month = min(month, "2023-06")
    version = ""
    for since, v in SOURCE.get(name, {}).items():
        version = v if since <= month else version
    return version


def resolve(names, chosen, python, month):
    """Adds versions of the packages to those that are chosen, and reports whether there are any."""
    with tempfile.TemporaryDirectory() as directory:
        constraints, wanted = directory + "/constraints.txt", directory + "/wanted.in"
        with open(constraints, "w") as f:
            f.writelines(f"{name}=={version}\n" for name, version in chosen.items())
        with open(wanted, "w") as f:
            f.write("\n".join(names))
        command = ["uv", "pip", "compile", "--quiet", "--no-config", "--no-header", "--no-annotate", "--only-binary", ":all:"]
        command += ["--python", "python" + python.rpartition(".")[0], "--python-version", python, "--python-platform", "x86_64-manylinux_2_28", "-c", constraints, wanted]
        if month:
            command += ["--exclude-newer", month + "-15"]
        found = subprocess.run(command, capture_output=True, text=True)
    for name, version in re.findall(r"(?m)^([\w.-]+)==([^ ;\n]+)", found.stdout):
        chosen[re.sub(r"[-_.]+", "-", name.lower())] = version
    return found.returncode == 0


def halves(names, chosen, python, month):
    if not resolve(names, chosen, python, month) and len(names) > 1:
        middle = len(names) // 2
        halves(names[:middle], chosen, python, month)
        halves(names[middle:], chosen, python, month)


def main(path):
    columns = []
    for python, months in SETS.items():
        for month in months:
            chosen = {}
            for group in GROUPS:
                halves(group.split(), chosen, python, month)
            columns.append((python.rpartition(".")[0] + " " + (month or NOW), chosen))
    names = sorted({name for group in GROUPS for name in group.split()} | set(SOURCE))
    with open(path, "w") as f:
        f.write("\t".join(["package"] + [head for head, _ in columns]) + "\n")
        for name in names:
            cells = [source(name, head) or chosen.get(name, "") for head, chosen in columns]
            if any(cells):
                f.write("\t".join([name] + cells) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
