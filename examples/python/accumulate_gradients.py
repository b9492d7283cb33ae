"""A hand-written loop with gradient accumulation: the plan knows the calls of each micro-batch."""

import tidemark
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
layers = [nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Dropout(0.1), nn.Linear(512, 128), nn.LayerNorm(128)) for _ in range(6)]
model = nn.Sequential(*layers, nn.Linear(128, 10)).train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
inputs, labels = torch.randn(4096, 128), torch.randint(0, 10, (4096,))
MICRO_BATCHES = 4


def train_step():
    optimizer.zero_grad()
    total = 0.0
    for x, y in zip(inputs.chunk(MICRO_BATCHES), labels.chunk(MICRO_BATCHES)):
        loss = F.cross_entropy(model(x), y) / MICRO_BATCHES
        loss.backward()
        total += loss.detach()
    optimizer.step()
    return total


result = tidemark.fit(train_step, model, optimizer, budget="24MiB")
for i in range(3):
    print(f"step {i}: loss {train_step().item():.6f}")
audit = tidemark.audit(train_step, model)
print("as planned" if audit.agrees else f"not as planned\n{audit}")
