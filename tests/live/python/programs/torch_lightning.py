# SPDX-License-Identifier: Apache-2.0
"""A Lightning module, fitted with a validation loader."""

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(),
                                 nn.Linear(32, 4))

    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def validation_step(self, batch, index):
        x, y = batch
        self.log("loss", nn.functional.cross_entropy(self.net(x), y))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


torch.manual_seed(0)
data = TensorDataset(torch.randn(160, 16), torch.randint(0, 4, (160,)))
trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Net(), DataLoader(data, batch_size=8),
            DataLoader(data, batch_size=16))
print("loss %.4f after steps %d"
      % (trainer.callback_metrics["loss"].item(), trainer.global_step))
