# SPDX-License-Identifier: Apache-2.0
"""A small GPT-2, made from its configuration, trained by Hugging Face's
Trainer."""

import tempfile

import torch
from transformers import (GPT2Config, GPT2LMHeadModel, Trainer,
                          TrainingArguments)


class Counting(torch.utils.data.Dataset):
    def __len__(self):
        return 120

    def __getitem__(self, i):
        x = torch.arange(16) * (i + 1) % 64
        return {"input_ids": x, "labels": x}


torch.manual_seed(0)
torch.set_num_threads(1)
model = GPT2LMHeadModel(GPT2Config(
    vocab_size=64, n_positions=32, n_embd=16, n_layer=2, n_head=2,
    bos_token_id=0, eos_token_id=0))
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(model=model, train_dataset=Counting(),
                      args=TrainingArguments(
                          folder, per_device_train_batch_size=4,
                          num_train_epochs=1, report_to=[], use_cpu=True,
                          save_strategy="no", disable_tqdm=True))
    result = trainer.train()
print("loss %.3f after steps %d" % (result.training_loss, result.global_step))
