import tempfile
import unittest

from datasets import Dataset
from support import KeepingEmitter
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

from rewardwatch.llm import watch_trl_reward

WORDS = ["<pad>", "<end>", *"abcdefgh"]


def brevity(completions, **_):
    return [-float(len(completion)) for completion in completions]


def tokenizer():
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<end>", padding_side="left")


class TRLTest(unittest.TestCase):
    def test_a_trainer_of_a_small_model(self):
        emitter = KeepingEmitter()
        self.addCleanup(emitter.close)
        model = GPT2LMHeadModel(GPT2Config(vocab_size=len(WORDS), n_layer=1, n_head=1, n_embd=8, n_positions=32))
        with tempfile.TemporaryDirectory() as directory:
            trainer = GRPOTrainer(
                model,
                reward_funcs=watch_trl_reward(brevity, emitter, policy="writer"),
                args=GRPOConfig(
                    output_dir=directory,
                    per_device_train_batch_size=4,
                    num_generations=2,
                    max_completion_length=4,
                    max_steps=2,
                    report_to=[],
                    use_cpu=True,
                    bf16=False,
                ),
                train_dataset=Dataset.from_dict({"prompt": ["a b", "c d", "e f", "g h"]}),
                processing_class=tokenizer(),
            )
            trainer.train()
        events = emitter.events()
        self.assertEqual(len(events), 8, "two steps of four completions")
        self.assertEqual({e["env"] for e in events}, {"brevity"})
        means = [log["rewards/brevity/mean"] for log in trainer.state.log_history if "rewards/brevity/mean" in log]
        sent = sum(e["reward"] for e in events) / len(events)
        self.assertAlmostEqual(sent, sum(means) / len(means), places=4)


if __name__ == "__main__":
    unittest.main()
